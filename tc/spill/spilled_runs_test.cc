#include "tc/spill/spilled_runs.h"

#include <string>
#include <vector>

#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/spill/spill_test_util.h"

namespace deut::tc {
namespace {

constexpr size_t kAll = SIZE_MAX / 2;
Position At(uint64_t commit) { return Position{Lsn{commit}, 1}; }

class SpilledRunsTest : public ::testing::Test {
 protected:
  SpilledRunsTest() { EXPECT_TRUE(runs_.Clear().ok()); }
  void Publish(std::vector<SpilledVersion> versions) { runs_.Publish(RunOf(runs_, std::move(versions))); }
  std::vector<std::string> Texts() {
    ReclamationDomain::Guard guard(domain_);
    std::vector<std::string> texts;
    for (const SpilledRuns::RunPointer& run : runs_.Look()) texts.push_back(TextOf(*run));
    return texts;
  }
  using Strings = std::vector<std::string>;

  FaultyDisk disk_{RealRuntime(), 1};
  std::unique_ptr<Storage> storage_ = disk_.Mount();
  ReclamationDomain domain_;
  SpilledRuns runs_{"dir", RealRuntime(), *storage_, domain_};
};

TEST_F(SpilledRunsTest, WhatAnEarlierLifeHasLeftIsRemoved) {
  for (const char* const name : {"dir/spill-7", "dir/other"})
    ASSERT_TRUE(storage_->Open(name, {.create = true, .writable = true}).ok());
  SpilledRuns next("dir", RealRuntime(), *storage_, domain_);
  ASSERT_TRUE(next.Clear().ok());
  EXPECT_EQ(*storage_->List("dir"), Strings{"other"});
  EXPECT_TRUE(next.empty());
  EXPECT_EQ(next.first(), Timestamp{0});
}

TEST_F(SpilledRunsTest, RunsGoWhenTheirLastCommitIsApplied) {
  Publish({SpilledAt("a", 1), SpilledAt("b", 2)});
  Publish({SpilledAt("a", 3)});
  EXPECT_EQ(runs_.spills().load(), 2u);
  EXPECT_EQ(runs_.through(), Lsn{30});
  EXPECT_EQ(runs_.first(), Timestamp{1});
  SpilledRuns::View held;
  {
    ReclamationDomain::Guard guard(domain_);
    held = runs_.Look();
  }
  runs_.Tidy(At(10), 0);
  EXPECT_EQ(Texts(), (Strings{"a@1 b@2", "a@3"}));
  runs_.Tidy(At(20), 0);
  EXPECT_EQ(Texts(), Strings{"a@3"});
  EXPECT_EQ(runs_.first(), Timestamp{3});
  runs_.Tidy(At(30), 0);
  EXPECT_TRUE(runs_.empty());
  EXPECT_EQ(runs_.through(), Lsn{30});
  EXPECT_EQ(TextOf(*held[0]), "a@1 b@2");  // still readable
}

TEST_F(SpilledRunsTest, MergesKeepTheirNumberSmallAndDropWhatIsApplied) {
  Publish({SpilledAt("a", 1), SpilledAt("b", 2), SpilledAt("c", 5)});
  Publish({SpilledAt("a", 3), SpilledAt("b", 6), SpilledAt("d", 7)});
  runs_.Tidy(At(30), kAll);
  EXPECT_EQ(Texts(), Strings{"a@3 b@6 c@5 d@7"});
  EXPECT_EQ(runs_.merges(), 1u);
  // A little at a time: each run is of one piece until the merge is finished.
  Publish({SpilledAt("a", 8), SpilledAt("e", 9)});
  runs_.Tidy(At(30), 3);
  EXPECT_EQ(Texts().size(), 2u);
  runs_.Tidy(At(50), 100);
  EXPECT_EQ(Texts(), Strings{"a@8 a@3 b@6 c@5 d@7 e@9"});  // as applied when it began
  for (uint64_t t = 10; t < 400; ++t) {
    Publish({SpilledAt("x", t)});
    runs_.Tidy(At(50), kAll);
  }
  EXPECT_LE(runs_.runs(), 6u);
  EXPECT_EQ(runs_.versions(), 395u);
  EXPECT_EQ(runs_.first(), Timestamp{1});
  runs_.Tidy(At(3990), 0);
  EXPECT_TRUE(runs_.empty());
}

TEST_F(SpilledRunsTest, AMergeThatFailsIsGivenUp) {
  Publish({SpilledAt("a", 1)});
  Publish({SpilledAt("a", 2)});
  disk_.AddFault({.kinds = kDiskRead, .path_contains = "spill-"});
  runs_.Tidy(At(0), kAll);
  EXPECT_EQ(runs_.failed_merges(), 1u);
  runs_.Tidy(At(0), kAll);  // not at once
  EXPECT_EQ(runs_.failed_merges(), 1u);
  disk_.RemoveAllFaults();
  EXPECT_EQ(Texts(), (Strings{"a@1", "a@2"}));
  EXPECT_EQ(storage_->List("dir")->size(), 2u);
}

}  // namespace
}  // namespace deut::tc

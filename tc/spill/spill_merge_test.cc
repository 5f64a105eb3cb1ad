// Merges of neighbouring runs into one, in steps of any size.
#include "tc/spill/spill_merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "tc/spill/spill_test_util.h"
#include "tc/spill/spilled_runs.h"

namespace deut::tc {
namespace {

class SpillMergeTest : public ::testing::Test {
 protected:
  SpillMergeTest() { EXPECT_TRUE(runs_.LockAndEmpty().ok()); }

  SpillMerge Begin(std::vector<SpillMerge::RunPointer> runs, Lsn applied, SpillMerge::AnyReader any_reader = nullptr) {
    Result<SpilledRun::Builder> merged = runs_.NewRun(100);
    EXPECT_TRUE(merged.ok());
    return SpillMerge(std::move(runs), applied, std::move(any_reader), *std::move(merged));
  }

  FaultyDisk disk_{RealRuntime(), 1};
  std::unique_ptr<Storage> storage_ = disk_.Mount();
  ReclamationDomain domain_;
  SpilledRuns runs_{"dir", RealRuntime(), *storage_, domain_};
};

TEST_F(SpillMergeTest, HasAllOfBothInOrderWhateverTheSteps) {
  const auto a = RunOf(runs_, {SpilledAt("a", 1), SpilledAt("c", 2), SpilledAt("d", 3)});
  const auto b = RunOf(runs_, {SpilledAt("a", 4), SpilledAt("b", 5), SpilledAt("e", 6)});
  for (const size_t step : {1, 2, 4, 100}) {
    SpillMerge merge = Begin({a, b}, Lsn{0});
    for (bool done = false; !done;) {
      size_t left = step;
      const Result<bool> advanced = merge.Advance(&left);
      ASSERT_TRUE(advanced.ok()) << advanced.status().ToString();
      done = *advanced;
      EXPECT_TRUE(done || left == 0) << "it stops where it has looked at as many as it may";
    }
    const Result<SpillMerge::RunPointer> merged = merge.Finish();
    ASSERT_TRUE(merged.ok()) << merged.status().ToString();
    EXPECT_EQ(TextOf(**merged), "a@4 a@1 b@5 c@2 d@3 e@6");
    EXPECT_EQ((*merged)->versions(), 6u);
    EXPECT_EQ((*merged)->span().first, Timestamp{1});
    EXPECT_EQ((*merged)->span().first_commit, Lsn{10});
    EXPECT_EQ((*merged)->span().last, (Position{Lsn{60}, 1}));
  }
}

TEST_F(SpillMergeTest, AsManyRunsAsAreGivenBecomeOne) {
  const auto run = [&](uint64_t t) { return RunOf(runs_, {SpilledAt("a", t), SpilledAt(std::string(1, 'a' + t), t)}); };
  const std::vector<SpillMerge::RunPointer> five = {run(1), run(2), run(3), run(4), run(5)};
  SpillMerge merge = Begin(five, Lsn{20});
  EXPECT_TRUE(merge.Merges(five[4]));
  EXPECT_FALSE(merge.Merges(run(6)));
  size_t left = 100;
  ASSERT_TRUE(*merge.Advance(&left));
  EXPECT_EQ(left, 90u);
  const SpillMerge::RunPointer merged = *merge.Finish();
  EXPECT_EQ(TextOf(*merged), "a@5 a@4 a@3 a@2 c@2 d@3 e@4 f@5");
  EXPECT_EQ(merged->span().first, Timestamp{1});
  EXPECT_EQ(merged->span().last, (Position{Lsn{50}, 1}));
  EXPECT_EQ(merged->oldest(), Timestamp{2});
  EXPECT_EQ(merged->newest(), Timestamp{5});
}

TEST_F(SpillMergeTest, LeavesOutWhatIsApplied) {
  const auto a = RunOf(runs_, {SpilledAt("a", 1), SpilledAt("b", 2)});
  const auto b = RunOf(runs_, {SpilledAt("a", 3)});
  size_t left = 100;
  SpillMerge some = Begin({a, b}, Lsn{20});
  ASSERT_TRUE(*some.Advance(&left));
  EXPECT_EQ(TextOf(**some.Finish()), "a@3 b@2");
  SpillMerge all = Begin({a, b}, Lsn{1000});
  ASSERT_TRUE(*all.Advance(&left));
  EXPECT_EQ(*all.Finish(), nullptr);
}

// S6: a reader at T sees the newest version below T.
TEST_F(SpillMergeTest, LeavesOutWhatNobodyReads) {
  const auto a = RunOf(runs_, {SpilledAt("a", 1), SpilledAt("a", 3), SpilledAt("b", 2), SpilledAt("a", 1, TableId{2})});
  const auto b = RunOf(runs_, {SpilledAt("a", 6), SpilledAt("a", 9), SpilledAt("b", 8), SpilledAt("c", 10)});
  struct Case {
    std::vector<uint64_t> readers;
    const char* text;
  };
  for (const auto& [readers, text] : std::vector<Case>{{{}, "a@9 b@8 c@10 a@1"},
                                                       {{1}, "a@9 b@8 c@10 a@1"},
                                                       {{2}, "a@9 a@1 b@8 c@10 a@1"},
                                                       {{3}, "a@9 a@1 b@8 b@2 c@10 a@1"},
                                                       {{4, 6}, "a@9 a@3 b@8 b@2 c@10 a@1"},
                                                       {{7, 20}, "a@9 a@6 b@8 b@2 c@10 a@1"},
                                                       {{2, 9}, "a@9 a@6 a@1 b@8 c@10 a@1"}}) {
    for (const size_t step : {1, 100}) {
      SpillMerge merge = Begin({a, b}, Lsn{0}, [&readers](Timestamp after, Timestamp to) {
        return std::ranges::any_of(readers, [&](uint64_t r) { return r > after.value && r <= to.value; });
      });
      for (bool done = false; !done;) {
        size_t left = step;
        done = *merge.Advance(&left);
      }
      EXPECT_EQ(TextOf(**merge.Finish()), text);
    }
  }
}

TEST_F(SpillMergeTest, AFileThatCannotBeReadEndsItAndItsFileGoes) {
  const auto a = RunOf(runs_, {SpilledAt("a", 1)});
  const auto b = RunOf(runs_, {SpilledAt("a", 2)});
  const size_t files = storage_->List("dir")->size();
  {
    SpillMerge merge = Begin({a, b}, Lsn{0});
    disk_.AddFault({.kinds = kDiskRead, .path_contains = "spill-"});
    size_t left = 100;
    const Status failed = merge.Advance(&left).status();
    EXPECT_EQ(failed.code(), ErrorCode::kIoError) << failed.ToString();
    EXPECT_NE(failed.message().find("dir/spill-"), std::string_view::npos) << failed.ToString();
  }
  EXPECT_EQ(storage_->List("dir")->size(), files);
}

}  // namespace
}  // namespace deut::tc

#include "tc/spill/spilled_runs.h"

#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "common/testing/leaping_runtime.h"
#include "gtest/gtest.h"
#include "tc/spill/spill_levels.h"
#include "tc/spill/spill_reader.h"
#include "tc/spill/spill_test_util.h"

namespace deut::tc {
namespace {

constexpr size_t kAll = SIZE_MAX / 2;
Position At(uint64_t commit) { return Position{Lsn{commit}, 1}; }

class SpilledRunsTest : public ::testing::Test {
 protected:
  SpilledRunsTest() { EXPECT_TRUE(runs_.LockAndEmpty().ok()); }
  void Publish(std::vector<SpilledVersion> versions) { runs_.Publish(RunOf(runs_, std::move(versions))); }
  std::vector<std::string> Texts() {
    ReclamationDomain::Guard guard(domain_);
    std::vector<std::string> texts;
    for (const SpilledRuns::RunPointer& run : runs_.PublishedRuns()) texts.push_back(TextOf(*run));
    return texts;
  }
  using Strings = std::vector<std::string>;

  FaultyDisk disk_{RealRuntime(), 1};
  std::unique_ptr<Storage> storage_ = disk_.Mount();
  ReclamationDomain domain_;
  SpilledRuns runs_{"dir", RealRuntime(), *storage_, domain_};
};

TEST_F(SpilledRunsTest, OnlyRunsOfEarlierProcessesAreRemoved) {
  const auto make = [&](const char* name) {
    EXPECT_TRUE(storage_->Open(name, {.create = true, .writable = true}).ok()) << name;
  };
  ASSERT_TRUE(storage_->CreateDirectory("old").ok());
  for (const char* const name : {"old/spill-7", "old/spill-12"}) make(name);
  // Files of other kinds make the folder another component's, unless this one already owns it.
  make("old/other");
  SpilledRuns refused("old", RealRuntime(), *storage_, domain_);
  EXPECT_EQ(refused.LockAndEmpty().code(), ErrorCode::kWrongState);
  EXPECT_EQ(*storage_->List("old"), (Strings{"other", "spill-12", "spill-7"}));
  ASSERT_TRUE(storage_->Remove("old/other").ok());
  ASSERT_TRUE(SpilledRuns("old", RealRuntime(), *storage_, domain_).LockAndEmpty().ok());
  EXPECT_EQ(*storage_->List("old"), (Strings{"LOCK", "OWNER"}));
  for (const char* const name : {"old/spill-7", "old/other", "old/spill-notes", "old/spill-", "old/spill-1x"})
    make(name);
  SpilledRuns next("old", RealRuntime(), *storage_, domain_);
  const Status cleared = next.LockAndEmpty();
  ASSERT_TRUE(cleared.ok()) << cleared.ToString();
  EXPECT_EQ(*storage_->List("old"), (Strings{"LOCK", "OWNER", "other", "spill-", "spill-1x", "spill-notes"}));
  EXPECT_TRUE(next.empty());
  EXPECT_EQ(next.first(Lsn{0}), Timestamp{0});
}

TEST_F(SpilledRunsTest, S9AFileThatIsNotUnderstoodIsRefusedAndNothingIsRemoved) {
  struct {
    std::string bytes;
    ErrorCode code;
    const char* message;
  } const cases[] = {{"SPB2 and what follows", ErrorCode::kVersionMismatch, "format version '2', this program"},
                     {"a letter", ErrorCode::kCorruption, "has the name of a spilled run and is none"}};
  ASSERT_TRUE(storage_->CreateDirectory("old").ok());
  for (const auto& each : cases) {
    const auto write = [&](const char* name, const std::string& bytes) {
      const auto file = storage_->Open(name, {.create = true, .writable = true});
      ASSERT_TRUE(file.ok() && (*file)->Truncate(0).ok() && (*file)->Write(0, bytes.data(), bytes.size()).ok());
    };
    write("old/spill-1", "SPB1 and what follows");
    write("old/spill-2", each.bytes);
    SpilledRuns next("old", RealRuntime(), *storage_, domain_);
    const Status refused = next.LockAndEmpty();
    EXPECT_EQ(refused.code(), each.code);
    EXPECT_NE(refused.message().find("old/spill-2 at offset 0"), std::string_view::npos) << refused.ToString();
    EXPECT_NE(refused.message().find(each.message), std::string_view::npos) << refused.ToString();
    EXPECT_EQ(*storage_->List("old"), (Strings{"spill-1", "spill-2"}));
  }
  ASSERT_TRUE(storage_->Remove("old/spill-2").ok());
  SpilledRuns next("old", RealRuntime(), *storage_, domain_);
  EXPECT_TRUE(next.LockAndEmpty().ok());
  EXPECT_EQ(*storage_->List("old"), (Strings{"LOCK", "OWNER"}));
}

// A start that is refused in the end has locked its folder, and has not claimed it.
TEST_F(SpilledRunsTest, ALockedFolderIsAsItWasUnlessItIsCleared) {
  const auto none = SpilledRuns::LockFolder(*storage_, "old");
  ASSERT_TRUE(none.ok()) << none.status().ToString();
  EXPECT_EQ(*none, nullptr);
  EXPECT_FALSE(*storage_->Exists("old"));
  ASSERT_TRUE(storage_->CreateDirectory("old").ok());
  {
    auto locked = SpilledRuns::LockFolder(*storage_, "old");
    ASSERT_TRUE(locked.ok()) << locked.status().ToString();
    SpilledRuns runs("old", RealRuntime(), *storage_, domain_);
    runs.AdoptLock(*std::move(locked));
    EXPECT_EQ(SpilledRuns::LockFolder(*storage_, "old").status(), ErrorCode::kUnavailable);
  }
  EXPECT_EQ(*storage_->List("old"), Strings{});
  {
    auto locked = SpilledRuns::LockFolder(*storage_, "old");
    ASSERT_TRUE(locked.ok()) << locked.status().ToString();
    SpilledRuns runs("old", RealRuntime(), *storage_, domain_);
    runs.AdoptLock(*std::move(locked));
    ASSERT_TRUE(runs.LockAndEmpty().ok());
  }
  EXPECT_EQ(*storage_->List("old"), (Strings{"LOCK", "OWNER"}));
}

TEST_F(SpilledRunsTest, TwoDoNotShareADirectory) {
  SpilledRuns other("dir", RealRuntime(), *storage_, domain_);
  const Status refused = other.LockAndEmpty();
  EXPECT_EQ(refused.code(), ErrorCode::kUnavailable);
  EXPECT_NE(refused.message().find("dir/LOCK"), std::string_view::npos) << refused.ToString();
}

TEST_F(SpilledRunsTest, RunsGoWhenTheirLastCommitIsApplied) {
  Publish({SpilledAt("a", 1), SpilledAt("b", 2)});
  Publish({SpilledAt("a", 3)});
  EXPECT_EQ(runs_.spills().load(), 2u);
  EXPECT_EQ(runs_.through(), Lsn{30});
  EXPECT_EQ(runs_.first(Lsn{0}), Timestamp{1});
  SpilledRuns::View held;
  {
    ReclamationDomain::Guard guard(domain_);
    held = runs_.PublishedRuns();
  }
  runs_.DropAppliedAndMerge(At(10), 0);
  EXPECT_EQ(Texts(), (Strings{"a@1 b@2", "a@3"}));
  runs_.DropAppliedAndMerge(At(20), 0);
  EXPECT_EQ(Texts(), Strings{"a@3"});
  EXPECT_EQ(runs_.first(Lsn{0}), Timestamp{3});
  runs_.DropAppliedAndMerge(At(30), 0);
  EXPECT_TRUE(runs_.empty());
  EXPECT_EQ(runs_.through(), Lsn{30});
  EXPECT_EQ(TextOf(*held[0]), "a@1 b@2");  // still readable
}

TEST_F(SpilledRunsTest, MergesKeepTheirNumberSmallAndDropWhatIsApplied) {
  Publish({SpilledAt("a", 1), SpilledAt("b", 2), SpilledAt("c", 5)});
  uint64_t t = 6;
  for (; t < 6 + kUnmergedRuns - 1; ++t) Publish({SpilledAt("x", t)});
  runs_.DropAppliedAndMerge(At(20), kAll);
  EXPECT_EQ(runs_.runs(), kUnmergedRuns) << "few runs are not merged";
  EXPECT_EQ(runs_.merged_bytes(), 0u);
  Publish({SpilledAt("b", t)});
  // In small steps: the list changes only when the merge is finished.
  runs_.DropAppliedAndMerge(At(20), 3);
  EXPECT_EQ(runs_.runs(), kUnmergedRuns + 1);
  runs_.DropAppliedAndMerge(At(20), kAll);
  EXPECT_EQ(runs_.runs(), kUnmergedRuns + 2 - kMergedRuns);
  EXPECT_EQ(runs_.merges(), 1u);
  EXPECT_GT(runs_.merged_bytes(), 0u);
  EXPECT_LT(runs_.merged_bytes(), runs_.spilled_bytes());
  const Strings texts = Texts();
  EXPECT_EQ(texts.front(), "a@1 b@2 c@5") << "the latest runs are merged";
  EXPECT_EQ(texts.back(), "b@21 x@20 x@19 x@18 x@17 x@16 x@15 x@14");
  for (++t; t < 400; ++t) {
    Publish({SpilledAt("x", t)});
    runs_.DropAppliedAndMerge(At(20), kAll);
  }
  EXPECT_LE(runs_.runs(), 30u);
  // No version was lost, except the applied one if its run was merged.
  EXPECT_GE(runs_.versions(), 396u);
  EXPECT_EQ(runs_.first(Lsn{0}), Timestamp{1});
  runs_.DropAppliedAndMerge(At(3990), 0);
  EXPECT_TRUE(runs_.empty());
}

TEST_F(SpilledRunsTest, BytesOfFilesCountAsTheyAreWritten) {
  Publish({SpilledAt("a", 1), SpilledAt("b", 2)});
  Publish({SpilledAt("a", 3)});
  const uint64_t spilled = runs_.file_bytes();
  EXPECT_GT(spilled, 0u);
  EXPECT_EQ(runs_.spilled_bytes(), spilled);
  EXPECT_EQ(runs_.merged_bytes(), 0u);
  runs_.DropAppliedAndMerge(At(1000), 0);
  EXPECT_EQ(runs_.file_bytes(), 0u);
  EXPECT_EQ(runs_.spilled_bytes(), spilled);
}

// Filters count as memory, and a run that would take them over their budget has none. Its versions are found all the same.
TEST_F(SpilledRunsTest, FiltersKeepTheirBudget) {
  constexpr uint64_t kVersions = 100, kBudget = 1000;
  SpilledRuns runs("filtered", RealRuntime(), *storage_, domain_, [] { return kBudget; });
  ASSERT_TRUE(runs.LockAndEmpty().ok());
  const uint64_t fit = kBudget / SpillFilter::BytesFor(kVersions);
  const auto publish = [&](uint64_t r) {
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < kVersions; ++i) keys.push_back(Concat("k", r, ".", i));
    std::vector<SpilledVersion> versions;
    for (const std::string& key : keys) versions.push_back(SpilledAt(key, r));
    runs.Publish(RunOf(runs, versions));
  };
  const auto with_filter = [&] {
    ReclamationDomain::Guard guard(domain_);
    uint64_t filtered = 0, bytes = 0;
    for (const SpilledRuns::RunPointer& run : runs.PublishedRuns()) {
      filtered += run->filter_bytes() == 0 ? 0 : 1;
      bytes += run->memory_bytes();
    }
    EXPECT_EQ(runs.memory_bytes(), bytes);
    EXPECT_GE(bytes, filtered * SpillFilter::BytesFor(kVersions));
    return filtered;
  };
  uint64_t r = 0;
  while (r < fit + 3) publish(++r);
  EXPECT_EQ(with_filter(), fit);
  {
    ReclamationDomain::Guard guard(domain_);
    SpillReader reader(runs.PublishedRuns());
    for (uint64_t run = 1; run <= r; ++run)
      EXPECT_EQ((*reader.Find(TableId{1}, Concat("k", run, ".7"), Timestamp{1000}))->timestamp.value, run);
  }
  // Runs that are dropped give their room back.
  runs.DropAppliedAndMerge(At(20), 0);
  EXPECT_EQ(with_filter(), fit - 2);
  publish(++r);
  EXPECT_EQ(with_filter(), fit - 1);
  runs.Drop();
  EXPECT_EQ(runs.memory_bytes(), 0u);
}

// A merge of large runs takes many rounds. Those of the runs that are spilled meanwhile do not wait for it.
TEST_F(SpilledRunsTest, AMergeOfALowerLevelGoesFirst) {
  uint64_t t = 0;
  const auto publish = [&](size_t runs) {
    for (size_t i = 0; i < runs; ++i) Publish({SpilledAt("x", ++t)});
  };
  publish(kUnmergedRuns * kMergedRuns);
  runs_.DropAppliedAndMerge(At(0), kAll);
  EXPECT_EQ(runs_.runs(), kUnmergedRuns);
  const uint64_t merges = runs_.merges();
  EXPECT_EQ(merges, kUnmergedRuns) << "all are of level 1";
  publish(1);
  runs_.DropAppliedAndMerge(At(0), 1);  // begins one of level 1
  publish(kMergedRuns - 1);
  runs_.DropAppliedAndMerge(At(0), kMergedRuns + 1);
  EXPECT_EQ(runs_.merges(), merges + 1);
  EXPECT_EQ(runs_.runs(), kUnmergedRuns + 1);
  EXPECT_EQ(Texts().back(), "x@136 x@135 x@134 x@133 x@132 x@131 x@130 x@129");
  runs_.DropAppliedAndMerge(At(0), kAll);
  EXPECT_EQ(runs_.merges(), merges + 2);
  EXPECT_EQ(runs_.versions(), t);
  EXPECT_LE(runs_.runs(), kUnmergedRuns);
}

// The runs of a merge that is not finished go with their last commit, like others.
TEST_F(SpilledRunsTest, AMergeWhoseRunsAreAppliedIsGivenUp) {
  for (uint64_t t = 1; t <= kUnmergedRuns + 1; ++t) Publish({SpilledAt("x", t)});
  runs_.DropAppliedAndMerge(At(0), 3);
  EXPECT_EQ(storage_->List("dir")->size(), kUnmergedRuns + 2 + 2);  // the runs, the merge, the lock and the owner file
  runs_.DropAppliedAndMerge(At(10 * (kUnmergedRuns - 2)), 0);
  EXPECT_EQ(Texts(), (Strings{"x@15", "x@16", "x@17"}));
  runs_.DropAppliedAndMerge(At(10 * kUnmergedRuns), kAll);
  EXPECT_EQ(Texts(), Strings{"x@17"});
  EXPECT_EQ(runs_.merges(), 0u);
  EXPECT_EQ(runs_.failed_merges(), 0u);
}

TEST_F(SpilledRunsTest, AMergeThatFailsIsGivenUp) {
  for (uint64_t t = 1; t <= kUnmergedRuns + 1; ++t) Publish({SpilledAt("a", t)});
  const Strings before = Texts();
  disk_.AddFault({.kinds = kDiskRead, .path_contains = "spill-"});
  runs_.DropAppliedAndMerge(At(0), kAll);
  EXPECT_EQ(runs_.failed_merges(), 1u);
  runs_.DropAppliedAndMerge(At(0), kAll);  // no retry at once
  EXPECT_EQ(runs_.failed_merges(), 1u);
  disk_.RemoveAllFaults();
  EXPECT_EQ(Texts(), before);
  EXPECT_EQ(storage_->List("dir")->size(), kUnmergedRuns + 3);  // the runs, the lock and the owner file
}

// The disk may be full because of the files of unfinished merges.
TEST_F(SpilledRunsTest, AMergeThatFindsNoSpaceGivesUpThoseOfHigherLevels) {
  uint64_t t = 0;
  const auto publish = [&](size_t runs) {
    for (size_t i = 0; i < runs; ++i) Publish({SpilledAt("x", ++t)});
  };
  publish(kUnmergedRuns * kMergedRuns);
  runs_.DropAppliedAndMerge(At(0), kAll);
  publish(1);
  runs_.DropAppliedAndMerge(At(0), 1);  // begins one of level 1
  publish(kMergedRuns - 1);
  const size_t files = storage_->List("dir")->size();
  disk_.AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskWrite, .path_contains = "spill-"});
  runs_.DropAppliedAndMerge(At(0), kMergedRuns + 1);
  EXPECT_EQ(runs_.failed_merges(), 1u);
  EXPECT_EQ(storage_->List("dir")->size(), files - 1);
  uint64_t memory = 0;
  {
    ReclamationDomain::Guard guard(domain_);
    for (const SpilledRuns::RunPointer& run : runs_.PublishedRuns()) memory += run->memory_bytes();
  }
  EXPECT_EQ(runs_.memory_bytes(), memory);
}

TEST_F(SpilledRunsTest, ADamagedRunStaysAndTheOthersAreMerged) {
  testing::LeapingRuntime time;
  SpilledRuns runs("damaged", time, *storage_, domain_);
  ASSERT_TRUE(runs.LockAndEmpty().ok());
  uint64_t t = 0;
  const auto publish = [&] { runs.Publish(RunOf(runs, {SpilledAt("x", ++t)})); };
  while (t <= kUnmergedRuns) publish();
  ASSERT_TRUE(disk_.FlipBit(Concat("damaged/spill-", t), 30, 0).ok());
  for (int i = 0; i < 3; ++i) {
    runs.DropAppliedAndMerge(At(0), kAll);
    EXPECT_EQ(runs.failed_merges(), 1u);
    time.Pass(SpilledRuns::kMergeRetryPause);
  }
  EXPECT_EQ(runs.merges(), 1u);
  while (t < 400) {
    publish();
    runs.DropAppliedAndMerge(At(0), kAll);
  }
  EXPECT_EQ(runs.failed_merges(), 1u);
  EXPECT_LE(runs.runs(), 40u);
  EXPECT_EQ(runs.versions(), t);
}

}  // namespace
}  // namespace deut::tc

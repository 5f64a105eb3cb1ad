// Which effects a fold has on runs, chains and bytes, and when it is due (S8; S6, early; S9).
#include "tc/mvcc/commit_folder.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/mvcc/collector_fixture.h"
#include "tc/mvcc/committed_runs.h"
#include "tc/mvcc/value_evictor.h"
#include "tc/txn/readers.h"

namespace deut::tc {
namespace {

class CommitFolderTest : public CollectorFixture {
 protected:
  CommitFolder::Options Options() {
    return {.low_water = [this] { return low_water_; },
            .released = [this](uint64_t bytes) { released_ += bytes; },
            .readers = [this] { return readers_; },
            .runs = [this](TableId) -> CommittedRuns& { return runs_; },
            .fold_after = fold_after_,
            .fold_at_least = fold_at_least_};
  }
  CommitFolder& folder() {
    if (!folder_) {
      folder_.emplace(Options(), RealRuntime(), domain_, records_,
                      CommitFolder::Parts{commits_, entries_, unlinker_, value_evictor_});
    }
    return *folder_;
  }
  // The keys in the runs, in order.
  std::string Keys() {
    ReclamationDomain::Guard guard(domain_);
    std::string text;
    runs_.Gather({.reader = kMaxTimestamp}, [&](std::string_view key, bool) { text += std::string(key) + " "; });
    return text;
  }

  uint64_t excess_ = 0;
  ValueEvictor value_evictor_{{.excess = [this] { return excess_; }, .durable = [] { return Lsn{UINT64_MAX}; }},
                              domain_};
  CommittedRuns runs_;
  std::optional<Readers> readers_;
  Duration fold_after_ = seconds(100000000);
  size_t fold_at_least_ = 2;

 private:
  std::optional<CommitFolder> folder_;
};

TEST_F(CommitFolderTest, KeysAreInARunAndPostingsAreDeadAfterwards) {
  TransactionRecord* const record = Commit(10, {"b", "a"});
  record->AddReference();
  record->pinned_bytes = 100;
  Commit(20, {"b"});
  folder().Fold();
  EXPECT_EQ(Keys(), "a b ");
  EXPECT_TRUE(folder().HasRuns(kTable));
  EXPECT_TRUE(record->collected());
  EXPECT_EQ(record->write_set(), nullptr);
  EXPECT_TRUE(commits_.unfolded().empty());
  EXPECT_EQ(commits_.folded_count(), 2u);
  EXPECT_EQ(commits_.waiting(), 2u);  // it is not collected yet
  EXPECT_EQ(Chain("b"), "20 10");
  // Its bytes have moved from the transaction to the folded commits.
  EXPECT_EQ(released_, 100u);
  EXPECT_GT(commits_.folded_bytes(), 0u);
  ReclamationDomain::Guard guard(domain_);
  record->DropReference(domain_);
}

TEST_F(CommitFolderTest, FoldedCommitsLeaveWithTheirBytesAndTheirRuns) {
  Commit(10, {"a", "b"});
  Commit(20, {"b"});
  folder().Fold();
  CollectThrough(10);
  EXPECT_EQ(Chain("a"), "-");
  EXPECT_EQ(Chain("b"), "20 10");
  CollectThrough(20);
  EXPECT_EQ(Chain("b"), "-");
  EXPECT_EQ(commits_.folded_bytes(), 0u);
  EXPECT_EQ(commits_.waiting(), 0u);
  folder().DropAppliedAndMergeRuns(Position{LsnOf(20), 1});
  EXPECT_EQ(Keys(), "");
  EXPECT_FALSE(folder().HasRuns(kTable));
  EXPECT_EQ(folder().run_bytes(), 0u);
}

TEST_F(CommitFolderTest, RunIsCountedUntilItIsDropped) {
  Commit(10, {"a"});
  folder().Fold();
  folder().DropAppliedAndMergeRuns(Position{LsnOf(9), UINT32_MAX});
  EXPECT_GT(folder().run_bytes(), 0u);
  EXPECT_EQ(Keys(), "a ");
}

TEST_F(CommitFolderTest, VersionsThatNobodyReadsLeaveEarly) {
  for (const uint64_t timestamp : {10, 20, 30, 40}) Commit(timestamp, {"k"});
  readers_ = Readers({25}, Timestamp{100});  // a reader at 25 needs 20; the newest one stays in any case
  folder().Fold();
  EXPECT_EQ(Chain("k"), "40 20");
  EXPECT_EQ(folder().unread(), 2u);
  CollectThrough(40);
  EXPECT_EQ(commits_.folded_bytes(), 0u);
}

TEST_F(CommitFolderTest, NothingLeavesEarlyWhileReadersAreUnknown) {
  Commit(10, {"k"});
  Commit(20, {"k"});
  folder().Fold();
  EXPECT_EQ(Chain("k"), "20 10");
  EXPECT_EQ(folder().unread(), 0u);
}

TEST_F(CommitFolderTest, IsDueAtOnceWhenMemoryIsShort) {
  EXPECT_FALSE(folder().ShouldFold());
  Commit(10, {"k"});
  EXPECT_FALSE(folder().ShouldFold());
  excess_ = 1;
  EXPECT_TRUE(folder().ShouldFold());
}

TEST_F(CommitFolderTest, IsDueAtOnceBehindFoldedCommitsThatAnOpenTransactionHoldsBack) {
  Commit(10, {"k"});
  folder().Fold();
  Commit(20, {"k"});
  Commit(30, {"k"});
  low_water_ = Timestamp{11};  // the folded commit only waits for the DC
  EXPECT_FALSE(folder().ShouldFold());
  low_water_ = Timestamp{10};
  EXPECT_TRUE(folder().ShouldFold());
}

TEST_F(CommitFolderTest, IsDueWhenTheFirstCommitHasWaited) {
  fold_after_ = Duration{0};
  Commit(10, {"k"});
  EXPECT_FALSE(folder().ShouldFold());  // it notes the arrival
  EXPECT_TRUE(folder().ShouldFold());
  // From then on commits are folded as they come, until no folded one is left.
  folder().Fold();
  Commit(20, {"k"});
  Commit(30, {"k"});
  EXPECT_TRUE(folder().ShouldFold());
}

TEST_F(CommitFolderTest, IsNeverDueWithoutRuns) {
  CommitFolder::Options options = Options();
  options.runs = nullptr;
  CommitFolder never(options, RealRuntime(), domain_, records_, {commits_, entries_, unlinker_, value_evictor_});
  Commit(10, {"k"});
  excess_ = 1;
  EXPECT_FALSE(never.ShouldFold());
  never.Fold();
  EXPECT_FALSE(commits_.unfolded().empty());
}

}  // namespace
}  // namespace deut::tc

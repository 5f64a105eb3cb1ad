// Which versions, entries, postings and copies remain after a transaction was collected (S6, S7, R5, R7).
#include "tc/mvcc/unlinker.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tc/mvcc/collector_fixture.h"
#include "tc/mvcc/range_partition.h"
#include "tc/mvcc/range_table.h"

namespace deut::tc {
namespace {

using UnlinkerTest = CollectorFixture;

TEST_F(UnlinkerTest, CommitLeavesWithEverythingBelowIt) {
  Commit(10, {"k"});
  Commit(20, {"k"});
  Commit(30, {"k"});
  EXPECT_EQ(Chain("k"), "30 20 10");
  CollectThrough(20);
  EXPECT_EQ(Chain("k"), "30 20");  // an applied version stays while a newer one stands above it
  EXPECT_EQ(unlinker_.last_collected(), LsnOf(20));
  EXPECT_EQ(commits_.waiting(), 1u);
  CollectThrough(30);
  EXPECT_EQ(Chain("k"), "-");  // an entry without a version leaves, too
  EXPECT_EQ(commits_.waiting(), 0u);
  EXPECT_EQ(commits_.gone(), 3u);
}

TEST_F(UnlinkerTest, EntryThatWasReadAboveLowWaterIsDeferred) {
  Commit(10, {"k"});
  {
    ReclamationDomain::Guard guard(domain_);
    RecordTable::RaiseLastRead(*Find("k"), Timestamp{low_water_.value + 1});
  }
  CollectThrough(10);
  EXPECT_EQ(Chain("k"), "");
  EXPECT_EQ(entries_.deferred_entries(), 1u);
  entries_.RetryAll(kMaxTimestamp);
  EXPECT_EQ(Chain("k"), "-");
}

TEST_F(UnlinkerTest, AbortedTransactionLeavesBelowAnotherOne) {
  Commit(10, {"k"});
  TransactionRecord* const aborted = Write(20, {"k", "other"});
  ASSERT_TRUE(aborted->TryAbort());
  unlinker_.AddAborted(aborted);
  commits_.CountArrival();
  unlinker_.CollectAborted();
  EXPECT_EQ(Chain("k"), "10");
  EXPECT_EQ(Chain("other"), "-");
  EXPECT_EQ(commits_.waiting(), 1u);  // the commit
}

TEST_F(UnlinkerTest, FoldedAndUnfoldedCommitsLeaveInOnePass) {
  TransactionRecord* const record = Commit(10, {"k"});
  FinishedTransaction next;
  ASSERT_TRUE(commits_.PopThrough(kEveryPosition, &next));
  FoldedCommit folded(LastPosition(*record), record->timestamp(), {Find("k")});
  {
    // As a fold counts it.
    ReclamationDomain::Guard guard(domain_);
    const RecordEntry& entry = *Find("k");
    commits_.AddFoldedBytes(PinnedBy(entry, *entry.word.Load().head) + folded.bytes());
  }
  unlinker_.ReleaseRecord(*record);
  commits_.AddFolded(std::move(folded));
  Commit(20, {"k", "other"});
  CollectThrough(kEveryPosition);
  EXPECT_EQ(Chain("k") + Chain("other"), "--");
  EXPECT_EQ(commits_.folded_bytes(), 0u);
  EXPECT_EQ(commits_.waiting(), 0u);
}

TEST_F(UnlinkerTest, PinnedBytesAreReleasedWithTheTransaction) {
  Commit(10, {"a"})->pinned_bytes = 100;
  Commit(20, {"b"})->pinned_bytes = 11;
  CollectThrough(10);
  EXPECT_EQ(released_, 100u);
  CollectThrough(20);
  EXPECT_EQ(released_, 111u);
}

TEST_F(UnlinkerTest, PostingsOfACollectedTransactionAreSweptLater) {
  RangePartition partition;
  TransactionRecord* const record = Write(10, {"k"});
  {
    ReclamationDomain::Guard guard(domain_);
    Range& range = partition.map().at(0);
    ASSERT_TRUE(range.Post(record));
    range.AddReference();
    record->posted.push_back(&range);
  }
  Commit(record);
  CollectThrough(10);
  unlinker_.SweepPostings(true);
  ReclamationDomain::Guard guard(domain_);
  EXPECT_EQ(partition.map().at(0).posting_count(), 0u);
  EXPECT_EQ(partition.map().at(0).posted(), 1u);
}

TEST_F(UnlinkerTest, CollectedThroughStaysWhenTheDcGoesBack) {
  unlinker_.RaiseCollectedThrough(Position{Lsn{50}, 3});
  unlinker_.RaiseCollectedThrough(Position{Lsn{20}, 0});
  EXPECT_EQ(unlinker_.collected_through(), Lsn{50});
  EXPECT_EQ(unlinker_.own_collected_through(), Lsn{50});
}

class UnlinkerWithCacheTest : public CollectorFixture {
 protected:
  UnlinkerWithCacheTest() : CollectorFixture(1 << 20) {}
};

TEST_F(UnlinkerWithCacheTest, AppliedVersionBecomesACopyUnlessANewerOneStandsAbove) {
  Commit(10, {"k"});
  Commit(20, {"k"});
  CollectThrough(10);
  EXPECT_EQ(Chain("k"), "20 10");
  CollectThrough(20);
  EXPECT_EQ(Chain("k"), "0");  // a copy of the DC's record has timestamp 0
  EXPECT_EQ(cache_->refreshed(), 1u);
}

}  // namespace
}  // namespace deut::tc

// In which order commits leave the two queues, and what the figures say meanwhile (S6, S9).
#include "tc/mvcc/unapplied_commits.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tc/mvcc/collector_fixture.h"

namespace deut::tc {
namespace {

class UnappliedCommitsTest : public CollectorFixture {
 protected:
  ~UnappliedCommitsTest() override {
    // Folded commits of these tests have no entries, so nothing of them is to be collected.
    for (FinishedTransaction next; queue_.PopThrough(kEveryPosition, &next);) Drop(next);
  }

  void Unfolded(uint64_t timestamp) {
    TransactionRecord* const record = Write(timestamp, {});
    record->TryStartCommit();
    record->FinishCommit(LsnOf(timestamp));
    queue_.CountArrival();
    queue_.Add(record);
    queue_.Settle();
  }
  static FoldedCommit Folded(uint64_t timestamp) {
    return FoldedCommit(Position{LsnOf(timestamp), 1}, Timestamp{timestamp}, {});
  }
  void Drop(const FinishedTransaction& finished) {
    if (finished.record == nullptr) return;
    ReclamationDomain::Guard guard(domain_);
    finished.record->DropReference(domain_);
  }
  // Commit LSNs of those that leave, in that order.
  std::string PopThrough(Position through) {
    std::string text;
    for (FinishedTransaction next; queue_.PopThrough(through, &next);) {
      text += (text.empty() ? "" : " ") + std::to_string(next.commit().value);
      EXPECT_TRUE(next.committed());
      Drop(next);
    }
    return text;
  }

  UnappliedCommits queue_;
};

TEST_F(UnappliedCommitsTest, CommitsLeaveInCommitOrderFromBothQueues) {
  queue_.AddFolded(Folded(10));
  queue_.AddFolded(Folded(30));
  Unfolded(20);
  Unfolded(40);
  EXPECT_EQ(queue_.last_taken(), Lsn{400});
  EXPECT_EQ(PopThrough(Position{Lsn{99}, UINT32_MAX}), "");
  EXPECT_EQ(PopThrough(Position{Lsn{300}, 1}), "100 200 300");
  EXPECT_EQ(PopThrough(kEveryPosition), "400");
  EXPECT_TRUE(queue_.empty());
}

TEST_F(UnappliedCommitsTest, CommitThatIsAppliedInPartStays) {
  TransactionRecord* const record = Commit(10, {"a", "b"});
  EXPECT_EQ(LastPosition(*record), (Position{Lsn{100}, 2}));
  FinishedTransaction next;
  EXPECT_FALSE(commits_.PopThrough(Position{Lsn{100}, 1}, &next));
  CollectThrough(Position{Lsn{100}, 2});
  EXPECT_TRUE(commits_.empty());
  queue_.AddFolded(FoldedCommit(Position{Lsn{100}, 2}, Timestamp{10}, {}));
  EXPECT_EQ(PopThrough(Position{Lsn{100}, 1}), "");
  EXPECT_EQ(PopThrough(Position{Lsn{100}, 2}), "100");
}

TEST_F(UnappliedCommitsTest, ReturnedCommitsStandAtTheFrontAgain) {
  for (const uint64_t timestamp : {10, 20, 30}) queue_.AddFolded(Folded(timestamp));
  std::vector<FoldedCommit> taken;
  taken.push_back(queue_.PopFolded());
  taken.push_back(queue_.PopFolded());
  queue_.ReturnFolded(std::move(taken));
  EXPECT_EQ(queue_.folded_count(), 3u);
  EXPECT_EQ(PopThrough(kEveryPosition), "100 200 300");
  EXPECT_EQ(queue_.folded_count(), 0u);
}

TEST_F(UnappliedCommitsTest, FirstIsTheEarliestInMemoryUnlessOneIsSpilled) {
  queue_.PublishFirst(Timestamp{0});
  EXPECT_EQ(queue_.first(), Timestamp{0});
  queue_.AddFolded(Folded(20));
  queue_.PublishFirst(Timestamp{0});
  EXPECT_EQ(queue_.first(), Timestamp{20});
  Unfolded(10);
  queue_.PublishFirst(Timestamp{0});
  EXPECT_EQ(queue_.first(), Timestamp{10});
  queue_.PublishFirst(Timestamp{5});
  EXPECT_EQ(queue_.first(), Timestamp{5});
}

TEST_F(UnappliedCommitsTest, OutcomeWithoutACommitRecordCountsAsAborted) {
  TransactionRecord* const record = Write(10, {});
  EXPECT_FALSE(FinishedTransaction::Committed(*record));
  record->TryStartCommit();
  record->FinishCommit(Lsn{0});
  EXPECT_FALSE(FinishedTransaction::Committed(*record));
  Drop({.record = record, .folded = {}});
}

TEST_F(UnappliedCommitsTest, HandedOverTransactionsAreWaitingUntilTheyAreGone) {
  Unfolded(10);
  Unfolded(20);
  EXPECT_EQ(queue_.waiting(), 2u);
  queue_.CountGone(1);
  EXPECT_EQ(queue_.waiting(), 1u);
  EXPECT_EQ(queue_.gone(), 1u);
}

}  // namespace
}  // namespace deut::tc

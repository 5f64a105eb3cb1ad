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
    for (FinishedTransaction next; queue.PopThrough(kEveryPosition, &next);) Drop(next);
  }

  void Unfolded(uint64_t timestamp) {
    TransactionRecord* const record = Write(timestamp, {});
    record->TryStartCommit();
    record->FinishCommit(LsnOf(timestamp));
    queue.CountArrival();
    queue.Add(record);
    queue.Settle();
  }
  static FoldedCommit Folded(uint64_t timestamp) {
    return FoldedCommit(Position{LsnOf(timestamp), 1}, Timestamp{timestamp}, {});
  }
  void Drop(const FinishedTransaction& finished) {
    if (finished.record == nullptr) return;
    ReclamationDomain::Guard guard(domain);
    finished.record->DropReference(domain);
  }
  // Commit LSNs of those that leave, in that order.
  std::string PopThrough(Position through) {
    std::string text;
    for (FinishedTransaction next; queue.PopThrough(through, &next);) {
      text += (text.empty() ? "" : " ") + std::to_string(next.commit().value);
      EXPECT_TRUE(next.committed());
      Drop(next);
    }
    return text;
  }

  UnappliedCommits queue;
};

TEST_F(UnappliedCommitsTest, CommitsLeaveInCommitOrderFromBothQueues) {
  queue.AddFolded(Folded(10));
  queue.AddFolded(Folded(30));
  Unfolded(20);
  Unfolded(40);
  EXPECT_EQ(queue.last_taken(), Lsn{400});
  EXPECT_EQ(PopThrough(Position{Lsn{99}, UINT32_MAX}), "");
  EXPECT_EQ(PopThrough(Position{Lsn{300}, 1}), "100 200 300");
  EXPECT_EQ(PopThrough(kEveryPosition), "400");
  EXPECT_TRUE(queue.empty());
}

TEST_F(UnappliedCommitsTest, CommitThatIsAppliedInPartStays) {
  TransactionRecord* const record = Commit(10, {"a", "b"});
  EXPECT_EQ(LastPosition(*record), (Position{Lsn{100}, 2}));
  FinishedTransaction next;
  EXPECT_FALSE(commits.PopThrough(Position{Lsn{100}, 1}, &next));
  CollectThrough(Position{Lsn{100}, 2});
  EXPECT_TRUE(commits.empty());
  queue.AddFolded(FoldedCommit(Position{Lsn{100}, 2}, Timestamp{10}, {}));
  EXPECT_EQ(PopThrough(Position{Lsn{100}, 1}), "");
  EXPECT_EQ(PopThrough(Position{Lsn{100}, 2}), "100");
}

TEST_F(UnappliedCommitsTest, ReturnedCommitsStandAtTheFrontAgain) {
  for (const uint64_t timestamp : {10, 20, 30}) queue.AddFolded(Folded(timestamp));
  std::vector<FoldedCommit> taken;
  taken.push_back(queue.PopFolded());
  taken.push_back(queue.PopFolded());
  queue.ReturnFolded(std::move(taken));
  EXPECT_EQ(queue.folded_count(), 3u);
  EXPECT_EQ(PopThrough(kEveryPosition), "100 200 300");
  EXPECT_EQ(queue.folded_count(), 0u);
}

TEST_F(UnappliedCommitsTest, FirstIsTheEarliestInMemoryUnlessOneIsSpilled) {
  queue.PublishFirst(Timestamp{0});
  EXPECT_EQ(queue.first(), Timestamp{0});
  queue.AddFolded(Folded(20));
  queue.PublishFirst(Timestamp{0});
  EXPECT_EQ(queue.first(), Timestamp{20});
  Unfolded(10);
  queue.PublishFirst(Timestamp{0});
  EXPECT_EQ(queue.first(), Timestamp{10});
  queue.PublishFirst(Timestamp{5});
  EXPECT_EQ(queue.first(), Timestamp{5});
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
  EXPECT_EQ(queue.waiting(), 2u);
  queue.CountGone(1);
  EXPECT_EQ(queue.waiting(), 1u);
  EXPECT_EQ(queue.gone(), 1u);
}

}  // namespace
}  // namespace deut::tc

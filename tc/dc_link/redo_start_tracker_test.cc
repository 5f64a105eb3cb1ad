#include "tc/dc_link/redo_start_tracker.h"

#include "gtest/gtest.h"

namespace deut::tc {
namespace {

constexpr Position EndOf(uint64_t commit) { return Position{Lsn{commit}, UINT32_MAX}; }

TEST(RedoStartTrackerTest, IsTheFloorWhenEverythingIsStable) {
  RedoStartTracker tracker(0);
  tracker.ReportsFrom(Position{});
  tracker.OnCommitRead(Lsn{100}, Lsn{100});
  tracker.OnCommitRead(Lsn{200}, Lsn{200});
  tracker.Begin(Lsn{250}, Lsn{300});
  EXPECT_EQ(tracker.Finish(Lsn{300}, EndOf(200)), Lsn{250});
  EXPECT_FALSE(tracker.begun());
  EXPECT_EQ(tracker.entries(), 0u);
}

// S1, S2: the stable position passes a transaction only with its last update, and the log is needed from its first
// record on.
TEST(RedoStartTrackerTest, KeepsTheFirstRecordsOfCommitsThatAreNotStable) {
  RedoStartTracker tracker(0);
  tracker.ReportsFrom(Position{});
  tracker.OnCommitRead(Lsn{100}, Lsn{100});
  tracker.OnCommitRead(Lsn{400}, Lsn{150});  // chunks from 150 on
  tracker.OnCommitRead(Lsn{500}, Lsn{500});
  tracker.Begin(Lsn{600}, Lsn{600});
  EXPECT_EQ(tracker.Finish(Lsn{600}, EndOf(100)), Lsn{150});
  tracker.Begin(Lsn{600}, Lsn{600});
  EXPECT_EQ(tracker.Finish(Lsn{600}, Position{Lsn{400}, 7}), Lsn{150}) << "a part of the commit is not all of it";
  tracker.Begin(Lsn{600}, Lsn{600});
  EXPECT_EQ(tracker.Finish(Lsn{600}, EndOf(400)), Lsn{500});
}

TEST(RedoStartTrackerTest, AnActiveTransactionKeepsItsRecords) {
  RedoStartTracker tracker(0);
  tracker.ReportsFrom(Position{});
  tracker.OnCommitRead(Lsn{100}, Lsn{100});
  tracker.Begin(/*floor=*/Lsn{40}, /*tail_afterwards=*/Lsn{300});
  EXPECT_EQ(tracker.Finish(Lsn{300}, EndOf(100)), Lsn{40});
}

// The race of S2: a transaction with an early first record ends just before the floor is computed. It is not among
// the active ones, and its commit record has not been read yet.
TEST(RedoStartTrackerTest, ATransactionThatEndsMeanwhileIsNotMissed) {
  RedoStartTracker tracker(0);
  tracker.ReportsFrom(Position{});
  tracker.OnCommitRead(Lsn{100}, Lsn{100});
  // It wrote a chunk at 90 and reserved its commit LSN 480 before it left. The tail that is read after the floor lies
  // beyond.
  tracker.Begin(/*floor=*/Lsn{500}, /*tail_afterwards=*/Lsn{520});
  EXPECT_EQ(tracker.Finish(/*read_up_to=*/Lsn{450}, EndOf(100)), std::nullopt);
  EXPECT_TRUE(tracker.begun());
  tracker.OnCommitRead(Lsn{480}, Lsn{90});
  EXPECT_EQ(tracker.Finish(/*read_up_to=*/Lsn{520}, EndOf(100)), Lsn{90});
}

// Commits that the DC had applied but not made stable when this TC met it are not reported here.
TEST(RedoStartTrackerTest, StaysWhileUnreportedCommitsAreNotStable) {
  RedoStartTracker tracker(0);
  tracker.ReportsFrom(EndOf(1000));
  tracker.ReportsFrom(EndOf(0));  // a later incarnation of the DC changes nothing
  tracker.Begin(Lsn{2000}, Lsn{2000});
  EXPECT_EQ(tracker.Finish(Lsn{2000}, EndOf(999)), std::nullopt);
  EXPECT_FALSE(tracker.begun()) << "the next computation may see more";
  tracker.Begin(Lsn{2000}, Lsn{2000});
  EXPECT_EQ(tracker.Finish(Lsn{2000}, EndOf(1000)), Lsn{2000});
}

// Commits that were stable are forgotten. The DC's folder is put back from an older copy, to which they must be sent
// again. They are not reported again, and the log must not be trimmed before they are stable there, too.
TEST(RedoStartTrackerTest, S2StaysWhileADcThatWasPutBackFromACopyLacksForgottenCommits) {
  RedoStartTracker tracker(0);
  tracker.ReportsFrom(Position{});
  tracker.OnCommitRead(Lsn{100}, Lsn{100});
  tracker.OnCommitRead(Lsn{200}, Lsn{200});
  tracker.Begin(/*floor=*/Lsn{50}, Lsn{300});  // an active transaction holds the redo start
  EXPECT_EQ(tracker.Finish(Lsn{300}, EndOf(200)), Lsn{50});
  EXPECT_EQ(tracker.entries(), 0u);
  tracker.OnCommitRead(Lsn{200}, Lsn{200});  // read again, to be sent to the copy
  tracker.Begin(Lsn{300}, Lsn{300});
  EXPECT_EQ(tracker.Finish(Lsn{300}, EndOf(100)), std::nullopt) << "commit 200 is not stable any more";
  tracker.Begin(Lsn{300}, Lsn{300});
  EXPECT_EQ(tracker.Finish(Lsn{300}, EndOf(200)), Lsn{300});
}

TEST(RedoStartTrackerTest, RereadCommitsCountOnce) {
  RedoStartTracker tracker(0);
  tracker.ReportsFrom(Position{});
  for (int round = 0; round < 3; ++round) {
    for (uint64_t lsn = 100; lsn <= 500; lsn += 100) tracker.OnCommitRead(Lsn{lsn}, Lsn{lsn});
  }
  EXPECT_EQ(tracker.entries(), 5u);
}

TEST(RedoStartTrackerTest, RemembersIntervalsNotCommits) {
  RedoStartTracker tracker(1000);
  tracker.ReportsFrom(Position{});
  for (uint64_t lsn = 10; lsn <= 100000; lsn += 10) tracker.OnCommitRead(Lsn{lsn}, Lsn{lsn});
  EXPECT_LE(tracker.entries(), 100u);
  // Coarse, but never beyond the needed log.
  for (uint64_t stable = 10; stable < 100000; stable += 990) {
    tracker.Begin(Lsn{100010}, Lsn{100010});
    const std::optional<Lsn> lsn = tracker.Finish(Lsn{100010}, EndOf(stable));
    ASSERT_TRUE(lsn.has_value());
    EXPECT_LE(*lsn, Lsn{stable + 10});
    EXPECT_GE(lsn->value + 1010, stable);
  }
}

}  // namespace
}  // namespace deut::tc

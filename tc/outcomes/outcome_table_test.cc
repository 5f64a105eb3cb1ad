// Outcomes of transactions, asked before, during and after their commit, in each order of the race. An evicted commit is not denied. A transaction
// that was denied does not commit, in this process or the next.
#include "tc/outcomes/outcome_table.h"

#include <atomic>
#include <bit>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"

namespace deut::tc {
namespace {

constexpr uint64_t kFirst = 100;  // first timestamp of this process

std::string Text(const Result<OutcomeAnswer>& answer) {
  if (!answer.ok()) return std::string(ErrorCodeName(answer.status().code()));
  switch (answer->outcome) {
    case TransactionOutcome::kCommitted:
      return "committed " + std::to_string(answer->commit.timestamp.value) + " at " +
             std::to_string(answer->commit.commit_lsn.value);
    case TransactionOutcome::kNotCommitted:
      return "not committed";
    case TransactionOutcome::kTooOld:
      return "too old";
  }
  return "?";
}

class OutcomeTableTest : public ::testing::Test {
 protected:
  OutcomeTableTest() { Reset(); }
  ~OutcomeTableTest() override { testing::SetPointHandler(nullptr); }

  // One bucket of twelve slots.
  void Reset(const RecoveredLog& recovered = {}, Duration window = seconds(600)) {
    table_ = std::make_unique<OutcomeTable>(
        OutcomeTableOptions{.max_outcomes = 12, .window = window, .first_timestamp = Timestamp(kFirst)}, RealRuntime(),
        domain_);
    table_->Recover(recovered);
  }
  static TransactionName Name(uint64_t number, uint64_t not_before = kFirst) {
    return {.id = {.high = 7, .low = number}, .not_before = Timestamp(not_before)};
  }
  static Deadline Soon() { return RealRuntime().Now() + seconds(20); }
  std::string Ask(const TransactionName& name, uint64_t next = 1000) {
    return Text(table_->Ask(name, Timestamp(next), Soon()));
  }
  // Commits at LSN 8 * timestamp, and returns the status of the attempt as text.
  std::string Commit(const TransactionName& name, uint64_t timestamp) {
    const Result<OutcomeTable::Entry*> entry = table_->BeginCommit(name, Timestamp(timestamp));
    if (!entry.ok()) return std::string(ErrorCodeName(entry.status().code()));
    table_->Finish(*entry, Lsn(8 * timestamp));
    return "OK";
  }
  // Runs `action` once, at the first pass of the point.
  void At(const char* point, const std::function<void()>& action) {
    auto done = std::make_shared<bool>(false);
    testing::SetPointHandler([point, action, done](std::string_view name) {
      if (name != point || *done) return;
      *done = true;
      action();
    });
  }

  ReclamationDomain domain_;
  std::unique_ptr<OutcomeTable> table_;
};

TEST_F(OutcomeTableTest, ACommitIsAnsweredEachTimeTheSame) {
  EXPECT_EQ(Commit(Name(1), 110), "OK");
  EXPECT_EQ(Ask(Name(1)), "committed 110 at 880");
  EXPECT_EQ(Ask(Name(1)), "committed 110 at 880");
  EXPECT_EQ(table_->entries(), 1u);
  EXPECT_EQ(table_->fenced(), 0u);
  EXPECT_EQ(table_->asked(), 2u);
}

TEST_F(OutcomeTableTest, TransactionAskedForBeforeItsCommitNeverCommits) {
  EXPECT_EQ(Ask(Name(1)), "not committed");
  EXPECT_EQ(Commit(Name(1), 110), "ABORTED");
  EXPECT_EQ(Ask(Name(1)), "not committed");
  EXPECT_EQ(table_->fenced(), 1u);
  EXPECT_EQ(Commit(Name(2), 111), "OK") << "another one does not care";
}

TEST_F(OutcomeTableTest, ADroppedCommitIsNone) {
  const Result<OutcomeTable::Entry*> entry = table_->BeginCommit(Name(1), Timestamp(110));
  ASSERT_TRUE(entry.ok());
  table_->Drop(*entry);
  EXPECT_EQ(Ask(Name(1)), "not committed");
}

TEST_F(OutcomeTableTest, AnIdIsForOneTransaction) {
  EXPECT_EQ(Commit(Name(1), 110), "OK");
  EXPECT_EQ(Commit(Name(1), 111), "INVALID_ARGUMENT");
  EXPECT_EQ(Ask(Name(1)), "committed 110 at 880");
}

TEST_F(OutcomeTableTest, NamesAreNotYoungerThanWhatTheyName) {
  EXPECT_EQ(Commit(Name(1, 111), 110), "INVALID_ARGUMENT");
  EXPECT_EQ(Ask(Name(1, 1001), 1000), "INVALID_ARGUMENT");
  EXPECT_EQ(Ask({.id = {}, .not_before = Timestamp(kFirst)}), "INVALID_ARGUMENT");
}

// Order 1: the commit entry is published, and the client asks before the committer has looked for a fence. The asker waits and gets the commit.
TEST_F(OutcomeTableTest, AskedBetweenPublishingAndLooking) {
  std::unique_ptr<Thread> asker;
  std::string answer;
  At("outcome.published", [&] {
    std::atomic<uint32_t> found{0};
    testing::SetPointHandler([&](std::string_view name) {
      if (name == "outcome.commit_found") found.store(1);
    });
    asker = RealRuntime().StartThread("asker", [&] { answer = Ask(Name(1)); });
    while (found.load() == 0) RealRuntime().Yield();
    testing::SetPointHandler(nullptr);
  });
  EXPECT_EQ(Commit(Name(1), 110), "OK");
  asker->Join();
  EXPECT_EQ(answer, "committed 110 at 880");
}

// Order 2: the asker has seen no commit; before it publishes its fence the transaction commits. The second look finds the commit.
TEST_F(OutcomeTableTest, CommittedBetweenLookingAndFencing) {
  At("outcome.before_fence", [&] { EXPECT_EQ(Commit(Name(1), 110), "OK"); });
  EXPECT_EQ(Ask(Name(1)), "committed 110 at 880");
  EXPECT_EQ(Ask(Name(1)), "committed 110 at 880");
}

// Order 3: the same, but the commit is still being appended at the asker's second look. Each sees the other, and the committer has looked first.
TEST_F(OutcomeTableTest, BeingCommittedWhenTheFenceIsThere) {
  Result<OutcomeTable::Entry*> entry = DEUT_ERROR(kInternal, "not yet");
  std::unique_ptr<Thread> committer;
  At("outcome.before_fence", [&] {
    entry = table_->BeginCommit(Name(1), Timestamp(110));
    testing::SetPointHandler([&](std::string_view name) {
      if (name != "outcome.commit_found" || committer != nullptr) return;
      committer = RealRuntime().StartThread("committer", [&] { table_->Finish(*entry, Lsn(880)); });
    });
  });
  EXPECT_EQ(Ask(Name(1)), "committed 110 at 880");
  ASSERT_NE(committer, nullptr);
  committer->Join();
}

// A commit that is not appended before the deadline is neither committed nor not committed.
TEST_F(OutcomeTableTest, ACommitThatTakesTooLong) {
  const Result<OutcomeTable::Entry*> entry = table_->BeginCommit(Name(1), Timestamp(110));
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(Text(table_->Ask(Name(1), Timestamp(1000), RealRuntime().Now())), "DEADLINE_EXCEEDED");
  table_->Finish(*entry, Lsn(880));
  EXPECT_EQ(Ask(Name(1)), "committed 110 at 880");
}

// Askers and committers of the same ids in any order: no committed transaction was denied.
TEST_F(OutcomeTableTest, RacesAreDecidedOnce) {
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    if (round % 3 == 0) Reset();
    const TransactionName name = Name(1000 + static_cast<uint64_t>(round));
    std::atomic<int> ready{0};
    std::string first, second, committed;
    const auto together = [&](const std::function<void()>& body) {
      ready.fetch_add(1);
      while (ready.load() < 3) RealRuntime().Yield();
      body();
    };
    auto one = RealRuntime().StartThread("one", [&] { together([&] { first = Ask(name); }); });
    auto two = RealRuntime().StartThread("two", [&] { together([&] { second = Ask(name); }); });
    together([&] { committed = Commit(name, 110); });
    one->Join();
    two->Join();
    const std::string answer = committed == "OK" ? "committed 110 at 880" : "not committed";
    EXPECT_EQ(first, answer);
    EXPECT_EQ(second, answer);
    EXPECT_EQ(Ask(name), answer);
  }
}

// Thirteen do not fit: the outcome of the evicted one is unknown, those of younger names are all known.
TEST_F(OutcomeTableTest, EvictedOutcomeIsNotDenied) {
  for (uint64_t i = 0; i <= 12; ++i) ASSERT_EQ(Commit(Name(i), 110 + i), "OK");
  EXPECT_EQ(Ask(Name(0)), "too old");
  EXPECT_EQ(Ask(Name(77, 118)), "not committed");
  EXPECT_EQ(Ask(Name(12)), "committed 122 at 976");
  EXPECT_EQ(table_->entries(), 12u);
}

// A client invents ids that share a bucket with another client's commit under a hash without a key, and asks for all of them.
TEST_F(OutcomeTableTest, InventedIdsDoNotEvictAChosenCommit) {
  constexpr uint64_t kBuckets = 4096, kSlots = 12;
  table_ = std::make_unique<OutcomeTable>(
      OutcomeTableOptions{.max_outcomes = kBuckets * kSlots, .first_timestamp = Timestamp(kFirst)}, RealRuntime(),
      domain_);
  const auto bucket_without_key = [](const TransactionId& id) {
    uint64_t mixed = (id.high ^ std::rotl(id.low, 32)) * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9u;
    return ((mixed ^ (mixed >> 32)) >> 32) % kBuckets;
  };
  const TransactionName chosen = Name(1);
  EXPECT_EQ(Commit(chosen, 110), "OK");
  uint64_t asked = 0;
  for (uint64_t number = 2; asked < 2 * kSlots; ++number) {
    const TransactionName invented = Name(number);
    if (bucket_without_key(invented.id) != bucket_without_key(chosen.id)) continue;
    EXPECT_EQ(Ask(invented), "not committed");
    ++asked;
  }
  EXPECT_EQ(Ask(chosen), "committed 110 at 880");
}

// An answered question keeps its answer while the fence is there, even if the horizon has passed it.
TEST_F(OutcomeTableTest, ADenialStays) {
  for (uint64_t i = 0; i < 10; ++i) ASSERT_EQ(Commit(Name(i), 110 + i), "OK");
  EXPECT_EQ(Ask(Name(50)), "not committed");
  for (uint64_t i = 10; i < 13; ++i) ASSERT_EQ(Commit(Name(i), 110 + i), "OK");
  EXPECT_EQ(Ask(Name(51)), "too old");
  EXPECT_EQ(Ask(Name(50)), "not committed");
}

// The fence is evicted by commits; the transaction that the client asked for arrives late.
TEST_F(OutcomeTableTest, AForgottenFenceStillHolds) {
  EXPECT_EQ(Ask(Name(50), 120), "not committed");
  for (uint64_t i = 0; i < 12; ++i) ASSERT_EQ(Commit(Name(i, 130), 130 + i), "OK");
  EXPECT_EQ(Commit(Name(50), 150), "ABORTED");
  EXPECT_EQ(Commit(Name(51, 130), 151), "OK");
}

TEST_F(OutcomeTableTest, TheNextStartKnowsTheOutcomesInTheLog) {
  RecoveredLog recovered;
  recovered.outcomes = {{.id = Name(1).id, .timestamp = Timestamp(50), .commit_lsn = Lsn(400)}};
  recovered.outcome_horizon = Timestamp(40);
  Reset(recovered);
  EXPECT_EQ(Ask(Name(1, 45)), "committed 50 at 400");
  EXPECT_EQ(Ask(Name(2, 45)), "not committed");
  EXPECT_EQ(Ask(Name(3, 39)), "too old");
  // A transaction that may have been asked for in an earlier process, and arrives in this one.
  EXPECT_EQ(Commit(Name(4, 45), 110), "ABORTED");
}

// Commits that the log no longer has are forgotten, and the horizon says so.
TEST_F(OutcomeTableTest, TheLogIsCut) {
  ASSERT_EQ(Commit(Name(1), 110), "OK");
  ASSERT_EQ(Commit(Name(2), 120), "OK");
  const Result<OutcomeTable::Entry*> entry = table_->BeginCommit(Name(3), Timestamp(105));
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(table_->ForgetBelow(Lsn(880)), Timestamp(0));
  EXPECT_EQ(table_->ForgetBelow(Lsn(881)), Timestamp(111));
  EXPECT_EQ(Ask(Name(1)), "too old");
  EXPECT_EQ(Ask(Name(2)), "committed 120 at 960");
  table_->Finish(*entry, Lsn(2000));
  EXPECT_EQ(Ask(Name(3)), "committed 105 at 2000");
  EXPECT_EQ(table_->entries(), 2u);
  Reset({}, Duration(-1));
  EXPECT_EQ(Ask(Name(1)), "not committed");
  EXPECT_EQ(table_->ForgetBelow(Lsn(8)), Timestamp(0));
  EXPECT_EQ(table_->entries(), 0u) << "fences go with the window";
}

}  // namespace
}  // namespace deut::tc

// Rules L1, L2, S2: every step of a beginning transaction or snapshot against a whole round of low-water, and every step of a round
// against a whole transaction or snapshot, run at test points on one thread. Also the reservation of timestamps, and the limits.
#include "tc/txn/active_transactions.h"

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/txn/active_transactions_fixture.h"

namespace deut::tc {
namespace {

using ActiveTransactionsTest = ActiveTransactionsFixture;

// The log fails while timestamps are drawn: the counter passes the reserved timestamps, and a restarted TC begins at the end of the reservation.
TEST_F(ActiveTransactionsTest, D3NothingIsReadBelowATimestampThatALaterStartMayDraw) {
  static constexpr Timestamp kReserved{110};
  ActiveTransactions::Options options;
  options.first_timestamp = Timestamp{100};
  options.ensure_reserved = [](Timestamp timestamp, Deadline) {
    return timestamp < kReserved ? Status() : DEUT_ERROR(kIoError, "the log has failed");
  };
  options.reserved_below = [] { return kReserved; };
  active_ = std::make_unique<ActiveTransactions>(options, RealRuntime());
  for (int i = 0; i < 30; ++i) {
    Result<ActiveTransactions::Begun> begun = active_->Begin(Soon());
    EXPECT_EQ(begun.ok(), i < 10);
    if (begun.ok()) active_->End(begun->slot);
  }
  EXPECT_EQ(active_->next_timestamp(), Timestamp{130});
  EXPECT_EQ(active_->AdvanceNow(), kReserved);
  const auto snapshot = Snapshot();
  EXPECT_EQ(snapshot.timestamp, kReserved);
  active_->End(snapshot.slot);
}

TEST_F(ActiveTransactionsTest, TimestampsRiseAndLowWaterIsTheOldest) {
  EXPECT_EQ(active_->low_water(), Timestamp{100});
  const auto a = Begin(), b = Begin(), c = Begin();
  EXPECT_EQ(a.timestamp, Timestamp{100});
  EXPECT_LT(a.timestamp, b.timestamp);
  EXPECT_LT(b.timestamp, c.timestamp);
  EXPECT_EQ(active_->open_transactions(), 3u);
  active_->End(b.slot);
  EXPECT_EQ(active_->AdvanceNow(), a.timestamp);
  active_->End(a.slot);
  EXPECT_EQ(active_->AdvanceNow(), c.timestamp);
  EXPECT_EQ(active_->oldest(), c.timestamp);
  active_->End(c.slot);
  EXPECT_EQ(active_->AdvanceNow(), active_->next_timestamp());
  EXPECT_EQ(active_->open_transactions(), 0u);
}

TEST_F(ActiveTransactionsTest, NoMoreThanTheLimit) {
  Reset(65);  // rounded up
  std::vector<ActiveTransactions::Begun> all;
  for (int i = 0; i < 128; ++i) all.push_back(Begin());
  const Result<ActiveTransactions::Begun> refused = active_->Begin(Soon());
  EXPECT_EQ(refused.status().code(), ErrorCode::kResourceExhausted);
  EXPECT_GT(refused.status().retry_after_ms(), 0u);
  EXPECT_EQ(active_->BeginSnapshot(Timestamp{0}, Soon()).status().code(), ErrorCode::kResourceExhausted);
  active_->End(all[77].slot);
  EXPECT_TRUE(active_->Begin(Soon()).ok());
}

TEST_F(ActiveTransactionsTest, ATimestampThatIsNotReservedIsNotUsed) {
  ActiveTransactions::Options options;
  options.ensure_reserved = [](Timestamp t, Deadline) {
    return t.value == 2 ? Status(ErrorCode::kDeadlineExceeded, "no reservation") : Status::Ok();
  };
  ActiveTransactions reserved(options, RealRuntime());
  const auto one = reserved.Begin(Soon());
  EXPECT_EQ(one->timestamp, Timestamp{1});
  EXPECT_EQ(reserved.Begin(Soon()).status().code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(reserved.open_transactions(), 1u);
  EXPECT_EQ(reserved.Begin(Soon())->timestamp, Timestamp{3});
}

// L1: a whole round between two steps of Begin.
TEST_F(ActiveTransactionsTest, L1ARoundBetweenTwoStepsOfBegin) {
  for (const char* point : {"active.claim.before_cas", "active.begin.after_publish", "active.begin.after_draw"}) {
    SCOPED_TRACE(point);
    Reset();
    Pass();
    At(point, [this] {
      Pass();
      active_->AdvanceNow();
    });
    const auto begun = Begin();
    EXPECT_LE(active_->low_water(), begun.timestamp);
    EXPECT_LE(active_->proposed(), begun.timestamp);
    testing::SetPointHandler(nullptr);
    EXPECT_LE(active_->AdvanceNow(), begun.timestamp);
    active_->End(begun.slot);
  }
}

// L1: a whole Begin between two steps of a round.
TEST_F(ActiveTransactionsTest, L1ABeginBetweenTwoStepsOfARound) {
  for (const char* point : {"active.round.between", "active.round.scanned", "active.round.proposed"}) {
    SCOPED_TRACE(point);
    Reset();
    Pass();
    ActiveTransactions::Begun begun;
    At(point, [&] {
      begun = Begin();
      Pass();
    });
    active_->AdvanceNow();
    EXPECT_LE(active_->low_water(), begun.timestamp);
    EXPECT_LE(active_->proposed(), begun.timestamp) << "a snapshot would read above an open writer";
    active_->End(begun.slot);
  }
}

// L2: a whole round between two steps of a snapshot. It may move low-water past the value that the snapshot has loaded, until that is published.
TEST_F(ActiveTransactionsTest, L2ARoundBetweenTwoStepsOfASnapshot) {
  for (const char* point :
       {"active.claim.before_cas", "active.snapshot.before_publish", "active.snapshot.after_publish"}) {
    SCOPED_TRACE(point);
    Reset();
    At(point, [this] {
      Pass();
      active_->AdvanceNow();
    });
    const auto snapshot = Snapshot();
    EXPECT_LE(active_->low_water(), snapshot.timestamp);
    testing::SetPointHandler(nullptr);
    Pass();
    EXPECT_LE(active_->AdvanceNow(), snapshot.timestamp);
    active_->End(snapshot.slot);
  }
}

// L2: a whole snapshot between two steps of a round.
TEST_F(ActiveTransactionsTest, L2ASnapshotBetweenTwoStepsOfARound) {
  for (const char* point : {"active.round.between", "active.round.scanned", "active.round.proposed"}) {
    SCOPED_TRACE(point);
    Reset();
    Pass();
    ActiveTransactions::Begun snapshot;
    At(point, [&] { snapshot = Snapshot(); });
    active_->AdvanceNow();
    EXPECT_LE(active_->low_water(), snapshot.timestamp);
    testing::SetPointHandler(nullptr);
    EXPECT_LE(active_->AdvanceNow(), snapshot.timestamp);
    active_->End(snapshot.slot);
  }
}

// A snapshot reads below every open writer, and low-water never goes back.
TEST_F(ActiveTransactionsTest, L2SnapshotsAndWriters) {
  const auto old = Begin();
  Pass();
  active_->AdvanceNow();
  const auto snapshot = Snapshot();
  EXPECT_LE(snapshot.timestamp, old.timestamp);
  active_->End(old.slot);
  EXPECT_LE(active_->AdvanceNow(), snapshot.timestamp);
  const auto second = Snapshot();
  EXPECT_GE(second.timestamp, snapshot.timestamp);
  active_->End(snapshot.slot);
  EXPECT_LE(active_->AdvanceNow(), second.timestamp);
  active_->End(second.slot);
  const Timestamp all = active_->AdvanceNow();
  EXPECT_EQ(all, active_->next_timestamp());
  const auto late = Begin();
  EXPECT_EQ(active_->AdvanceNow(), all);
  active_->End(late.slot);
}

// S2: the bound is published before the record is reserved, and OldestFirstRecord reads the tail first.
TEST_F(ActiveTransactionsTest, S2TheFloorNeverPassesAnOpenTransactionsFirstRecord) {
  EXPECT_EQ(active_->OldestFirstRecord(), Lsn{1000});
  const auto a = Begin(), b = Begin();
  EXPECT_EQ(active_->OldestFirstRecord(), Lsn{1000}) << "no record yet";
  active_->PublishFirstRecord(a.slot);
  tail_ = 2000;
  active_->PublishFirstRecord(b.slot);
  tail_ = 3000;
  EXPECT_EQ(active_->OldestFirstRecord(), Lsn{1000});
  active_->End(a.slot);
  EXPECT_EQ(active_->OldestFirstRecord(), Lsn{2000});
  active_->End(b.slot);
  EXPECT_EQ(active_->OldestFirstRecord(), Lsn{3000});
  const auto c = Begin();
  EXPECT_EQ(active_->OldestFirstRecord(), Lsn{3000}) << "the slot of an ended transaction is clean";
  active_->End(c.slot);
}

TEST_F(ActiveTransactionsTest, LostCompareAndSwapsAreRetried) {
  int lost = 0;
  testing::SetCasHandler([&](std::string_view name) { return name == "active.claim.cas" && lost++ == 0; });
  const auto begun = Begin();
  testing::SetCasHandler(nullptr);
  EXPECT_EQ(lost, 2);
  EXPECT_EQ(active_->open_transactions(), 1u);
  active_->End(begun.slot);
}

// S6, early: the timestamps at which a transaction reads now or may read from now on.
class ReadersTest : public ActiveTransactionsFixture {
 protected:
  bool Reads(const Readers& readers, uint64_t timestamp) {
    return readers.AnyIn(Timestamp{timestamp - 1}, Timestamp{timestamp});
  }
};

TEST_F(ReadersTest, OpenTransactionsSnapshotsAndAllThatMayCome) {
  const auto t100 = Begin();
  Pass();
  active_->AdvanceNow();
  const auto t102 = Begin();
  active_->End(t100.slot);
  active_->AdvanceNow();
  const auto snapshot = Snapshot();
  EXPECT_EQ(snapshot.timestamp, Timestamp{102});
  const auto t103 = Begin();
  active_->End(t102.slot);
  for (int i = 0; i < 4; ++i) Pass();
  const Readers readers = *active_->RoundForReaders();
  for (const uint64_t no : {100, 101, 104, 105, 107}) EXPECT_FALSE(Reads(readers, no)) << no;
  for (const uint64_t yes : {102, 103, 108, 109, 1000}) EXPECT_TRUE(Reads(readers, yes)) << yes;
  EXPECT_TRUE(readers.AnyIn(Timestamp{100}, Timestamp{102}));
  EXPECT_FALSE(readers.AnyIn(Timestamp{103}, Timestamp{107}));
  active_->End(t103.slot);
  active_->End(snapshot.slot);
}

TEST_F(ReadersTest, OneRoundAtATime) {
  bool other = true;
  At("active.round.scanned", [&] { other = active_->RoundForReaders().has_value(); });
  active_->AdvanceNow();
  EXPECT_FALSE(other);
  EXPECT_TRUE(active_->RoundForReaders().has_value());
}

// A slot shows a lower bound until its timestamp is stored: every timestamp from that bound on may be read.
TEST_F(ReadersTest, TransactionThatDrawsMayReadAllAboveItsBound) {
  const auto t100 = Begin();
  std::optional<Readers> readers;
  bool nested = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (nested) return;
    nested = true;
    if (name == "active.begin.after_publish") {
      Pass();
      Pass();
    } else if (name == "active.begin.after_draw") {
      Pass();
      readers = active_->RoundForReaders();
    }
    nested = false;
  });
  const auto drawn = Begin();
  testing::SetPointHandler(nullptr);
  EXPECT_EQ(drawn.timestamp, Timestamp{103});
  EXPECT_TRUE(Reads(*readers, 103));
  EXPECT_TRUE(Reads(*readers, 100));
  active_->End(drawn.slot);
  active_->End(t100.slot);
}

// A lower bound that was loaded before RoundForReaders and is published after it is no timestamp at which any transaction reads: no snapshot begins
// there.
TEST_F(ReadersTest, SnapshotsBeginWhereVersionsWereKept) {
  const auto t100 = Begin();
  active_->AdvanceNow();
  std::optional<Readers> readers;
  std::optional<ActiveTransactions::Begun> snapshot;
  bool nested = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (nested) return;
    nested = true;
    if (name == "active.begin.before_publish") {
      for (int i = 0; i < 4; ++i) Pass();
      readers = active_->RoundForReaders();
    } else if (name == "active.begin.after_publish") {
      active_->End(t100.slot);
      active_->AdvanceNow();
      snapshot = Snapshot();
    }
    nested = false;
  });
  const auto late = Begin();
  testing::SetPointHandler(nullptr);
  EXPECT_EQ(late.timestamp, Timestamp{105});
  EXPECT_FALSE(Reads(*readers, 101));
  EXPECT_TRUE(Reads(*readers, snapshot->timestamp.value)) << snapshot->timestamp.value;
  EXPECT_LE(snapshot->timestamp, late.timestamp);
  EXPECT_LE(active_->low_water(), late.timestamp);
  active_->End(snapshot->slot);
  active_->End(late.slot);
  active_->AdvanceNow();
  EXPECT_EQ(active_->low_water(), Timestamp{106});
}

// The same if a later RoundForReaders has seen another such lower bound: it must not add timestamps below to those at which versions were kept.
TEST_F(ReadersTest, SnapshotsBeginWhereVersionsWereKeptAlsoAfterLaterAnswers) {
  const auto t100 = Begin();
  active_->AdvanceNow();
  const std::thread::id here = std::this_thread::get_id();
  Event loaded, publish, published, end;
  std::optional<Readers> first;
  std::optional<ActiveTransactions::Begun> early, snapshot;
  std::thread other;
  bool nested = false;
  testing::SetPointHandler([&](std::string_view name) {
    if (std::this_thread::get_id() != here) {
      if (name == "active.begin.before_publish") {
        loaded.Signal(RealRuntime());
        EXPECT_TRUE(publish.Wait(RealRuntime(), Soon()));
      } else if (name == "active.begin.after_publish") {
        published.Signal(RealRuntime());
        EXPECT_TRUE(end.Wait(RealRuntime(), Soon()));
      }
      return;
    }
    if (nested) return;
    nested = true;
    if (name == "active.begin.before_publish") {  // this thread has loaded 103, the other one 101
      Pass();
      Pass();
      first = active_->RoundForReaders();
      publish.Signal(RealRuntime());
      EXPECT_TRUE(published.Wait(RealRuntime(), Soon()));
      EXPECT_TRUE(active_->RoundForReaders().has_value());
      end.Signal(RealRuntime());
      other.join();
      active_->End(t100.slot);
    } else if (name == "active.begin.after_publish") {
      active_->AdvanceNow();
      snapshot = Snapshot();
    }
    nested = false;
  });
  other = std::thread([&] { early = Begin(); });
  EXPECT_TRUE(loaded.Wait(RealRuntime(), Soon()));
  nested = true;
  Pass();
  Pass();
  nested = false;
  const auto late = Begin();
  testing::SetPointHandler(nullptr);
  EXPECT_EQ(early->timestamp, Timestamp{105});
  EXPECT_EQ(late.timestamp, Timestamp{106});
  EXPECT_FALSE(Reads(*first, 103));
  EXPECT_TRUE(Reads(*first, snapshot->timestamp.value)) << snapshot->timestamp.value;
  EXPECT_LE(snapshot->timestamp, early->timestamp);
  active_->End(snapshot->slot);
  active_->End(early->slot);
  active_->End(late.slot);
}

}  // namespace
}  // namespace deut::tc

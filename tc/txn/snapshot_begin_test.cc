// How snapshots begin (L2): they wait for writers, pass transactions that have only read for long, and hold no slot while they wait. Every step of
// a snapshot that passes a transaction against the whole first write of that transaction, and vice versa.
#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/txn/active_transactions.h"
#include "tc/txn/active_transactions_fixture.h"

namespace deut::tc {
namespace {

using SnapshotBeginTest = ActiveTransactionsFixture;

TEST_F(SnapshotBeginTest, ASnapshotWaitsUntilItContainsTheMinimum) {
  const auto old = Begin();
  const auto mine = Begin();
  active_->End(mine.slot);
  EXPECT_EQ(active_->BeginSnapshot(mine.timestamp, deut::tc::At(milliseconds(20))).status().code(),
            ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(active_->BeginSnapshot(active_->next_timestamp(), Soon()).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(active_->open_transactions(), 1u);
  Result<ActiveTransactions::Begun> snapshot = DEUT_ERROR(kInternal, "not begun");
  {
    std::unique_ptr<Thread> waiting =
        RealRuntime().StartThread("waiting", [&] { snapshot = active_->BeginSnapshot(mine.timestamp, Soon()); });
    active_->End(old.slot);
  }
  ASSERT_TRUE(snapshot.ok());
  EXPECT_GT(snapshot->timestamp, mine.timestamp);
}

// L2, ahead: a transaction that has only read for long holds no snapshot back, and writes nothing below one that has passed it.
TEST_F(SnapshotBeginTest, L2ASnapshotPassesALongReader) {
  pass_readers_after_ = milliseconds(1);
  Reset();
  const auto reader = Begin();
  const auto mine = Begin();
  active_->End(mine.slot);
  const auto snapshot = Snapshot(mine.timestamp);
  EXPECT_EQ(snapshot.timestamp.value, mine.timestamp.value + 1);
  const auto later = Begin();
  EXPECT_EQ(active_->AdvanceNow(), reader.timestamp) << "low-water waits for readers";
  EXPECT_TRUE(active_->BecomeWriter(later.slot, later.timestamp));
  EXPECT_FALSE(active_->BecomeWriter(reader.slot, reader.timestamp));
  active_->End(reader.slot);
  EXPECT_EQ(active_->AdvanceNow(), snapshot.timestamp) << "and for snapshots";
  active_->End(snapshot.slot);
  active_->End(later.slot);
}

TEST_F(SnapshotBeginTest, L2NoSnapshotPassesAWriter) {
  pass_readers_after_ = milliseconds(1);
  for (const bool from_begin : {true, false}) {
    Reset();
    const auto writer = *active_->Begin(Soon(), from_begin);
    if (!from_begin) ASSERT_TRUE(active_->BecomeWriter(writer.slot, writer.timestamp));
    const auto mine = Begin();
    active_->End(mine.slot);
    EXPECT_EQ(active_->BeginSnapshot(mine.timestamp, deut::tc::At(milliseconds(30))).status().code(),
              ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(active_->latest_passing_snapshot(), Timestamp{0}) << "nobody loses to a snapshot that has not begun";
    active_->End(writer.slot);
    active_->End(Snapshot(mine.timestamp).slot);
  }
}

// L2, ahead, from both sides: all steps of one run between two steps of the other.
TEST_F(SnapshotBeginTest, L2AFirstWriteBetweenTwoStepsOfASnapshotThatPasses) {
  pass_readers_after_ = milliseconds(1);
  for (const char* point : {"active.snapshot.may_pass", "active.snapshot.ahead_published"}) {
    Reset();
    const auto reader = Begin();
    const auto mine = Begin();
    active_->End(mine.slot);
    std::optional<bool> writes;
    At(point, [&] { writes = active_->BecomeWriter(reader.slot, reader.timestamp); });
    const auto snapshot = active_->BeginSnapshot(mine.timestamp, deut::tc::At(milliseconds(50)));
    ASSERT_TRUE(writes.has_value());
    EXPECT_FALSE(*writes && snapshot.ok()) << point;
    testing::SetPointHandler(nullptr);
  }
}

TEST_F(SnapshotBeginTest, L2ASnapshotThatPassesBetweenTwoStepsOfAFirstWrite) {
  pass_readers_after_ = milliseconds(1);
  for (const char* point : {"active.writer.flagged", "active.writer.looked"}) {
    Reset();
    const auto reader = Begin();
    const auto mine = Begin();
    active_->End(mine.slot);
    Result<ActiveTransactions::Begun> snapshot = DEUT_ERROR(kInternal, "not begun");
    At(point, [&] { snapshot = active_->BeginSnapshot(mine.timestamp, deut::tc::At(milliseconds(50))); });
    const bool writes = active_->BecomeWriter(reader.slot, reader.timestamp);
    EXPECT_FALSE(writes && snapshot.ok()) << point;
    testing::SetPointHandler(nullptr);
  }
}

// S6: a version that no member of A reads is unlinked early; so a snapshot that passes a transaction reads at a member of A.
TEST_F(SnapshotBeginTest, S6ASnapshotThatPassesReadsWhereVersionsWereKept) {
  pass_readers_after_ = milliseconds(1);
  Reset();
  const auto reader = Begin();
  const auto mine = Begin();
  active_->End(mine.slot);
  for (int i = 0; i < 5; ++i) Pass();
  const std::optional<Readers> readers = active_->RoundForReaders();
  ASSERT_TRUE(readers.has_value());
  const auto snapshot = Snapshot(mine.timestamp);
  EXPECT_TRUE(readers->AnyIn(Timestamp{snapshot.timestamp.value - 1}, snapshot.timestamp));
  EXPECT_GT(snapshot.timestamp, mine.timestamp);
  EXPECT_TRUE(active_->RoundForReaders()->AnyIn(Timestamp{snapshot.timestamp.value - 1}, snapshot.timestamp));
  active_->End(snapshot.slot);
  active_->End(reader.slot);
}

// Threads that wait for a snapshot hold no slots, and all wake when it may begin.
TEST_F(SnapshotBeginTest, WhileSnapshotsWaitTheirSlotsAreFree) {
  constexpr int kWaiting = 70;  // more than there are slots
  const auto old = Begin();
  const auto mine = Begin();
  active_->End(mine.slot);
  std::atomic<int> waiting{0}, begun{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < kWaiting; ++i) {
    threads.push_back(RealRuntime().StartThread("waiting", [&] {
      waiting.fetch_add(1);
      const Result<ActiveTransactions::Begun> snapshot = active_->BeginSnapshot(mine.timestamp, Soon());
      ASSERT_TRUE(snapshot.ok()) << snapshot.status().ToString();
      EXPECT_GT(snapshot->timestamp, mine.timestamp);
      active_->End(snapshot->slot);
      begun.fetch_add(1);
    }));
  }
  while (waiting.load() != kWaiting) RealRuntime().Yield();
  for (int i = 0; i < 200; ++i) {
    EXPECT_LE(active_->open_transactions(), 1u);
    active_->AdvanceNow();
  }
  EXPECT_EQ(begun.load(), 0);
  active_->End(old.slot);
  threads.clear();
  EXPECT_EQ(begun.load(), kWaiting);
  EXPECT_EQ(active_->open_transactions(), 0u);
}

// L2: the leader waits for a late timestamp, which a writer holds back. A snapshot that wants an earlier one passes the reader meanwhile.
TEST_F(SnapshotBeginTest, L2ASnapshotPassesAReaderWhileAnotherWaitsForAWriter) {
  pass_readers_after_ = milliseconds(1);
  Reset();
  const auto reader = Begin();
  const auto early = Begin();
  active_->End(early.slot);
  const auto writer = *active_->Begin(Soon(), /*writes=*/true);
  const auto late = Begin();
  active_->End(late.slot);
  Event leads;
  std::atomic<bool> seen{false};
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "active.snapshot.leads" && !seen.exchange(true)) leads.Signal(RealRuntime());
  });
  Result<ActiveTransactions::Begun> waited = DEUT_ERROR(kInternal, "not begun");
  std::unique_ptr<Thread> waiting =
      RealRuntime().StartThread("waiting", [&] { waited = active_->BeginSnapshot(late.timestamp, Soon()); });
  ASSERT_TRUE(leads.Wait(RealRuntime(), Soon()));
  const Result<ActiveTransactions::Begun> passed =
      active_->BeginSnapshot(early.timestamp, deut::tc::At(milliseconds(5000)));
  EXPECT_TRUE(passed.ok()) << passed.status().ToString();
  EXPECT_FALSE(active_->BecomeWriter(reader.slot, reader.timestamp)) << "it was passed";
  active_->End(writer.slot);
  active_->End(reader.slot);
  waiting.reset();
  testing::SetPointHandler(nullptr);
  ASSERT_TRUE(waited.ok()) << waited.status().ToString();
  EXPECT_GT(waited->timestamp, late.timestamp);
  active_->End(waited->slot);
  if (passed.ok()) active_->End(passed->slot);
}

}  // namespace
}  // namespace deut::tc

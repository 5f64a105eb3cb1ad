// Committers that write their own commit, and records that no thread waits for urgently.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/blocking_hook.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

void Until(const std::function<bool()>& condition) {
  while (!condition()) RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(20));
}

struct Told final : DurabilityCallback {
  void OnDurable(const Status& s) override {
    code = s.code();
    event.Signal(RealRuntime());
  }
  ErrorCode code = ErrorCode::kInternal;
  Event event;
};

class LogLeadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.on_failure = [this](const Status&) { failures_.fetch_add(1); };
  }
  void TearDown() override {
    log_ = nullptr;
    testing::SetPointHandler({});
  }

  void Open() { log_ = MustOpen(options_, *storage_, &recovered_); }

  // Commits and waits, one commit after the other, until the next one is sure to be led if the log thread stays where
  // it is.
  void CommitUntilLed() {
    const uint64_t before = log_->counters().led_blocks;
    while (log_->counters().led_blocks == before) ASSERT_TRUE(log_->WaitDurable(Next().lsn, kNoDeadline).ok());
  }
  AppendResult Next() { return Commit(*log_, ++committed_); }

  // Checks that everything that was committed is there, in order, also after another start.
  void ExpectAll() {
    log_ = nullptr;
    Open();
    const std::vector<uint64_t> found = CommitTimestamps(ReadAll(*log_, recovered_.redo_start.lsn));
    ASSERT_EQ(found.size(), committed_);
    for (uint64_t i = 0; i < committed_; ++i) ASSERT_EQ(found[i], i + 1);
  }

  FaultyDisk disk_{RealRuntime(), 1};
  const std::unique_ptr<Storage> storage_ = disk_.Mount();
  RedoLogOptions options_ = SmallLog("/log");
  std::atomic<int> failures_{0};
  RecoveredLog recovered_;
  std::unique_ptr<RedoLog> log_;
  uint64_t committed_ = 0;
};

TEST_F(LogLeadTest, ALoneCommitterWritesItself) {
  Open();
  // Across the ends of segments and around the ring, which only the log thread handles.
  while (log_->counters().led_blocks < 100 || log_->counters().segments < 4) {
    const AppendResult commit = Next();
    ASSERT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline).ok());
    ASSERT_GE(log_->durable(), commit.end);
  }
  ExpectAll();
}

// A leader's write is not a wait of the runtime. BlockingHook still tells a thread that has postponed work.
TEST_F(LogLeadTest, LeaderRunsTheBeforeWaitHook) {
  Open();
  int told = 0;
  const std::function<void()> tell = [&] { ++told; };
  const uint64_t before = log_->counters().led_blocks;
  while (log_->counters().led_blocks < before + 20) {
    const AppendResult commit = Next();
    const BlockingHook before_wait(tell);
    const uint64_t led = log_->counters().led_blocks;
    const int was = told;
    ASSERT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline).ok());
    if (log_->counters().led_blocks != led) EXPECT_EQ(told, was + 1);
  }
  ExpectAll();
}

TEST_F(LogLeadTest, WaiterWithAShortDeadlineDoesNotLead) {
  Open();
  CommitUntilLed();
  const uint64_t before = log_->counters().led_blocks;
  for (int i = 0; i < 50; ++i) (void)log_->WaitDurable(Next().lsn, In(milliseconds(500)));
  EXPECT_EQ(log_->counters().led_blocks, before);
  ExpectAll();
}

// No thread waits, or none urgently. The records are written all the same.
TEST_F(LogLeadTest, RecordsWithoutAnUrgentWaiterAreWritten) {
  Open();
  for (int i = 0; i < 20; ++i) {
    const AppendResult commit = Next();
    Until([&] { return log_->durable() >= commit.end; });
    Told told;
    const AppendResult awaited = Next();
    if (!log_->NotifyWhenDurable(awaited.lsn, &told, Urgency::kNotUrgent)) told.event.Wait(RealRuntime(), kNoDeadline);
    EXPECT_GE(log_->durable(), awaited.end);
    if (i % 3 == 0) CommitUntilLed();
  }
  // Also for a waiter that registers before the record is appended.
  Told told;
  ASSERT_FALSE(log_->NotifyWhenDurable(log_->tail(), &told, Urgency::kNotUrgent));
  Next();
  told.event.Wait(RealRuntime(), kNoDeadline);
  EXPECT_EQ(told.code, ErrorCode::kOk);
  ExpectAll();
}

TEST_F(LogLeadTest, RecordsThatNobodyWaitsForCollect) {
  options_.linger = seconds(1000);
  options_.segment_bytes = 4 << 20;
  Open();
  CommitUntilLed();
  const uint64_t blocks = log_->counters().blocks;
  AppendResult last;
  for (int i = 0; i < 50; ++i) last = Next();
  EXPECT_EQ(log_->counters().blocks, blocks);
  ASSERT_TRUE(log_->WaitDurable(last.lsn, kNoDeadline).ok());
  EXPECT_EQ(log_->counters().blocks, blocks + 1);
  ExpectAll();
}

// In a full ring every append waits for records that are not urgent.
TEST_F(LogLeadTest, AFullRingMakesItsRecordsUrgent) {
  options_.linger = seconds(1000);
  Open();
  for (int i = 0; i < 500; ++i) Commit(*log_, ++committed_, 500);
  ExpectAll();
}

TEST_F(LogLeadTest, AFailedLedWriteIsReportedOnceAndAnswersAll) {
  Open();
  for (;;) {
    CommitUntilLed();
    Told told;
    const Lsn durable = log_->durable();
    const uint64_t led = log_->counters().led_blocks;
    const int fault = disk_.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskWrite, .count = 1});
    const AppendResult commit = Next();
    const bool taken = !log_->NotifyWhenDurable(commit.lsn, &told, Urgency::kNotUrgent);
    EXPECT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline) == ErrorCode::kIoError);
    ASSERT_TRUE(taken);
    told.event.Wait(RealRuntime(), kNoDeadline);
    EXPECT_EQ(told.code, ErrorCode::kIoError);
    EXPECT_EQ(log_->durable(), durable);
    EXPECT_EQ(failures_.load(), 1);
    EXPECT_NE(log_->failure().message().find("/log/log-"), std::string_view::npos) << log_->failure().ToString();
    // Later waiters are answered as well, although nothing is written any more.
    EXPECT_TRUE(log_->WaitDurable(Next().lsn, kNoDeadline) == ErrorCode::kIoError);
    Told later;
    if (!log_->NotifyWhenDurable(commit.lsn, &later, Urgency::kNotUrgent)) later.event.Wait(RealRuntime(), kNoDeadline);
    EXPECT_EQ(later.code, ErrorCode::kIoError);
    disk_.RemoveFault(fault);
    if (log_->counters().led_blocks > led) return;
    // The log thread wrote the record first: retry.
    log_ = nullptr;
    failures_.store(0);
    Open();
  }
}

// Threads that wait and threads that do not, all at once.
TEST_F(LogLeadTest, EverybodyAtOnce) {
  Open();
  std::atomic<uint64_t> next{1};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 4; ++t) {
    threads.push_back(RealRuntime().StartThread("committer", [&, t] {
      for (int i = 0; i < 400; ++i) {
        const AppendResult commit = Commit(*log_, next.fetch_add(1));
        const bool waits = t == 0 || i % 7 == t, is_told = !waits && i % 5 == t;
        if (waits) ASSERT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline).ok());
        Told told;
        if (is_told && !log_->NotifyWhenDurable(commit.lsn, &told, i % 2 == 0 ? Urgency::kNotUrgent : Urgency::kUrgent))
          told.event.Wait(RealRuntime(), kNoDeadline);
        if (waits || is_told) ASSERT_GE(log_->durable(), commit.end);
      }
    }));
  }
  threads.clear();
  const uint64_t count = next.load() - 1;
  log_ = nullptr;
  Open();
  EXPECT_EQ(CommitTimestamps(ReadAll(*log_, recovered_.redo_start.lsn)).size(), count);
}

#ifdef DEUT_TEST_POINTS

// A committer that is stopped in the middle of its led write.
class StoppedLeaderTest : public LogLeadTest {
 protected:
  // Returns when the leader stands directly before its write.
  void StopALeader() {
    testing::SetPointHandler([this](std::string_view name) {
      if (name != "redo_log.writer.before_led_write" || !armed_.exchange(false)) return;
      stopped_.Signal(RealRuntime());
      released_.Wait(RealRuntime(), kNoDeadline);
    });
    leader_ = RealRuntime().StartThread("leader", [this] {
      for (; !stopped_.IsSet(); ++commits_) status_ = log_->WaitDurable(Commit(*log_, commits_).lsn, kNoDeadline);
    });
    stopped_.Wait(RealRuntime(), kNoDeadline);
  }
  void Release() {
    released_.Signal(RealRuntime());
    leader_->Join();
  }

  std::atomic<bool> armed_{true};
  Event stopped_, released_;
  std::unique_ptr<Thread> leader_;
  uint64_t commits_ = 1;
  Status status_;
};

// D2: one thread forms blocks at a time. Others append meanwhile, and are served afterwards.
TEST_F(StoppedLeaderTest, NobodyElseWritesWhileOneLeads) {
  Open();
  StopALeader();
  const uint64_t blocks = log_->counters().blocks;
  const Lsn durable = log_->durable();
  Told told;
  const AppendResult other = Commit(*log_, 1'000'000);
  ASSERT_FALSE(log_->NotifyWhenDurable(other.lsn, &told));
  EXPECT_TRUE(log_->WaitDurable(other.lsn, In(milliseconds(200))) == ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(log_->counters().blocks, blocks);
  EXPECT_EQ(log_->durable(), durable);
  // After two threads have written, neither can be trusted to do anything, not even to end.
  if (HasFailure()) FailStop("more than one has written");
  Release();
  EXPECT_TRUE(status_.ok()) << status_.ToString();
  told.event.Wait(RealRuntime(), kNoDeadline);
  EXPECT_EQ(told.code, ErrorCode::kOk);
  EXPECT_GE(log_->durable(), other.end);
}

// A record that is appended during a led write, and that no thread waits for, is written afterwards.
TEST_F(StoppedLeaderTest, RecordAppendedDuringALedWriteIsWrittenAfterwards) {
  Open();
  StopALeader();
  const AppendResult other = Commit(*log_, 1'000'000);
  Release();
  Until([&] { return log_->durable() >= other.end; });
}

TEST_F(StoppedLeaderTest, AWriteThatDoesNotComeBackIsAFailure) {
  options_.device_timeout = milliseconds(500);
  Open();
  StopALeader();
  Until([&] { return failures_.load() == 1; });
  EXPECT_NE(log_->failure().message().find("has not come back"), std::string_view::npos) << log_->failure().ToString();
  Release();
  EXPECT_TRUE(status_ == ErrorCode::kIoError) << status_.ToString();
}

// Stop waits for the leader, and writes the records that came meanwhile.
TEST_F(StoppedLeaderTest, StopComesAfterTheWrite) {
  Open();
  StopALeader();
  const AppendResult other = Commit(*log_, 1'000'000);
  const auto stopper = RealRuntime().StartThread("stopper", [this] { log_->Stop(); });
  Release();
  stopper->Join();
  EXPECT_TRUE(status_.ok()) << status_.ToString();
  EXPECT_GE(log_->durable(), other.end);
}

// The log thread has found a record that is not urgent, and is about to rest. A thread that stops the log then finds
// it awake. That holds also after the log thread's last look.
class LogSleepTest : public LogLeadTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(LogSleepTest, StopIsSeenWhileARecordIsPending) {
  options_.linger = microseconds(20);
  Open();
  Event rests, goes_on;
  std::atomic<bool> reached{false}, told{false};
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "redo_log.writer.told_to_stop") told.store(true);
    if (name != GetParam() || reached.exchange(true)) return;
    rests.Signal(RealRuntime());
    goes_on.Wait(RealRuntime(), kNoDeadline);
  });
  // After a long sleep the log thread passes there with the first record. After a short one it finds the record due.
  while (!reached.load()) {
    const AppendResult commit = Next();
    Until([&] { return reached.load() || log_->durable() >= commit.end; });
    if (!reached.load()) RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(5));
  }
  rests.Wait(RealRuntime(), kNoDeadline);
  Event stopped;
  const auto stopper = RealRuntime().StartThread("stopper", [&] {
    log_->Stop();
    stopped.Signal(RealRuntime());
  });
  Until([&] { return told.load(); });
  goes_on.Signal(RealRuntime());
  EXPECT_TRUE(stopped.Wait(RealRuntime(), In(seconds(20))));
  if (!stopped.IsSet()) Next();  // wakes the log thread, so that the test fails instead of hanging
  stopper->Join();
  testing::SetPointHandler({});
  ExpectAll();
}

INSTANTIATE_TEST_SUITE_P(Points, LogSleepTest,
                         ::testing::Values("redo_log.writer.before_pending_rest", "redo_log.writer.after_look"));

thread_local bool is_late = false;

// The log thread has seen the waiter, but not that it is urgent. It is about to rest with a record that is not
// due. The waiter turns urgent then, and finds the thread awake. Nothing else happens for long.
TEST_F(LogLeadTest, WaiterThatTurnsUrgentAfterTheLastLookIsServed) {
  options_.linger = seconds(1000);
  Open();
  // A spare that is added wakes the log thread, which must not happen below.
  while (log_->counters().spare_segments < options_.spare_segments) RealRuntime().Yield();
  Event writes, written, registers, hurries, looked, rests;
  std::atomic<bool> armed{true};
  testing::SetPointHandler([&](std::string_view name) {
    if (!armed.load()) return;
    if (name == "redo_log.writer.before_durable" && !writes.IsSet()) {
      writes.Signal(RealRuntime());
      written.Wait(RealRuntime(), kNoDeadline);
    } else if (name == "redo_log.writer.registered" && is_late) {
      registers.Signal(RealRuntime());
      hurries.Wait(RealRuntime(), kNoDeadline);
    } else if (name == "redo_log.writer.after_look" && registers.IsSet() && !looked.IsSet()) {
      looked.Signal(RealRuntime());
      rests.Wait(RealRuntime(), kNoDeadline);
    }
  });
  Told first, late;
  ASSERT_FALSE(log_->NotifyWhenDurable(Next().lsn, &first, Urgency::kUrgent));
  writes.Wait(RealRuntime(), kNoDeadline);
  const AppendResult commit = Next();
  const auto waiter = RealRuntime().StartThread("late", [&] {
    is_late = true;
    EXPECT_FALSE(log_->NotifyWhenDurable(commit.lsn, &late, Urgency::kUrgent));
  });
  registers.Wait(RealRuntime(), kNoDeadline);
  written.Signal(RealRuntime());
  looked.Wait(RealRuntime(), kNoDeadline);
  hurries.Signal(RealRuntime());
  waiter->Join();
  rests.Signal(RealRuntime());
  EXPECT_TRUE(late.event.Wait(RealRuntime(), In(seconds(20))));
  armed.store(false);
  if (!late.event.IsSet()) {  // wakes the log thread, so that the test fails instead of hanging
    ASSERT_TRUE(log_->WaitDurable(Next().lsn, kNoDeadline).ok());
    late.event.Wait(RealRuntime(), kNoDeadline);
  }
  EXPECT_EQ(late.code, ErrorCode::kOk);
  first.event.Wait(RealRuntime(), kNoDeadline);
  log_ = nullptr;  // its thread passes points
  testing::SetPointHandler({});
  ExpectAll();
}

// A record becomes durable while a waiter that is not urgent is about to register. Nothing else happens for long.
TEST_F(LogLeadTest, WaiterThatRegistersTooLateIsAnswered) {
  options_.linger = seconds(1000);
  Open();
  CommitUntilLed();
  Told told;
  Event registers, goes_on;
  testing::SetPointHandler([&](std::string_view name) {
    if (!is_late || name != "redo_log.waiters.before_cas") return;
    registers.Signal(RealRuntime());
    goes_on.Wait(RealRuntime(), kNoDeadline);
  });
  const AppendResult commit = Next();
  const auto late = RealRuntime().StartThread("late", [&] {
    is_late = true;
    EXPECT_FALSE(log_->NotifyWhenDurable(commit.lsn, &told, Urgency::kNotUrgent));
  });
  registers.Wait(RealRuntime(), kNoDeadline);
  ASSERT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline).ok());
  goes_on.Signal(RealRuntime());
  late->Join();
  EXPECT_TRUE(told.event.Wait(RealRuntime(), In(seconds(20))));
  log_ = nullptr;
  testing::SetPointHandler({});
  EXPECT_EQ(told.code, ErrorCode::kOk);
}

#endif  // DEUT_TEST_POINTS

}  // namespace
}  // namespace deut::tc

// Progress: a thread is stopped at each named point of the log, and the others go on.
//   A thread is stopped outside of its reservation: before it reserves, after it has published, or while it wakes the
//   log thread, registers a waiter, reserves timestamps, notes a commit, or reads. All others finish 100,000
//   operations each.
//   A thread is stopped between reservation and publication, or the log thread is stopped (a stuck device). The
//   others fill the ring and wait there, which is the log's only wait. They finish once the stopped thread goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/low_water_records.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

#ifdef DEUT_TEST_POINTS

#if defined(__has_feature) && __has_feature(thread_sanitizer)
constexpr int kOperations = 10'000;
#else
constexpr int kOperations = 100'000;
#endif
constexpr int kOthers = 3;
constexpr size_t kRingBytes = 64 << 10;

// True on the victim thread.
thread_local bool is_victim = false;

// Stops the victim, or the log thread, at the point. Never destroyed, because handlers may be called late.
class Stopper {
 public:
  Stopper(std::string point, bool victim) : point_(std::move(point)), victim_(victim) {
    testing::SetPointHandler([this](std::string_view name) {
      if (name != point_ || is_victim != victim_ || !armed_.exchange(false)) return;
      stopped_.Signal(RealRuntime());
      released_.Wait(RealRuntime(), kNoDeadline);
    });
  }
  void Arm() { armed_.store(true); }
  void Disarm() { armed_.store(false); }
  bool AwaitStopped(Deadline deadline) { return stopped_.Wait(RealRuntime(), deadline); }
  bool IsStopped() const { return stopped_.IsSet(); }
  void Release() { released_.Signal(RealRuntime()); }

 private:
  const std::string point_;
  const bool victim_;
  std::atomic<bool> armed_{false};
  Event stopped_, released_;
};

struct NoWaiter final : DurabilityCallback {
  void OnDurable(const Status&) override { called.Signal(RealRuntime()); }
  Event called;
};

class LogProgressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RedoLogOptions options = SmallLog("/log");
    options.ring_bytes = kRingBytes;
    options.segment_bytes = 1 << 20;
    options.timestamp_block = 1;  // each new timestamp of a thread begins the next block
    log_ = MustOpen(options, *storage_, &recovered_);
  }
  void TearDown() override { testing::SetPointHandler({}); }

  // All the log operations of an executing thread.
  void Operate(uint64_t timestamp) {
    low_water_.NoteCommit(Timestamp(timestamp));
    const AppendResult commit = Commit(*log_, timestamp);
    completed_bytes_.fetch_add(commit.end.value - commit.lsn.value);
  }
  void OperateRarely(uint64_t timestamp) {
    Operate(timestamp);
    NoWaiter waiter;
    const Lsn lsn = Lsn(log_->tail().value - 8);
    if (!log_->NotifyWhenDurable(lsn, &waiter)) waiter.called.Wait(RealRuntime(), kNoDeadline);
    EXPECT_TRUE(log_->EnsureReserved(Timestamp(recovered_.first_timestamp.value + timestamp / 4), kNoDeadline).ok());
    LogRecord record;
    EXPECT_TRUE(log_->NewReader(recovered_.end_lsn)->Next(&record, kNoDeadline).ok());
  }

  std::vector<std::unique_ptr<Thread>> StartOthers(int operations, std::atomic<int>* finished) {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int t = 0; t < kOthers; ++t) {
      threads.push_back(RealRuntime().StartThread("other", [this, t, operations, finished] {
        const uint64_t before = static_cast<uint64_t>(t) * kOperations;
        for (int i = 1; i <= operations; ++i) Operate(before + static_cast<uint64_t>(i));
        finished->fetch_add(1);
      }));
    }
    return threads;
  }

  // Starts a thread that runs until it is stopped at the point.
  std::unique_ptr<Thread> StartVictim(Stopper& stopper) {
    stopper.Arm();
    return RealRuntime().StartThread("victim", [this, &stopper] {
      is_victim = true;
      for (uint64_t i = 1; !stopper.IsStopped(); ++i) OperateRarely(i);
    });
  }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  RecoveredLog recovered_;
  std::unique_ptr<RedoLog> log_;
  LowWaterRecords low_water_;
  std::atomic<uint64_t> completed_bytes_{0};
};

class OthersFinish : public LogProgressTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(OthersFinish, WhileAThreadIsStopped) {
  auto* stopper = new Stopper(GetParam(), /*victim=*/true);  // NOLINT: never destroyed
  const auto victim = StartVictim(*stopper);
  ASSERT_TRUE(stopper->AwaitStopped(In(seconds(20)))) << GetParam();
  std::atomic<int> finished{0};
  StartOthers(kOperations, &finished).clear();  // joins
  EXPECT_EQ(finished.load(), kOthers);
  stopper->Release();
  victim->Join();
}

INSTANTIATE_TEST_SUITE_P(Points, OthersFinish,
                         ::testing::Values("redo_log.append.before_reserve", "redo_log.append.published",
                                           "redo_log.signal.before_exchange", "redo_log.waiters.before_cas",
                                           "redo_log.reservation.before_append", "redo_log.low_water.before_cas",
                                           "redo_log.read.before_validate"));

// The stopped thread is an appender with a reservation, or the log thread.
class OthersFillTheRing : public LogProgressTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(OthersFillTheRing, AndWaitForNothingElse) {
  const bool log_thread = !std::string_view(GetParam()).starts_with("redo_log.append");
  auto* stopper = new Stopper(GetParam(), !log_thread);  // NOLINT: never destroyed
  const auto victim = StartVictim(*stopper);
  ASSERT_TRUE(stopper->AwaitStopped(In(seconds(20)))) << GetParam();
  completed_bytes_.store(0);
  std::atomic<int> finished{0};
  auto others = StartOthers(kOperations / 10, &finished);
  // They append as much as fits, and then all wait for the ring. If the log thread is stopped, at least a quarter of
  // the ring was free, which it keeps free while it runs. If only an appender is stopped, all of it was.
  const uint64_t expected = (log_thread ? kRingBytes / 4 - kRingBytes / 32 : kRingBytes) - size_t{kOthers + 1} * 128;
  while (completed_bytes_.load() < expected || log_->counters().ring_waiters < kOthers) {
    RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(100));
  }
  EXPECT_EQ(finished.load(), 0);
  stopper->Release();
  victim->Join();
  others.clear();
  EXPECT_EQ(finished.load(), kOthers);
}

INSTANTIATE_TEST_SUITE_P(Points, OthersFillTheRing,
                         ::testing::Values("redo_log.append.reserved", "redo_log.append.before_publish",
                                           "redo_log.writer.before_submit", "redo_log.writer.before_durable",
                                           "redo_log.release.before_store", "redo_log.signal.before_sleep"));

// Every compare-and-swap and every wait loses its race now and then.
TEST_F(LogProgressTest, LostRacesAreTriedAgain) {
  static std::atomic<uint64_t> passes{0};
  testing::SetCasHandler([](std::string_view) { return passes.fetch_add(1) % 2 == 0; });
  for (uint64_t i = 1; i < 500; ++i) OperateRarely(i);
  testing::SetCasHandler({});
  EXPECT_GT(passes.load(), 500u);
}

#endif  // DEUT_TEST_POINTS

}  // namespace
}  // namespace deut::tc

#include "protocol/rpc/stream_watchdog.h"

#include <atomic>
#include <memory>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(StreamWatchdogTest, CancelsAStreamThatWaitsTooLongOnce) {
  Runtime& runtime = RealRuntime();
  StreamWatchdog watchdog(runtime, milliseconds(40));
  Event cancelled;
  std::atomic<int> times{0};
  StreamWatchdog::Watch stuck(watchdog, [&] {
    times.fetch_add(1);
    cancelled.Signal(runtime);
  });
  std::atomic<int> wrong{0};
  StreamWatchdog::Watch idle(watchdog, [&] { wrong.fetch_add(1); });
  StreamWatchdog::Watch finished(watchdog, [&] { wrong.fetch_add(1); });
  finished.Start();
  finished.Stop();
  const MonotonicTime start = runtime.Now();
  stuck.Start();
  ASSERT_TRUE(cancelled.Wait(runtime, start + seconds(20)));
  EXPECT_GE(runtime.Now() - start, milliseconds(40));
  // Several rounds later it has still been called only once.
  Event next;
  StreamWatchdog::Watch another(watchdog, [&] { next.Signal(runtime); });
  another.Start();
  ASSERT_TRUE(next.Wait(runtime, runtime.Now() + seconds(20)));
  EXPECT_EQ(times.load(), 1);
  EXPECT_EQ(wrong.load(), 0);
}

// The handler had just gone on when the watchdog looked. The watchdog once never looked again.
TEST(StreamWatchdogTest, AWatchThatWasNotCancelledIsLookedAtAgain) {
  Runtime& runtime = RealRuntime();
  StreamWatchdog watchdog(runtime, milliseconds(20));
  std::atomic<int> times{0};
  Event third;
  StreamWatchdog::Watch watch(watchdog, [&] {
    const bool cancelled = times.fetch_add(1) == 2;
    if (cancelled) third.Signal(runtime);
    return cancelled;
  });
  watch.Start();
  ASSERT_TRUE(third.Wait(runtime, runtime.Now() + seconds(20)));
  // Several rounds later no call has followed the one that cancelled.
  Event next;
  StreamWatchdog::Watch another(watchdog, [&] { next.Signal(runtime); });
  another.Start();
  ASSERT_TRUE(next.Wait(runtime, runtime.Now() + seconds(20)));
  EXPECT_EQ(times.load(), 3);
}

// Streams come and go while the watchdog looks. It never calls a cancel function after its watch is gone.
TEST(StreamWatchdogTest, WatchesComeAndGo) {
  Runtime& runtime = RealRuntime();
  StreamWatchdog watchdog(runtime, nanoseconds(4));
  std::atomic<uint64_t> cancelled{0};
  for (int i = 0; i < 20000 || cancelled.load() == 0; ++i) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    StreamWatchdog::Watch watch(watchdog, [&] {
      ASSERT_TRUE(alive->load());
      cancelled.fetch_add(1);
    });
    watch.Start();
  }
}

}  // namespace
}  // namespace deut

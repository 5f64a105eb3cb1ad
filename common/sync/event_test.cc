#include "common/sync/event.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(Event, IsOneShotUntilReset) {
  Runtime& runtime = RealRuntime();
  Event event;
  EXPECT_FALSE(event.IsSet());
  EXPECT_FALSE(event.Wait(runtime, runtime.Now() + milliseconds(1)));
  event.Signal(runtime);
  event.Signal(runtime);
  EXPECT_TRUE(event.Wait(runtime, kNoDeadline));
  EXPECT_TRUE(event.IsSet());
  event.Reset();
  EXPECT_FALSE(event.Wait(runtime, runtime.Now()));
}

TEST(Event, PublishesWhatWasWrittenBeforeTheSignal) {
  Runtime& runtime = RealRuntime();
  for (int round = 0; round < 500; ++round) {
    // The event is on the heap and the waiter frees it at once: the signaller must not touch it after the wake-up.
    auto event = std::make_unique<Event>();
    int written = 0;
    auto thread = runtime.StartThread("signaller", [&runtime, &written, raw = event.get()] {
      written = 42;
      raw->Signal(runtime);
    });
    ASSERT_TRUE(event->Wait(runtime, kNoDeadline));
    EXPECT_EQ(written, 42);
    event.reset();
  }
}

TEST(Event, WakesAllWaiters) {
  Runtime& runtime = RealRuntime();
  Event event;
  std::atomic<int> woken{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(runtime.StartThread("waiter", [&] {
      EXPECT_TRUE(event.Wait(runtime, kNoDeadline));
      woken.fetch_add(1);
    }));
  }
  event.Signal(runtime);
  for (auto& thread : threads) thread->Join();
  EXPECT_EQ(woken.load(), 4);
}

}  // namespace
}  // namespace deut

#include "common/sync/batched_event.h"

#include <memory>
#include <vector>

#include "common/testing/forwarding_runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(BatchedEventTest, WaitEndsAtTheDeadlineOrWhenSet) {
  Runtime& runtime = RealRuntime();
  BatchedEvent::Word word;
  BatchedEvent event;
  EXPECT_FALSE(event.IsSet());
  EXPECT_FALSE(event.Wait(runtime, word, runtime.Now() + milliseconds(1)));
  event.Set();
  EXPECT_TRUE(event.IsSet());
  EXPECT_TRUE(event.Wait(runtime, word, runtime.Now()));
}

// Sets the event when the waiter is about to sleep, so that only the changed word keeps it awake.
class SetBeforeSleep : public testing::ForwardingRuntime {
 public:
  SetBeforeSleep(BatchedEvent& event, BatchedEvent::Word& word) : event_(event), word_(word) {}
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    ++sleeps;
    event_.Set();
    word_.Wake(RealRuntime());
    return ForwardingRuntime::Wait(word, expected, deadline);
  }
  int sleeps = 0;

 private:
  BatchedEvent& event_;
  BatchedEvent::Word& word_;
};

TEST(BatchedEventTest, AnEventThatIsSetBetweenTheLookAndTheSleepIsNotMissed) {
  BatchedEvent::Word word;
  BatchedEvent event;
  SetBeforeSleep runtime(event, word);
  EXPECT_TRUE(event.Wait(runtime, word, kNoDeadline));
  EXPECT_EQ(runtime.sleeps, 1);
}

TEST(BatchedEventTest, AWakeOfAnotherBatchLeavesTheWaiterWaiting) {
  Runtime& runtime = RealRuntime();
  BatchedEvent::Word word;
  BatchedEvent event;
  std::atomic<bool> returned{false};
  auto waiter = runtime.StartThread("waiter", [&] {
    EXPECT_TRUE(event.Wait(runtime, word, kNoDeadline));
    EXPECT_TRUE(event.IsSet());
    returned.store(true);
  });
  for (int i = 0; i < 100; ++i) {
    word.Wake(runtime);
    runtime.Yield();
  }
  EXPECT_FALSE(returned.load());
  event.Set();
  word.Wake(runtime);
  waiter->Join();
}

TEST(BatchedEventTest, AWaiterMayFreeItsEventAtOnce) {
  Runtime& runtime = RealRuntime();
  constexpr int kWaiters = 4, kRounds = 500;
  BatchedEvent::Word word;
  std::atomic<BatchedEvent*> posted[kWaiters] = {};
  int written[kWaiters] = {};
  std::vector<std::unique_ptr<Thread>> waiters;
  for (int i = 0; i < kWaiters; ++i) {
    waiters.push_back(runtime.StartThread("waiter", [&, i] {
      for (int round = 1; round <= kRounds; ++round) {
        auto event = std::make_unique<BatchedEvent>();
        posted[i].store(event.get());
        ASSERT_TRUE(event->Wait(runtime, word, kNoDeadline));
        EXPECT_EQ(written[i], round);
      }
    }));
  }
  for (int done = 0; done < kWaiters * kRounds;) {
    bool any = false;
    for (int i = 0; i < kWaiters; ++i) {
      BatchedEvent* const event = posted[i].exchange(nullptr);
      if (event == nullptr) continue;
      ++written[i];
      event->Set();
      ++done;
      any = true;
    }
    if (any) {
      word.Wake(runtime);
    } else {
      runtime.Yield();
    }
  }
  for (auto& waiter : waiters) waiter->Join();
}

}  // namespace
}  // namespace deut

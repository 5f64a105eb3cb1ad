// When a wait for events stays awake, and when it sleeps.
#include "protocol/rpc_event_wait.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/runtime/runtime.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

// Its time stands still, so a wait that is awake stays so until an event comes. `yielding` is called between two looks.
class StandingRuntime final : public Runtime {
 public:
  MonotonicTime Now() override { return now_; }
  int64_t WallMicros() override { return RealRuntime().WallMicros(); }
  uint64_t RandomSeed() override { return RealRuntime().RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return RealRuntime().StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    return RealRuntime().Wait(word, expected, deadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { RealRuntime().Wake(word, waiters); }
  void Yield() override {
    if (yielding) yielding();
    RealRuntime().Yield();
  }
  std::function<void()> yielding;

 private:
  const MonotonicTime now_ = RealRuntime().Now();
};

class RpcEventWaitTest : public ::testing::Test {
 protected:
  ~RpcEventWaitTest() override {
    queue_.Shutdown();
    while (queue_.Next(&tag_, &ok_)) {
    }
  }

  void Fire() { alarm_.Set(&queue_, gpr_now(GPR_CLOCK_MONOTONIC), this); }
  // A wait whose deadline has passed: it looks twice and gives up.
  void InVain() {
    ASSERT_EQ(wait_.Next(queue_, &tag_, &ok_, runtime_.Now()), grpc::CompletionQueue::TIMEOUT);
  }
  void GetEvent() {
    ASSERT_EQ(wait_.Next(queue_, &tag_, &ok_, kNoDeadline), grpc::CompletionQueue::GOT_EVENT);
    EXPECT_EQ(tag_, this);
  }

  StandingRuntime runtime_;
  RpcEventWait wait_{runtime_};
  grpc::CompletionQueue queue_;
  grpc::Alarm alarm_;
  void* tag_ = nullptr;
  bool ok_ = false;
};

TEST_F(RpcEventWaitTest, AWaitInVainMakesTheNextOnesSleepTwiceAsManyEachTime) {
  uint64_t asleep = 1;
  for (uint64_t round = 1; round <= 8; ++round) {
    InVain();
    EXPECT_EQ(wait_.awake(), round);
    EXPECT_EQ(wait_.in_vain(), round);
    for (uint64_t i = 0; i < asleep; ++i) InVain();
    EXPECT_EQ(wait_.awake(), round) << "these slept at once";
    asleep = std::min<uint64_t>(2 * asleep + 1, RpcEventWait::kMostAsleep);
  }
}

TEST_F(RpcEventWaitTest, AnEventThatComesMeanwhileEndsThat) {
  InVain();
  InVain();
  InVain();  // 3 would sleep after this
  for (int i = 0; i < 3; ++i) InVain();
  ASSERT_EQ(wait_.in_vain(), 2u);
  runtime_.yielding = [&, fired = false]() mutable {
    if (!std::exchange(fired, true)) Fire();
  };
  GetEvent();
  EXPECT_EQ(wait_.awake(), 3u);
  EXPECT_EQ(wait_.in_vain(), 2u);
  InVain();
  InVain();
  EXPECT_EQ(wait_.awake(), 4u);
  InVain();
  EXPECT_EQ(wait_.awake(), 5u) << "one slept, as after the first in vain";
}

TEST_F(RpcEventWaitTest, WithoutADeadlineItSleepsUntilTheEventComes) {
  InVain();
  Fire();
  GetEvent();
  EXPECT_EQ(wait_.awake(), 1u);
}

TEST_F(RpcEventWaitTest, TheQueueEndsWhileItSleepsAndWhileItLooks) {
  InVain();
  queue_.Shutdown();
  EXPECT_EQ(wait_.Next(queue_, &tag_, &ok_, kNoDeadline), grpc::CompletionQueue::SHUTDOWN);
  EXPECT_EQ(wait_.Next(queue_, &tag_, &ok_, kNoDeadline), grpc::CompletionQueue::SHUTDOWN);
}

}  // namespace
}  // namespace deut

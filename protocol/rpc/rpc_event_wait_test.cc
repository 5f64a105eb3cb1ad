#include "protocol/rpc/rpc_event_wait.h"

#include <functional>
#include <utility>

#include "common/runtime/runtime.h"
#include "common/testing/forwarding_runtime.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

// A runtime whose time stands still, so a spinning wait spins until an event comes. It calls `yielding` between two
// looks.
class StandingRuntime final : public testing::ForwardingRuntime {
 public:
  MonotonicTime Now() override { return now_; }
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
  grpc::CompletionQueue::NextStatus Next(Deadline deadline) { return wait_.Next(queue_, &tag_, &ok_, deadline); }
  // Waits with a deadline that has passed.
  void InVain() { ASSERT_EQ(Next(runtime_.Now()), grpc::CompletionQueue::TIMEOUT); }
  void GetEvent() {
    ASSERT_EQ(Next(kNoDeadline), grpc::CompletionQueue::GOT_EVENT);
    EXPECT_EQ(tag_, this);
  }

  StandingRuntime runtime_;
  RpcEventWait wait_{runtime_};
  grpc::CompletionQueue queue_;
  grpc::Alarm alarm_;
  void* tag_ = nullptr;
  bool ok_ = false;
};

TEST_F(RpcEventWaitTest, AnEventThatComesWhileItIsAwake) {
  runtime_.yielding = [&, fired = false]() mutable {
    if (!std::exchange(fired, true)) Fire();
  };
  GetEvent();
  EXPECT_EQ(wait_.spin().spins(), 1u);
  EXPECT_EQ(wait_.spin().failed_spins(), 0u);
}

TEST_F(RpcEventWaitTest, AnEventThatComesWhileItSleeps) {
  InVain();
  EXPECT_EQ(wait_.spin().failed_spins(), 1u);
  Fire();
  GetEvent();
  EXPECT_EQ(wait_.spin().spins(), 1u);
}

TEST_F(RpcEventWaitTest, TheEndOfTheQueue) {
  queue_.Shutdown();
  EXPECT_EQ(Next(kNoDeadline), grpc::CompletionQueue::SHUTDOWN);
  EXPECT_EQ(wait_.spin().spins(), 0u);
}

}  // namespace
}  // namespace deut

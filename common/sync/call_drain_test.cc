#include "common/sync/call_drain.h"

#include <atomic>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(CallDrainTest, StartsClosedAndLetsInWhileOpen) {
  CallDrain drain(RealRuntime());
  EXPECT_FALSE(CallDrain::Call(drain).entered());
  drain.Open();
  EXPECT_TRUE(CallDrain::Call(drain).entered());
  drain.Close();
  EXPECT_FALSE(CallDrain::Call(drain).entered());
  drain.Open();
  EXPECT_TRUE(CallDrain::Call(drain).entered());
}

TEST(CallDrainTest, CloseWaitsForTheCallInside) {
  Runtime& runtime = RealRuntime();
  CallDrain drain(runtime);
  drain.Open();
  Event inside;
  Event leave;
  std::atomic<bool> left{false};
  const auto caller = runtime.StartThread("caller", [&] {
    CallDrain::Call call(drain);
    ASSERT_TRUE(call.entered());
    inside.Signal(runtime);
    leave.Wait(runtime, kNoDeadline);
    left.store(true);
  });
  inside.Wait(runtime, kNoDeadline);
  Event closed;
  const auto closer = runtime.StartThread("closer", [&] {
    drain.Close();
    EXPECT_TRUE(left.load());
    closed.Signal(runtime);
  });
  // The drain cannot close while the call is inside, but it refuses new calls long before.
  while (CallDrain::Call(drain).entered()) runtime.Yield();
  EXPECT_FALSE(closed.IsSet());
  leave.Signal(runtime);
  closed.Wait(runtime, kNoDeadline);
}

// The protected object changes only while no call is inside. A call that sees it change has shown a lost race.
TEST(CallDrainTest, NoCallIsInsideAfterClose) {
  Runtime& runtime = RealRuntime();
  CallDrain drain(runtime);
  auto object = std::make_unique<int>(7);
  drain.Open();
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> calls{0};
  std::vector<std::unique_ptr<Thread>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(runtime.StartThread("caller", [&] {
      while (!stop.load(std::memory_order_relaxed)) {
        CallDrain::Call call(drain);
        if (!call.entered()) continue;
        ASSERT_EQ(*object, 7);
        calls.fetch_add(1, std::memory_order_relaxed);
      }
    }));
  }
  for (int round = 0; round < 2000; ++round) {
    drain.Close();
    object.reset();
    object = std::make_unique<int>(7);
    drain.Open();
  }
  while (calls.load() == 0) runtime.Yield();
  stop.store(true);
}

}  // namespace
}  // namespace deut

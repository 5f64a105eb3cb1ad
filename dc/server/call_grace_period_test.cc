#include "dc/server/call_grace_period.h"

#include <atomic>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

TEST(CallGracePeriodTest, WaitsOnlyForCallsThatAreRunning) {
  CallGracePeriod grace_period(RealRuntime());
  grace_period.WaitForRunning();
  Event inside;
  Event leave;
  std::atomic<bool> left{false};
  const auto caller = RealRuntime().StartThread("caller", [&] {
    const CallGracePeriod::Call call(grace_period);
    inside.Signal(RealRuntime());
    leave.Wait(RealRuntime(), kNoDeadline);
    left.store(true);
  });
  inside.Wait(RealRuntime(), kNoDeadline);
  Event waited;
  const auto waiter = RealRuntime().StartThread("waiter", [&] {
    grace_period.WaitForRunning();
    EXPECT_TRUE(left.load());
    waited.Signal(RealRuntime());
  });
  // New calls begin and end meanwhile, also after the phase has changed.
  for (int i = 0; i < 1000; ++i) const CallGracePeriod::Call call(grace_period);
  EXPECT_FALSE(waited.Wait(RealRuntime(), RealRuntime().Now() + milliseconds(20)));
  for (int i = 0; i < 1000; ++i) const CallGracePeriod::Call call(grace_period);
  leave.Signal(RealRuntime());
  EXPECT_TRUE(waited.Wait(RealRuntime(), kNoDeadline));
}

// Each caller lends out an object for the duration of a call. After WaitForRunning the object may be changed freely
// (otherwise TSan reports a race).
TEST(CallGracePeriodTest, ManyCallersAndWaiters) {
  CallGracePeriod grace_period(RealRuntime());
  std::atomic<int*> shared{new int(0)};
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Thread>> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(RealRuntime().StartThread("caller", [&] {
      while (!stop.load()) {
        const CallGracePeriod::Call call(grace_period);
        EXPECT_GE(*shared.load(), 0);
      }
    }));
  }
  for (int i = 1; i < 3000; ++i) {
    int* old = shared.exchange(new int(i));
    grace_period.WaitForRunning();
    *old = -1;
    delete old;
  }
  stop.store(true);
  callers.clear();
  delete shared.load();
}

}  // namespace
}  // namespace deut::dc

#include "protocol/rpc/rpc_event_thread.h"

#include <atomic>
#include <deque>

#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "gtest/gtest.h"
#include "protocol/rpc/rpc_event.h"

namespace deut {
namespace {

// An event that the loop's queue delivers soon, or later.
class Fired final : public RpcEvent {
 public:
  void Set(RpcEventLoop& loop) { alarm_.Set(loop.queue(), gpr_now(GPR_CLOCK_MONOTONIC), static_cast<RpcEvent*>(this)); }
  void SetForLater(RpcEventLoop& loop) {
    alarm_.Set(loop.queue(), gpr_inf_future(GPR_CLOCK_MONOTONIC), static_cast<RpcEvent*>(this));
  }
  void Cancel() { alarm_.Cancel(); }
  void Done(bool ok) override {
    ok_ = ok;
    done_.Signal(RealRuntime());
  }
  // Waits for the event. True: the operation succeeded.
  bool Await() {
    EXPECT_TRUE(done_.Wait(RealRuntime(), RealRuntime().Now() + seconds(20)));
    return ok_;
  }

 private:
  grpc::Alarm alarm_;
  Event done_;
  std::atomic<bool> ok_{false};
};

TEST(RpcEventThreadTest, RunsEventsThatSucceedAndThatFail) {
  RpcEventThread loop(RealRuntime());
  std::deque<Fired> fired(100);
  for (Fired& event : fired) event.Set(loop);
  for (Fired& event : fired) EXPECT_TRUE(event.Await());
  Fired cancelled;
  cancelled.SetForLater(loop);
  cancelled.Cancel();
  EXPECT_FALSE(cancelled.Await());
}

TEST(RpcEventThreadTest, EndsWhetherItHasRunEventsOrNot) {
  for (int i = 0; i < 20; ++i) {
    Fired fired;
    RpcEventThread loop(RealRuntime());
    if (i % 2 == 0) continue;
    fired.Set(loop);
    EXPECT_TRUE(fired.Await());
  }
}

}  // namespace
}  // namespace deut

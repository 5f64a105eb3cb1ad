// CallGracePeriod: lets a thread wait for a grace period of calls: until every call that was running when the wait
// began has ended, while new calls continue. (The two-counter scheme of sleepable read-copy-update; McKenney 2006.)
//
// States: two gates, one open (the current phase), one closed. A call enters the current phase's gate. If that gate
// was closed meanwhile, the call retries with the new phase. WaitForRunning opens the other gate, makes it current,
// and closes the old one. Closing waits for the calls inside.
// Thread-safety: all methods from any thread. A call never waits: the phase changes before a gate is closed.
// Ownership: none.
#ifndef DC_SERVER_CALL_GRACE_PERIOD_H_
#define DC_SERVER_CALL_GRACE_PERIOD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "common/runtime/runtime.h"
#include "common/sync/call_drain.h"
#include "common/sync/mutex.h"

namespace deut::dc {

class CallGracePeriod {
 public:
  explicit CallGracePeriod(Runtime& runtime) : mutex_(runtime), gates_{CallDrain(runtime), CallDrain(runtime)} {
    gates_[0].Open();
  }

  class Call {
   public:
    explicit Call(CallGracePeriod& grace_period) {
      do {
        call_.emplace(grace_period.gates_[grace_period.phase_.load(std::memory_order_seq_cst) & 1]);
      } while (!call_->entered());
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    std::optional<CallDrain::Call> call_;
  };

  // Returns when all calls that were running at its start have ended. REQUIRES: not called inside a call.
  void WaitForRunning() {
    const MutexLock lock(mutex_);
    const uint32_t old = phase_.load(std::memory_order_relaxed);
    gates_[(old + 1) & 1].Open();
    // The phase changes before the old gate is closed: a call that finds the old gate closed finds the new one open.
    phase_.store(old + 1, std::memory_order_seq_cst);
    gates_[old & 1].Close();
  }

 private:
  Mutex mutex_;  // one change of phase at a time
  std::atomic<uint32_t> phase_{0};
  std::array<CallDrain, 2> gates_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_CALL_GRACE_PERIOD_H_

// Event: a one-shot signal that one or several threads wait for; Reset arms it again.
// States: 0 unset, 1 unset with waiters, 2 set. Signal (exchange to 2, release) wakes; Wait (acquire) returns once it
// sees 2.
// Why not absl::Notification: it blocks in the kernel by itself, and a simulated runtime could not decide who waits.
// Thread-safety: any thread may call Signal, Wait and IsSet; for Reset see there.
// Lifetime: the signaller may still be inside Wake when a waiter has returned. The futex wake touches only the
// address, so a waiter may destroy the event at once. A stray wake-up on reused memory is a spurious return
// elsewhere, which every wait tolerates.
#ifndef COMMON_SYNC_EVENT_H_
#define COMMON_SYNC_EVENT_H_

#include <atomic>
#include <cstdint>

#include "common/runtime/runtime.h"

namespace deut {

class Event {
 public:
  bool IsSet() const { return state_.load(std::memory_order_acquire) == kSet; }

  void Signal(Runtime& runtime) {
    if (state_.exchange(kSet, std::memory_order_acq_rel) == kWaited) runtime.WakeAll(state_);
  }

  // True once the event is set; false when the deadline passed first.
  bool Wait(Runtime& runtime, Deadline deadline) {
    for (;;) {
      uint32_t state = state_.load(std::memory_order_acquire);
      if (state == kSet) return true;
      if (state == kUnset && !state_.compare_exchange_strong(state, kWaited, std::memory_order_acq_rel)) continue;
      if (!runtime.Wait(state_, kWaited, deadline)) return IsSet();
    }
  }

  // REQUIRES: no thread waits or signals.
  void Reset() { state_.store(kUnset, std::memory_order_release); }

 private:
  static constexpr uint32_t kUnset = 0, kWaited = 1, kSet = 2;
  std::atomic<uint32_t> state_{kUnset};
};

}  // namespace deut

#endif  // COMMON_SYNC_EVENT_H_

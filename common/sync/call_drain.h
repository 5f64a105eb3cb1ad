// CallDrain: admits calls while it is open. Close admits no more and waits until the admitted calls have left (it drains them). It costs a call
// two additions on a cache line that few other threads share, and never blocks a call.
//
// States: open or closed. In both, it counts the calls inside, in stripes spread by thread.
// Steps, all of them sequentially consistent:
// - Enter adds 1 to its stripe, then reads `closed`. If that is set, Enter takes 1 off again and refuses.
// - Leave takes 1 off its stripe. If the stripe becomes 0 and `closed` is set, it wakes Close.
// - Close sets `closed`, then waits until each stripe is 0.
// So either Enter sees `closed`, or Close sees the count that Enter raised. Likewise, either Leave sees `closed` and
// wakes, or Close sees the count that Leave lowered.
// Thread-safety: any thread may enter, with CallDrain::Call; only one thread at a time may call Open or Close.
// Ownership: it outlives its calls.
#ifndef COMMON_SYNC_CALL_DRAIN_H_
#define COMMON_SYNC_CALL_DRAIN_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"

namespace deut {

class CallDrain {
 public:
  // The drain starts closed.
  explicit CallDrain(Runtime& runtime) : runtime_(runtime) {}
  CallDrain(const CallDrain&) = delete;
  CallDrain& operator=(const CallDrain&) = delete;

  // One call. If `entered`, it is inside the drain from construction to destruction.
  class Call {
   public:
    explicit Call(CallDrain& drain) : drain_(drain), running_(drain.OwnStripe()), entered_(drain.Enter(running_)) {}
    ~Call() {
      if (entered_) drain_.Leave(running_);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    bool entered() const { return entered_; }

   private:
    CallDrain& drain_;
    std::atomic<uint32_t>& running_;
    const bool entered_;
  };

  void Open() { closed_.store(false, std::memory_order_seq_cst); }

  // Returns when no call is inside. No call enters before the next Open.
  void Close() {
    closed_.store(true, std::memory_order_seq_cst);
    for (Stripe& stripe : stripes_) {
      for (;;) {
        const uint32_t running = stripe.running.load(std::memory_order_seq_cst);
        if (running == 0) break;
        runtime_.Wait(stripe.running, running, kNoDeadline);
      }
    }
  }

 private:
  static constexpr size_t kStripes = 16;
  struct alignas(64) Stripe {
    std::atomic<uint32_t> running{0};
  };

  std::atomic<uint32_t>& OwnStripe() {
    static thread_local char own;
    const uint64_t address = reinterpret_cast<uintptr_t>(&own);
    return stripes_[(address * 0x9e3779b97f4a7c15ull) >> 60].running;
  }

  bool Enter(std::atomic<uint32_t>& running) {
    running.fetch_add(1, std::memory_order_seq_cst);
    DEUT_POINT("call_drain.entered");
    if (!closed_.load(std::memory_order_seq_cst)) [[likely]]
      return true;
    Leave(running);
    return false;
  }

  void Leave(std::atomic<uint32_t>& running) {
    if (running.fetch_sub(1, std::memory_order_seq_cst) == 1 && closed_.load(std::memory_order_seq_cst)) {
      runtime_.WakeAll(running);
    }
  }

  Runtime& runtime_;
  std::atomic<bool> closed_{true};
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace deut

#endif  // COMMON_SYNC_CALL_DRAIN_H_

// CallGate: lets calls in while it is open; closing it waits until the calls inside have left. It costs a call two additions on a
// line that few other threads share, and never blocks one.
//
// States: open, closed; in both, a count of calls inside, spread over stripes by thread.
// Steps. Enter: stripe += 1, then look at `closed`; if set: stripe -= 1, refused. Leave: stripe -= 1; if that made it 0 and `closed` is
//   set, wake. Close: set `closed`, then wait for each stripe to be 0. All of them sequentially consistent: either Enter sees `closed`,
//   or Close sees the count that Enter raised; either Leave sees `closed` and wakes, or Close sees the count that Leave lowered.
// Thread-safety: Enter (through CallGate::Call) from any thread; Open and Close by one thread at a time.
// Ownership: outlives its calls.
#ifndef PROTOCOL_CALL_GATE_H_
#define PROTOCOL_CALL_GATE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"

namespace deut {

class CallGate {
 public:
  // Starts closed.
  explicit CallGate(Runtime& runtime) : runtime_(runtime) {}
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

  // One call: inside from construction to destruction if `entered`.
  class Call {
   public:
    explicit Call(CallGate& gate) : gate_(gate), running_(gate.OwnStripe()), entered_(gate.Enter(running_)) {}
    ~Call() {
      if (entered_) gate_.Leave(running_);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    bool entered() const { return entered_; }

   private:
    CallGate& gate_;
    std::atomic<uint32_t>& running_;
    const bool entered_;
  };

  void Open() { closed_.store(false, std::memory_order_seq_cst); }

  // Returns when no call is inside; none gets in before Open.
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
    DEUT_POINT("call_gate.entered");
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

#endif  // PROTOCOL_CALL_GATE_H_

// AdaptiveSpin: decides whether, and for how long, a thread stays awake before it sleeps until an event that may come soon.
//
// A sleeping thread is woken late. The scheduler has to choose it, and an idle processor has to leave its sleep
// state, which takes longer under a hypervisor. A thread that stays awake for up to kAwake notices an event sooner.
// Between two looks it yields, so that other threads can run.
// A look in vain costs processor time. It also costs other threads time, because the scheduler need not take the
// yielding thread off its processor. So a thread stays awake only where at least two of three looks succeed:
// - A success adds 1 to the credit, up to kMostCredit; a look in vain subtracts 2.
// - When the credit would fall below 0, the next kAsleep waits sleep at once. The wait after them looks again.
// - Where other threads compute, a yield can give them the processor for a whole turn of the scheduler. A thread that
//   sleeps is put before them when it is woken. So after a yield of more than kKeptOff a
//   look counts as in vain, whatever it has found.
// Thread-safety: any thread may call any method; all threads share one credit.
#ifndef COMMON_SYNC_ADAPTIVE_SPIN_H_
#define COMMON_SYNC_ADAPTIVE_SPIN_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "common/runtime/runtime.h"

namespace deut {

class AdaptiveSpin {
 public:
  static constexpr Duration kAwake = microseconds(50);
  static constexpr int kMostCredit = 8;
  static constexpr uint32_t kAsleep = 63;
  static constexpr Duration kKeptOff = microseconds(500);

  // Repeats `look`, which returns whether the event has come. True: it has. False: the caller may sleep now. REQUIRES: the
  // caller has looked once.
  template <typename Look>
  bool Find(Runtime& runtime, Deadline deadline, Look look) {
    if (!StayAwake()) return false;
    MonotonicTime before = runtime.Now();
    const MonotonicTime until = std::min<MonotonicTime>(before + kAwake, deadline);
    bool found = false;
    do {
      runtime.Yield();
      const bool kept_off = runtime.Now() - before > kKeptOff;
      found = look();
      if (kept_off) break;
      if (found) {
        const int credit = credit_.load(std::memory_order_relaxed);
        if (credit < kMostCredit) credit_.store(credit + 1, std::memory_order_relaxed);
        return true;
      }
      before = runtime.Now();
    } while (before < until);
    in_vain_.fetch_add(1, std::memory_order_relaxed);
    const int credit = credit_.load(std::memory_order_relaxed) - 2;
    credit_.store(std::max(credit, 0), std::memory_order_relaxed);
    if (credit < 0) asleep_.store(kAsleep, std::memory_order_relaxed);
    return found;
  }

  // Number of waits that stayed awake, and how many of them were in vain.
  uint64_t awake() const { return awake_.load(std::memory_order_relaxed); }
  uint64_t in_vain() const { return in_vain_.load(std::memory_order_relaxed); }

 private:
  bool StayAwake() {
    const uint32_t asleep = asleep_.load(std::memory_order_relaxed);
    if (asleep != 0) {
      asleep_.store(asleep - 1, std::memory_order_relaxed);
      return false;
    }
    awake_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  std::atomic<uint32_t> asleep_{0};  // number of coming waits that sleep at once
  std::atomic<int> credit_{0};
  std::atomic<uint64_t> awake_{0};
  std::atomic<uint64_t> in_vain_{0};
};

}  // namespace deut

#endif  // COMMON_SYNC_ADAPTIVE_SPIN_H_

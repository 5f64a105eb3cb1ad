// AdaptiveSpin: decides whether, and for how long, a thread stays awake before it sleeps until an event that may come soon.
//
// A sleeping thread is woken late. The scheduler has to choose it, and an idle processor has to leave its sleep
// state, which takes longer under a hypervisor. A thread that stays awake for up to kSpinTime notices an event sooner.
// Between two looks it yields, so that other threads can run.
// A spin that fails costs processor time. It also costs other threads time, because the scheduler need not take the
// yielding thread off its processor. So a thread stays awake only where at least two of three spins succeed:
// - A success adds 1 to the credit, up to kMaxCredit; a spin that fails subtracts 2.
// - When the credit would fall below 0, the next kWaitsToSkip waits sleep at once. The wait after them spins again.
// - Where other threads compute, a yield can give them the processor for a whole turn of the scheduler. A thread that
//   sleeps is put before them when it is woken. So a spin with a yield of more than kMaxYield counts as failed, whatever
//   it has found.
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
  static constexpr Duration kSpinTime = microseconds(50);
  static constexpr int kMaxCredit = 8;
  static constexpr uint32_t kWaitsToSkip = 63;
  static constexpr Duration kMaxYield = microseconds(500);

  // Repeats `look`, which returns whether the event has come. True: it has. False: the caller may sleep now. REQUIRES: the
  // caller has looked once.
  template <typename Look>
  bool Find(Runtime& runtime, Deadline deadline, Look look) {
    if (!MaySpin()) return false;
    MonotonicTime before = runtime.Now();
    const MonotonicTime until = std::min<MonotonicTime>(before + kSpinTime, deadline);
    bool found = false;
    do {
      runtime.Yield();
      const bool yield_too_long = runtime.Now() - before > kMaxYield;
      found = look();
      if (yield_too_long) break;
      if (found) {
        const int credit = credit_.load(std::memory_order_relaxed);
        if (credit < kMaxCredit) credit_.store(credit + 1, std::memory_order_relaxed);
        return true;
      }
      before = runtime.Now();
    } while (before < until);
    failed_spins_.fetch_add(1, std::memory_order_relaxed);
    const int credit = credit_.load(std::memory_order_relaxed) - 2;
    credit_.store(std::max(credit, 0), std::memory_order_relaxed);
    if (credit < 0) waits_to_skip_.store(kWaitsToSkip, std::memory_order_relaxed);
    return found;
  }

  // Number of waits that spun, and how many of them failed.
  uint64_t spins() const { return spins_.load(std::memory_order_relaxed); }
  uint64_t failed_spins() const { return failed_spins_.load(std::memory_order_relaxed); }

 private:
  bool MaySpin() {
    const uint32_t waits_to_skip = waits_to_skip_.load(std::memory_order_relaxed);
    if (waits_to_skip != 0) {
      waits_to_skip_.store(waits_to_skip - 1, std::memory_order_relaxed);
      return false;
    }
    spins_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  std::atomic<uint32_t> waits_to_skip_{0};  // number of coming waits that sleep at once
  std::atomic<int> credit_{0};
  std::atomic<uint64_t> spins_{0};
  std::atomic<uint64_t> failed_spins_{0};
};

}  // namespace deut

#endif  // COMMON_SYNC_ADAPTIVE_SPIN_H_

// LeapingRuntime: the machine's runtime with a time of its own, for tests of patience. The time stands still until a thread waits with a deadline;
// then it leaps to that deadline, and the wait is over. A wait without one is the machine's.
// Thread-safety: as Runtime, but a leap wakes no other thread: tests with deadlines have one thread.
#ifndef COMMON_TESTING_LEAPING_RUNTIME_H_
#define COMMON_TESTING_LEAPING_RUNTIME_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "common/testing/forwarding_runtime.h"

namespace deut::testing {

class LeapingRuntime final : public ForwardingRuntime {
 public:
  MonotonicTime Now() override { return MonotonicTime(Duration(passed_.load(std::memory_order_relaxed))); }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    if (deadline == kNoDeadline) return ForwardingRuntime::Wait(word, expected, deadline);
    if (word.load(std::memory_order_seq_cst) != expected) return true;
    passed_.store(std::max(passed_.load(std::memory_order_relaxed), deadline.time_since_epoch().count()),
                  std::memory_order_relaxed);
    return false;
  }
  void Pass(Duration time) { passed_.fetch_add(time.count(), std::memory_order_relaxed); }
  // Since the object was made.
  Duration passed() const { return Duration(passed_.load(std::memory_order_relaxed)); }

 private:
  std::atomic<Duration::rep> passed_{0};
};

}  // namespace deut::testing

#endif  // COMMON_TESTING_LEAPING_RUNTIME_H_

// LogSignal: puts the log thread to sleep and wakes it. The thread sleeps on a futex when it has nothing under way, and inside its
// IoQueue's Reap when it has; either way an appender wakes it.
//
// States of state_: kAwake, kOnFutex, kInReap. Only the log thread leaves kAwake; whoever brings it back there wakes the thread.
// Steps. Sleeper: state_ = kOnFutex or kInReap; look for work once more; sleep; state_ = kAwake. Notifier: publish work; load state_; if
//   not kAwake: exchange it for kAwake, and the winner wakes. All are sequentially consistent, so either the sleeper sees the work or
//   the notifier sees the state. A wake that comes late is a spurious return; the log thread always looks again.
// Thread-safety: Notify from any thread; the rest by the log thread.
#ifndef TC_REDO_LOG_LOG_SIGNAL_H_
#define TC_REDO_LOG_LOG_SIGNAL_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"

namespace deut::tc {

class LogSignal {
 public:
  // `queue` is the log thread's, or null. Both outlive the signal.
  LogSignal(Runtime& runtime, IoQueue* queue) : runtime_(runtime), queue_(queue) {}

  void Notify() {
    if (state_.load(std::memory_order_seq_cst) != kAwake) WakeUp();
  }

  // Sleeps until Notify or the deadline, unless `work_waits()` finds something to do after all.
  template <typename Check>
  void SleepOnFutex(Check work_waits, Deadline deadline) {
    state_.store(kOnFutex, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.signal.before_sleep");
    if (DEUT_OMITTED("log.look_before_sleep") || !work_waits()) runtime_.Wait(state_, kOnFutex, deadline);
    state_.store(kAwake, std::memory_order_seq_cst);
  }

  // The same for a thread with transfers in flight: also returns with what has completed.
  template <typename Check>
  void SleepInReap(Check work_waits, std::vector<IoRequest*>* completed, Deadline deadline) {
    state_.store(kInReap, std::memory_order_seq_cst);
    DEUT_POINT("redo_log.signal.before_sleep");
    queue_->Reap(completed, work_waits() ? MonotonicTime::min() : deadline);
    state_.store(kAwake, std::memory_order_seq_cst);
  }

 private:
  static constexpr uint32_t kAwake = 0, kOnFutex = 1, kInReap = 2;

  void WakeUp() {
    DEUT_POINT("redo_log.signal.before_exchange");
    const uint32_t was = state_.exchange(kAwake, std::memory_order_seq_cst);
    if (was == kOnFutex) runtime_.Wake(state_, 1);
    if (was == kInReap) queue_->Wake();
  }

  Runtime& runtime_;
  IoQueue* const queue_;
  std::atomic<uint32_t> state_{kAwake};
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_SIGNAL_H_

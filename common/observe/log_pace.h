// LogPace: at most one line of a kind in each interval, for messages that a peer can cause at any rate.
// The caller passes the Runtime's time, so that a simulated runtime decides which lines are due. No given library does
// that. Unlike LimitedLog it needs no Runtime when it is made, so it may be a static object.
// Thread-safety: all methods from any thread.
#ifndef COMMON_OBSERVE_LOG_PACE_H_
#define COMMON_OBSERVE_LOG_PACE_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "common/runtime/time.h"

namespace deut {

class LogPace {
 public:
  explicit LogPace(Duration interval) : interval_(interval) {}

  // Call it once for each event. No value: do not log this event. A number: log it, with this number of events that
  // were not logged since the last line.
  std::optional<uint64_t> Event(MonotonicTime now) {
    const int64_t at = now.time_since_epoch().count();
    int64_t next = next_.load(std::memory_order_relaxed);
    // If several threads find the interval over, the winner of the compare-and-swap logs; the others count their
    // events as not logged.
    if (at < next || !next_.compare_exchange_strong(next, at + interval_.count(), std::memory_order_relaxed)) {
      unlogged_.fetch_add(1, std::memory_order_relaxed);
      return std::nullopt;
    }
    return unlogged_.exchange(0, std::memory_order_relaxed);
  }

 private:
  const Duration interval_;
  std::atomic<int64_t> next_{INT64_MIN};
  std::atomic<uint64_t> unlogged_{0};
};

}  // namespace deut

#endif  // COMMON_OBSERVE_LOG_PACE_H_

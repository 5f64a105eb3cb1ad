// Points in time and durations. The present time comes only from a Runtime (runtime.h), never from the system directly,
// so a simulated Runtime controls time. The epoch of MonotonicTime is arbitrary: only comparisons and differences
// within one process have a meaning.
#ifndef COMMON_RUNTIME_TIME_H_
#define COMMON_RUNTIME_TIME_H_

#include <chrono>
#include <cstdint>

namespace deut {

using Duration = std::chrono::nanoseconds;

struct MonotonicClockTag {
  using rep = int64_t;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<MonotonicClockTag>;
  static constexpr bool is_steady = true;
};

using MonotonicTime = std::chrono::time_point<MonotonicClockTag, Duration>;

// The latest time at which a caller still wants the answer.
using Deadline = MonotonicTime;
constexpr Deadline kNoDeadline = Deadline::max();

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

}  // namespace deut

#endif  // COMMON_RUNTIME_TIME_H_

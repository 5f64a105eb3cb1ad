#include "common/runtime/coarse_time.h"

#include <ctime>

namespace deut {

MonotonicTime CoarseNow(Runtime& runtime) {
  static Runtime* const real = &RealRuntime();
  if (&runtime != real) return runtime.Now();
  timespec tick{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
  return MonotonicTime(seconds(tick.tv_sec) + nanoseconds(tick.tv_nsec) + kCoarseStep);
}

}  // namespace deut

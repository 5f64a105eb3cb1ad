// CoarseNow: the time, for limits of seconds on paths of microseconds.
// Thread-safety: any thread.
#ifndef COMMON_RUNTIME_COARSE_TIME_H_
#define COMMON_RUNTIME_COARSE_TIME_H_

#include "common/runtime/runtime.h"

namespace deut {

constexpr Duration kCoarseStep = milliseconds(10);

// runtime.Now(), or later by about kCoarseStep at most; never goes back. Of the machine's own runtime it costs a fifth of what Now does: it is
// the time of the kernel's last tick, and a step. Of any other it is Now().
MonotonicTime CoarseNow(Runtime& runtime);

}  // namespace deut

#endif  // COMMON_RUNTIME_COARSE_TIME_H_

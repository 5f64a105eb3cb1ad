// CoarseNow: the time, for limits of seconds on paths of microseconds.
// Thread-safety: any thread.
#ifndef COMMON_RUNTIME_COARSE_TIME_H_
#define COMMON_RUNTIME_COARSE_TIME_H_

#include "common/runtime/runtime.h"

namespace deut {

constexpr Duration kCoarseStep = milliseconds(10);

// runtime.Now(), about. Of the machine's own runtime it costs a fifth of what Now does: it is the time of the kernel's last tick, and a step.
// So it is later by a step at most; and earlier, where ticks are further apart or come late (a machine that idles, a host that has taken the
// processor away), by as much. Each answer is no earlier than the one before; beside one of Now it may be either. Of any other runtime it is Now().
MonotonicTime CoarseNow(Runtime& runtime);

}  // namespace deut

#endif  // COMMON_RUNTIME_COARSE_TIME_H_

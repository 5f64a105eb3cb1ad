// CoarseNow: an approximate time, for limits of seconds on paths of microseconds.
// Thread-safety: any thread.
#ifndef COMMON_RUNTIME_COARSE_TIME_H_
#define COMMON_RUNTIME_COARSE_TIME_H_

#include "common/runtime/runtime.h"

namespace deut {

constexpr Duration kCoarseStep = milliseconds(10);

// Returns approximately runtime.Now(). With the machine's own runtime it costs a fifth of Now: it is the time of the
// kernel's last tick plus kCoarseStep. So it is at most one step later than Now.
// It is earlier than Now where ticks are further apart or come late, by as much as they are late: on an idle machine,
// or while the host has taken the processor away. No answer is earlier than the one before. Compared with an answer
// of Now it may be either. With any other runtime it is Now().
MonotonicTime CoarseNow(Runtime& runtime);

}  // namespace deut

#endif  // COMMON_RUNTIME_COARSE_TIME_H_

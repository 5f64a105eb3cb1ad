#include "common/runtime/thread_priority.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace deut {
namespace {

// The kernel's weight of a thread falls by a factor of 1.25 for each step, and 10 steps make 9.3.
constexpr int kSteps = 10;
constexpr int kLowest = 19;

}  // namespace

void LowerThreadPriority() {
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  // -1 is a priority, too, and as good as the default where the call fails. A failure to set it costs latency only.
  const int now = getpriority(PRIO_PROCESS, thread);
  setpriority(PRIO_PROCESS, thread, std::min(now + kSteps, kLowest));
}

}  // namespace deut

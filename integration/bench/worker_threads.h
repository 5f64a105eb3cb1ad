// RunThreads: a body on several threads at once, until it is done or time is up.
#ifndef INTEGRATION_BENCH_WORKER_THREADS_H_
#define INTEGRATION_BENCH_WORKER_THREADS_H_

#include <atomic>
#include <cstddef>
#include <functional>

#include "common/base/status.h"
#include "common/runtime/runtime.h"

namespace deut::bench {

// Runs `body(i)` for each i below `threads` on a thread of its own, and waits for all. `stop`, at which bodies look, becomes true after `time`
// (0: not by time), and when one of them fails. The first failure in their order; `seconds`: how long all of it took.
Status RunThreads(Runtime& runtime, size_t threads, Duration time, std::atomic<bool>* stop,
                  const std::function<Status(size_t)>& body, double* seconds);

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_WORKER_THREADS_H_

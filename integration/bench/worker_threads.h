// RunThreads: runs a body on several threads at once, until it is done or the time is over.
// Thread-safety: any thread.
#ifndef INTEGRATION_BENCH_WORKER_THREADS_H_
#define INTEGRATION_BENCH_WORKER_THREADS_H_

#include <atomic>
#include <cstddef>
#include <functional>

#include "common/base/status.h"
#include "common/runtime/runtime.h"

namespace deut::bench {

// Runs `body(i)` for each i below `threads` on a thread of its own, and waits for all of them. `stop`, which the
// bodies must poll, becomes true after `time` (0: no time limit), and when a body fails. Returns the first failure in
// the order of the threads; `seconds` receives the duration of the whole.
Status RunThreads(Runtime& runtime, size_t threads, Duration time, std::atomic<bool>* stop,
                  const std::function<Status(size_t)>& body, double* seconds);

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_WORKER_THREADS_H_

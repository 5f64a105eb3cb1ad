#include "integration/bench/worker_threads.h"

#include <chrono>
#include <memory>
#include <vector>

namespace deut::bench {

Status RunThreads(Runtime& runtime, size_t threads, Duration time, std::atomic<bool>* stop,
                  const std::function<Status(size_t)>& body, double* seconds) {
  std::vector<Status> ended(threads);
  std::vector<std::unique_ptr<Thread>> running;
  const MonotonicTime begun = runtime.Now();
  for (size_t i = 0; i < threads; ++i) {
    running.push_back(runtime.StartThread("bench-worker", [&, i] {
      ended[i] = body(i);
      if (!ended[i].ok()) stop->store(true);
    }));
  }
  if (time > Duration(0)) {
    runtime.SleepUntil(begun + time);
    stop->store(true);
  }
  for (const auto& thread : running) thread->Join();
  *seconds = std::chrono::duration<double>(runtime.Now() - begun).count();
  for (const Status& status : ended) DEUT_RETURN_IF_ERROR(status);
  return Status();
}

}  // namespace deut::bench

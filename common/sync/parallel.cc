#include "common/sync/parallel.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"

namespace deut {

Status ForEachInParallel(Runtime& runtime, int threads, size_t count, const std::function<Status(size_t)>& work) {
  return ForEachByThread(runtime, threads, count, [&work](size_t i, size_t /*thread*/) { return work(i); });
}

Status ForEachByThread(Runtime& runtime, int threads, size_t count,
                       const std::function<Status(size_t i, size_t thread)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  Mutex mutex(runtime);
  size_t failed_at = count;
  Status error;
  const auto run = [&](size_t thread) {
    while (!failed.load(std::memory_order_relaxed)) {
      const size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) return;
      Status status = work(i, thread);
      if (status.ok()) continue;
      failed.store(true, std::memory_order_relaxed);
      const MutexLock lock(mutex);
      if (i < failed_at) {
        failed_at = i;
        error = std::move(status);
      }
    }
  };
  {
    std::vector<std::unique_ptr<Thread>> others;
    for (int i = 1; i < threads && static_cast<size_t>(i) < count; ++i) {
      others.push_back(runtime.StartThread("parallel", [&run, i] { run(static_cast<size_t>(i)); }));
    }
    run(0);
  }
  return error;
}

}  // namespace deut

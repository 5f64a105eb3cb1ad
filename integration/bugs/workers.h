// Workers: threads that take steps of a workload, each with a client of its own, until each has taken its steps or
// Stop is called.
// Thread-safety: one thread. Ownership: workload, clients and watchdog outlive it.
#ifndef INTEGRATION_BUGS_WORKERS_H_
#define INTEGRATION_BUGS_WORKERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/bugs/watchdog.h"
#include "integration/history/recorder.h"
#include "integration/history/workloads.h"

namespace deut::bugs {

// True for the errors that a step may return when the store is right.
bool IsOrdinary(const Status& status);

class Workers {
 public:
  // `watchdog` may be null: the workers' progress is then not watched.
  Workers(history::Workload& workload, const std::vector<history::RecordedClient*>& clients, uint64_t seed,
          uint64_t steps, Watchdog* watchdog);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void Stop() { stop_.store(true); }
  bool running() const { return running_.load() != 0; }
  // Waits for all threads. Returns the first error of each thread that is not ordinary.
  std::vector<Status> Join();

 private:
  std::atomic<bool> stop_{false};
  std::atomic<size_t> running_;
  std::vector<Status> failures_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_WORKERS_H_

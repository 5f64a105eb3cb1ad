// ApplicationRunner: loads an application's records and runs its terminals, each on a thread and a session of its
// own.
// Thread-safety: one thread.
#ifndef INTEGRATION_BENCH_APPLICATION_RUNNER_H_
#define INTEGRATION_BENCH_APPLICATION_RUNNER_H_

#include <cstdint>

#include "common/base/status.h"
#include "common/observe/histogram.h"
#include "common/runtime/runtime.h"
#include "integration/bench/application.h"
#include "integration/bench/backend.h"

namespace deut::bench {

struct ApplicationRun {
  uint32_t threads = 1;
  // The run ends after this time, or after this many transactions of each terminal (0 = only by time).
  Duration time = seconds(1);
  uint64_t transactions = 0;
  uint64_t seed = 1;
};

struct ApplicationResult {
  double seconds = 0;
  uint64_t transactions = 0;
  uint64_t counted = 0;  // Terminal::counted
  uint64_t retries = 0;
  Histogram latency_ns;  // of a transaction with its retries
};

class ApplicationRunner {
 public:
  ApplicationRunner(Backend& backend, Runtime& runtime) : backend_(backend), runtime_(runtime) {}

  // REQUIRES: the application is not loaded yet.
  Result<ApplicationResult> Load(const Application& application, uint32_t threads);
  // REQUIRES: records of this application's size are loaded.
  Result<ApplicationResult> Run(const Application& application, const ApplicationRun& run);
  // Runs the application's own check, then returns a checksum over all its records, in order. Stores with equal
  // records have equal checksums.
  Result<uint64_t> Check(const Application& application);

 private:
  Backend& backend_;
  Runtime& runtime_;
  uint32_t terminals_ = 0;  // number of terminals so far
};

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_APPLICATION_RUNNER_H_

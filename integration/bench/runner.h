// Runner: loads a store and runs mixes on it with several threads, each with a session of its own, and counts. Every
// store gets the same writes: load values depend on the record's number, those of a run on its seed, thread and
// order.
// Thread-safety: one thread.
#ifndef INTEGRATION_BENCH_RUNNER_H_
#define INTEGRATION_BENCH_RUNNER_H_

#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "common/observe/histogram.h"
#include "common/runtime/runtime.h"
#include "integration/bench/backend.h"
#include "integration/bench/mix.h"

namespace deut::bench {

struct RunOptions {
  Mix mix;
  uint32_t threads = 1;
  // The run ends after this time, or after this many transactions of each thread (0 = only by time).
  Duration time = seconds(1);
  uint64_t transactions = 0;
  uint64_t seed = 1;
  // Number of transactions that a thread runs in parallel (Session::RunPipelined).
  uint32_t pipeline = 1;
  // Every value read is checked whole (ReadCheck).
  bool check_every_value = false;
};

struct RunResult {
  double seconds = 0;
  uint64_t transactions = 0;
  uint64_t records_read = 0;
  uint64_t records_written = 0;
  uint64_t retries = 0;
  // Checksum of everything read, over the threads in their order. Two stores with equal content that run the same
  // transactions (a fixed number of read-only ones) have equal checksums.
  uint64_t checksum = 0;
  Histogram latency_ns;  // of a transaction with its retries, and with its preparation
};

class Runner {
 public:
  Runner(Backend& backend, Runtime& runtime, uint32_t value_bytes)
      : backend_(backend), runtime_(runtime), value_bytes_(value_bytes) {}

  // Writes records 0 to records - 1, `batch` in a transaction. REQUIRES: nothing was loaded yet.
  Result<RunResult> Load(uint64_t records, uint32_t threads, uint32_t batch);
  // REQUIRES: records were loaded.
  Result<RunResult> Run(const RunOptions& options);

  // Returns the number of records; inserts add to it.
  uint64_t records() const { return records_; }

 private:
  Backend& backend_;
  Runtime& runtime_;
  const uint32_t value_bytes_;
  uint64_t records_ = 0;
  uint64_t runs_ = 0;
};

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_RUNNER_H_

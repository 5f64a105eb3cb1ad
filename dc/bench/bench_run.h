// Runs an operation for some time on several threads. Thread-safety: one run at a time.
#ifndef DC_BENCH_BENCH_RUN_H_
#define DC_BENCH_BENCH_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "common/runtime/time.h"
#include "dc/bench/bench_report.h"
#include "dc/bench/bench_store.h"

namespace deut::dc::bench {

// One call performs some operations and counts them.
using Operation = std::function<void(BenchThread*)>;

struct RunResult {
  Work work;              // sum over all threads
  double per_second = 0;  // operations per second of elapsed time (updates: time inside ApplyBatch)
  double cpu_nanos = 0;   // processor time of the thread for one operation; excludes other processes' time
};

// Runs until `time` has passed, and at least 16 times on each thread. `seed`: seed of the threads' random numbers.
RunResult RunFor(uint32_t threads, Duration time, uint64_t seed, const Operation& operation);
// Runs each thread's operation once.
RunResult RunOnce(uint32_t threads, uint64_t seed, const std::function<void(uint32_t thread, BenchThread*)>& operation);

// Adds the rate of operations, and the processor time of one.
void AddRates(const std::string& name, const RunResult& result, BenchReport* report);

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_RUN_H_

// Runs an operation for some time on some threads.
#ifndef DC_BENCH_BENCH_RUN_H_
#define DC_BENCH_BENCH_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "common/runtime/time.h"
#include "dc/bench/bench_report.h"
#include "dc/bench/bench_store.h"

namespace deut::dc::bench {

// One call does some operations, and counts them.
using Operation = std::function<void(BenchThread*)>;

struct RunResult {
  Work work;              // of all threads
  double per_second = 0;  // operations, by the time that passed (of updates: inside ApplyBatch)
  double cpu_nanos = 0;   // of a thread's processor for one operation: what other processes take is not in it
};

// Until `time` has passed, and at least some times on each thread. `seed`: of the threads' random numbers.
RunResult RunFor(uint32_t threads, Duration time, uint64_t seed, const Operation& operation);
// Each thread's operation once.
RunResult RunOnce(uint32_t threads, uint64_t seed, const std::function<void(uint32_t thread, BenchThread*)>& operation);

// Rates of operations, and processor time of one.
void AddRates(const std::string& name, const RunResult& result, BenchReport* report);

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_RUN_H_

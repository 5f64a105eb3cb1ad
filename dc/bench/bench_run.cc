#include "dc/bench/bench_run.h"

#include <ctime>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"

namespace deut::dc::bench {
namespace {

Duration ThreadProcessorTime() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

struct Done {
  Work work;
  Duration passed{0};
  Duration processor{0};
};

RunResult Sum(const std::vector<Done>& threads) {
  RunResult sum;
  Duration processor{0};
  for (const Done& thread : threads) {
    const auto operations = static_cast<double>(thread.work.operations);
    const Duration busy = thread.work.busy != Duration(0) ? thread.work.busy : thread.passed;
    sum.per_second += operations / Seconds(busy);
    sum.work.operations += thread.work.operations;
    sum.work.records += thread.work.records;
    sum.work.misses += thread.work.misses;
    sum.work.record_bytes += thread.work.record_bytes;
    processor += thread.processor;
  }
  sum.cpu_nanos = Seconds(processor) * 1e9 / static_cast<double>(sum.work.operations);
  return sum;
}

}  // namespace

RunResult RunOnce(uint32_t threads, uint64_t seed, const std::function<void(uint32_t, BenchThread*)>& operation) {
  std::vector<Done> done(threads);
  const auto run = [&](uint32_t i) {
    BenchThread thread(seed * 1000 + i);
    const Duration processor = ThreadProcessorTime();
    const MonotonicTime begin = RealRuntime().Now();
    operation(i, &thread);
    done[i] = {thread.work, RealRuntime().Now() - begin, ThreadProcessorTime() - processor};
  };
  std::vector<std::unique_ptr<Thread>> others;
  for (uint32_t i = 1; i < threads; ++i) others.push_back(RealRuntime().StartThread("bench", [&run, i] { run(i); }));
  run(0);
  for (const auto& thread : others) thread->Join();
  return Sum(done);
}

RunResult RunFor(uint32_t threads, Duration time, uint64_t seed, const Operation& operation) {
  const MonotonicTime end = RealRuntime().Now() + time;
  return RunOnce(threads, seed, [&](uint32_t, BenchThread* thread) {
    do {
      // Sixteen operations for one reading of the clock, which costs about as much as a cache miss.
      for (int i = 0; i < 16; ++i) operation(thread);
    } while (RealRuntime().Now() < end);
  });
}

void AddRates(const std::string& name, const RunResult& result, BenchReport* report) {
  report->Add(name, "operations/s", result.per_second);
  report->Add(name, "ns processor/operation", result.cpu_nanos);
}

}  // namespace deut::dc::bench

#include "dc/bench/bench_run.h"

#include <atomic>
#include <set>
#include <vector>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut::dc::bench {
namespace {

TEST(BenchRunTest, OnceEachThreadIsCalledAndWhatTheyDidIsAddedUp) {
  constexpr uint32_t kThreads = 3;
  std::vector<std::atomic<int>> calls(kThreads);
  std::vector<uint64_t> random(kThreads);
  const auto operation = [&](uint32_t thread, BenchThread* own) {
    calls[thread].fetch_add(1);
    random[thread] = own->random.Next();
    own->work = {.operations = 10, .records = 100 + thread, .misses = 4, .record_bytes = 1000, .busy = seconds(2)};
  };
  const RunResult result = RunOnce(kThreads, 7, operation);
  for (const std::atomic<int>& each : calls) EXPECT_EQ(each.load(), 1);
  EXPECT_EQ(result.work.operations, 30u);
  EXPECT_EQ(result.work.records, 303u);
  EXPECT_EQ(result.work.misses, 12u);
  EXPECT_EQ(result.work.record_bytes, 3000u);
  EXPECT_EQ(result.per_second, 15) << "each thread's operations by the time that it says";
  EXPECT_GT(result.cpu_nanos, 0);

  const std::vector<uint64_t> first = random;
  EXPECT_EQ(std::set<uint64_t>(first.begin(), first.end()).size(), kThreads) << "threads draw the same";
  RunOnce(kThreads, 7, operation);
  EXPECT_EQ(random, first);
  RunOnce(kThreads, 8, operation);
  EXPECT_NE(random, first);
}

TEST(BenchRunTest, UntilTheTimeHasPassedAndAtLeastSomeTimes) {
  for (const Duration time : {Duration(0), Duration(milliseconds(2))}) {
    std::atomic<uint64_t> calls{0};
    const MonotonicTime begin = RealRuntime().Now();
    const RunResult result = RunFor(2, time, 1, [&](BenchThread* thread) {
      calls.fetch_add(1);
      thread->work.operations += 3;
    });
    EXPECT_GE(RealRuntime().Now(), begin + time);
    EXPECT_GE(calls.load(), 2u);
    EXPECT_EQ(result.work.operations, 3 * calls.load());
    EXPECT_GT(result.per_second, 0);
    EXPECT_GT(result.cpu_nanos, 0);
  }
}

TEST(BenchRunTest, RatesAreTwoRows) {
  BenchReport report;
  AddRates("lookup", {.work = {}, .per_second = 5, .cpu_nanos = 70}, &report);
  ASSERT_EQ(report.rows().size(), 2u);
  EXPECT_EQ(report.rows()[0].unit, "operations/s");
  EXPECT_EQ(report.rows()[0].samples, std::vector<double>{5});
  EXPECT_EQ(report.rows()[1].unit, "ns processor/operation");
  EXPECT_EQ(report.rows()[1].samples, std::vector<double>{70});
}

}  // namespace
}  // namespace deut::dc::bench

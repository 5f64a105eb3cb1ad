#include "common/observe/metrics.h"

#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(Metrics, SnapshotHasAllByName) {
  Metrics metrics(RealRuntime());
  metrics.counter("b.count").Add();
  metrics.counter("b.count").Add(4);
  metrics.gauge("a_bytes").Set(7);
  metrics.gauge("a_bytes").Add(-9);
  int64_t asked = 3;
  metrics.AddGauge("c", [&] { return asked; });
  EXPECT_EQ(metrics.Snapshot(), (std::vector<MetricValue>{{"a_bytes", -2}, {"b.count", 5}, {"c", 3}}));
  asked = 4;
  metrics.Remove("a_bytes");
  EXPECT_EQ(metrics.Snapshot(), (std::vector<MetricValue>{{"b.count", 5}, {"c", 4}}));
}

TEST(Metrics, CountsOfManyThreadsAddUp) {
  Metrics metrics(RealRuntime());
  Counter& counter = metrics.counter("n");
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (int t = 0; t < 20; ++t) {  // fewer than ThreadIndex::kMaxThreads: each thread has a cell of its own
      threads.push_back(RealRuntime().StartThread("adder", [&] {
        for (int i = 0; i < 5000; ++i) counter.Add(2);
      }));
    }
    for (int i = 0; i < 100; ++i) EXPECT_LE(metrics.Snapshot()[0].value, 200000);
  }
  EXPECT_EQ(counter.value(), 200000u);
}

TEST(MetricsDeathTest, ANameIsOfOneKind) {
  Metrics metrics(RealRuntime());
  metrics.counter("n");
  EXPECT_DEATH(metrics.gauge("n"), "metric.counter == nullptr");
}

}  // namespace
}  // namespace deut

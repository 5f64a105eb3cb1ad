#include "common/observe/histogram.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(Histogram, IsEmptyAtFirst) {
  Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.Percentile(99), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 50; ++value) histogram.Record(value);
  EXPECT_EQ(histogram.Percentile(0), 1u);
  EXPECT_EQ(histogram.Percentile(50), 25u);
  EXPECT_EQ(histogram.Percentile(98), 49u);
  EXPECT_EQ(histogram.Percentile(100), 50u);
  EXPECT_EQ(histogram.mean(), 25.5);
}

TEST(Histogram, EveryMagnitudeKeepsTheStatedError) {
  for (uint32_t bits = 0; bits < 64; ++bits) {
    for (const uint64_t value : {uint64_t{1} << bits, (uint64_t{1} << bits) | 1, (uint64_t{2} << bits) - 1,
                                 (uint64_t{1} << bits) + (uint64_t{1} << bits) / 3}) {
      Histogram histogram;
      histogram.Record(0);
      histogram.RecordMany(value, 2);
      histogram.Record(UINT64_MAX);
      const uint64_t median = histogram.Percentile(50);
      EXPECT_GE(median, value);
      EXPECT_LE(median - value, value / 64);
      EXPECT_EQ(histogram.min(), 0u);
      EXPECT_EQ(histogram.max(), UINT64_MAX);
    }
  }
}

TEST(Histogram, PercentilesOfManyValuesKeepTheStatedError) {
  Random random(42);
  std::vector<uint64_t> values;
  Histogram histogram, first_half, second_half;
  for (int i = 0; i < 50000; ++i) {
    const uint64_t value = random.Next() >> random.Between(10, 63);
    values.push_back(value);
    histogram.Record(value);
    (i % 2 == 0 ? first_half : second_half).Record(value);
  }
  std::sort(values.begin(), values.end());
  first_half.Merge(second_half);
  for (const double percent : {0.1, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99}) {
    const auto rank = static_cast<size_t>(std::ceil(percent / 100 * 50000)) - 1;
    const uint64_t reported = histogram.Percentile(percent);
    EXPECT_GE(reported, values[rank]) << percent;
    EXPECT_LE(reported - values[rank], values[rank] / 64) << percent;
    EXPECT_EQ(first_half.Percentile(percent), reported);
  }
  EXPECT_EQ(first_half.count(), 50000u);
  EXPECT_EQ(first_half.sum(), histogram.sum());
  EXPECT_EQ(first_half.max(), values.back());
  EXPECT_EQ(first_half.min(), values.front());
}

TEST(Histogram, CopiesAndClears) {
  Histogram histogram;
  histogram.RecordMany(1000, 3);
  Histogram copy = histogram;
  histogram.Clear();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(copy.count(), 3u);
  EXPECT_EQ(copy.Percentile(50), 1000u);
  histogram = copy;
  EXPECT_EQ(histogram.sum(), 3000u);
}

TEST(Histogram, JsonIsInMicroseconds) {
  Histogram histogram;
  histogram.Record(1000);
  histogram.Record(2000);
  EXPECT_EQ(histogram.ToMicrosJson(),
            R"({"count":2,"mean":1.500,"p50":1.007,"p95":2.000,"p99":2.000,"p999":2.000,"max":2.000})");
}

TEST(Histogram, MayBeReadWhileItIsRecorded) {
  Histogram histogram;
  std::atomic<bool> done{false};
  auto recorder = RealRuntime().StartThread("recorder", [&] {
    for (uint64_t i = 0; i < 200000; ++i) histogram.Record(i % 1000);
    done = true;
  });
  uint64_t last = 0;
  while (!done) {
    Histogram total;
    total.Merge(histogram);
    EXPECT_GE(total.count(), last);
    last = total.count();
    EXPECT_LE(total.Percentile(100), 999u);
  }
  recorder->Join();
  EXPECT_EQ(histogram.count(), 200000u);
}

}  // namespace
}  // namespace deut

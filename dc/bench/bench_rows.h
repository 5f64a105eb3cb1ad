// Helpers for tests of the benchmark's parts: the rows that a report must have. Thread-safety: none.
#ifndef DC_BENCH_BENCH_ROWS_H_
#define DC_BENCH_BENCH_ROWS_H_

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "dc/bench/bench_report.h"
#include "gtest/gtest.h"

namespace deut::dc::bench {

// Returns the units of all rows with this name, in order. Checks that each row has `samples` samples, and that each
// is a number that can be shown.
inline std::vector<std::string> UnitsOf(const BenchReport& report, const std::string& name, size_t samples) {
  std::vector<std::string> units;
  for (const BenchReport::Row& row : report.rows()) {
    if (row.name != name) continue;
    units.push_back(row.unit);
    EXPECT_EQ(row.samples.size(), samples) << name << ", " << row.unit;
    for (const double sample : row.samples) {
      EXPECT_TRUE(std::isfinite(sample) && sample >= 0) << name << ", " << row.unit << ": " << sample;
    }
  }
  return units;
}

// Returns the only sample of a row.
inline double SampleOf(const BenchReport& report, const std::string& name, const std::string& unit) {
  for (const BenchReport::Row& row : report.rows()) {
    if (row.name == name && row.unit == unit && row.samples.size() == 1) return row.samples.front();
  }
  ADD_FAILURE() << "no row of one sample: " << name << ", " << unit;
  return 0;
}

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_ROWS_H_

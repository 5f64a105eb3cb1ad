#include <string>
#include <vector>

#include "common/base/concat.h"
#include "dc/bench/bench_parts.h"
#include "dc/bench/bench_rows.h"
#include "gtest/gtest.h"

namespace deut::dc::bench {
namespace {

TEST(BenchPartitionTest, ImbalanceOfEachDistributionAndNumber) {
  BenchReport report;
  BenchPartition({.records = 2000}, &report);
  size_t rows = 0;
  for (const std::string pieces : {"16", "256", "1024"}) {
    for (const std::string keys : {"inserted at random", "inserted in order", "half of them thinned to a tenth",
                                   "half of them in a hundredth"}) {
      // The largest piece is never smaller than the mean.
      EXPECT_GE(SampleOf(report, Concat("partition into ", pieces, ": ", keys), "largest / mean"), 1);
      ++rows;
    }
  }
  EXPECT_EQ(report.rows().size(), rows) << report.Text();
}

}  // namespace
}  // namespace deut::dc::bench

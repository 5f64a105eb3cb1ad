#include <string>
#include <vector>

#include "common/base/concat.h"
#include "dc/bench/bench_parts.h"
#include "dc/bench/bench_rows.h"
#include "gtest/gtest.h"

namespace deut::dc::bench {
namespace {

using Units = std::vector<std::string>;

TEST(BenchMemoryTest, AllRowsAtOneThreadAndAtTwo) {
  constexpr uint32_t kRounds = 2;
  BenchReport report;
  BenchMemory({.records = 500, .rounds = kRounds, .time = milliseconds(1)}, &report);
  size_t rows = 1;
  for (const std::string threads : {"1 thread", "2 threads"}) {
    for (const std::string what :
         {"insert", "lookup", "lookup, eight in a call", "scan of 1-100 records", "update", "lookup after updates"}) {
      EXPECT_EQ(UnitsOf(report, Concat("memory: ", what, ", ", threads), kRounds),
                (Units{"operations/s", "ns processor/operation"}));
      rows += 2;
    }
    EXPECT_EQ(UnitsOf(report, "memory: scan of 10,000 records, " + threads, kRounds),
              (Units{"records/s", "ns processor/record"}));
    rows += 2;
  }
  EXPECT_GT(SampleOf(report, "memory: of the component for a byte of records", "ratio"), 1);
  EXPECT_EQ(report.rows().size(), rows) << report.Text();
}

}  // namespace
}  // namespace deut::dc::bench

#include "dc/bench/bench_report.h"

#include <string>

#include "gtest/gtest.h"

namespace deut::dc::bench {
namespace {

TEST(BenchReportTest, ARowIsMadeByItsFirstSampleAndNamedByNameAndUnit) {
  BenchReport report;
  EXPECT_TRUE(report.rows().empty());
  report.Add("scan", "records/s", 3);
  report.Add("lookup", "operations/s", 7);
  report.Add("scan", "ns", 5);
  report.Add("scan", "records/s", 1);
  ASSERT_EQ(report.rows().size(), 3u);
  EXPECT_EQ(report.rows()[0].name, "scan");
  EXPECT_EQ(report.rows()[0].unit, "records/s");
  EXPECT_EQ(report.rows()[0].samples, (std::vector<double>{3, 1}));
  EXPECT_EQ(report.rows()[1].name, "lookup");
  EXPECT_EQ(report.rows()[2].unit, "ns");
}

TEST(BenchReportTest, MediansOfOddAndEvenNumbersOfSamples) {
  BenchReport report;
  for (const double sample : {9.0, 1.0, 4.0}) report.Add("odd", "s", sample);
  for (const double sample : {9.0, 1.0, 4.0, 2.0}) report.Add("even", "s", sample);
  report.Add("one", "s", 8);
  EXPECT_EQ(report.rows()[0].Median(), 4);
  EXPECT_EQ(report.rows()[1].Median(), 3);
  EXPECT_EQ(report.rows()[2].Median(), 8);
}

TEST(BenchReportTest, TheTextHasALineARowAndTheSpreadOfSeveralSamples) {
  BenchReport report;
  for (const double sample : {9.0, 1.0, 4.0}) report.Add("several", "s", sample);
  report.Add("one", "operations/s", 1234);
  EXPECT_EQ(
      report.Text(),
      "several                                                     4 s                               1 .. 9       "
      "   of 3\n"
      "one                                                      1234 operations/s          \n");
}

TEST(BenchReportTest, JsonHasEverySample) {
  BenchReport report;
  EXPECT_EQ(report.Json(), "{\"rows\":[]}\n");
  report.Add("a", "s", 2);
  report.Add("a", "s", 0.5);
  report.Add("b", "ratio", 1e9);
  EXPECT_EQ(report.Json(),
            "{\"rows\":[{\"name\":\"a\",\"unit\":\"s\",\"median\":1.25,\"samples\":[2,0.5]},"
            "{\"name\":\"b\",\"unit\":\"ratio\",\"median\":1e+09,\"samples\":[1e+09]}]}\n");
}

}  // namespace
}  // namespace deut::dc::bench

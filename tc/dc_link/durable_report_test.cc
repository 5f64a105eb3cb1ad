#include "tc/dc_link/durable_report.h"

#include "gtest/gtest.h"

namespace deut::tc {
namespace {

MonotonicTime At(int64_t ms) { return MonotonicTime(seconds(100) + milliseconds(ms)); }

TEST(DurableReportTest, X4ANewerLsnIsDueAfterThePause) {
  DurableReport report(milliseconds(10));
  report.Restart(Lsn{100});
  EXPECT_FALSE(report.Due(Lsn{100}, At(0))) << "the DC knows it from an earlier stream";
  EXPECT_TRUE(report.Due(Lsn{101}, At(0)));
  report.Told(Lsn{150}, At(0));
  EXPECT_FALSE(report.IsNews(Lsn{150}));
  EXPECT_FALSE(report.Due(Lsn{150}, At(1000)));
  EXPECT_TRUE(report.IsNews(Lsn{151}));
  EXPECT_EQ(report.next(), At(10));
  EXPECT_FALSE(report.Due(Lsn{151}, At(9)));
  EXPECT_TRUE(report.Due(Lsn{151}, At(10)));
}

TEST(DurableReportTest, X4AStreamToADcThatKnowsLessTellsAgain) {
  DurableReport report(milliseconds(10));
  report.Restart(Lsn{100});
  report.Told(Lsn{150}, At(0));
  report.Restart(Lsn{100});  // the batch was lost
  EXPECT_TRUE(report.IsNews(Lsn{150}));
  EXPECT_TRUE(report.Due(Lsn{150}, At(10)));
}

}  // namespace
}  // namespace deut::tc

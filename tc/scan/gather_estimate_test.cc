#include "tc/scan/gather_estimate.h"

#include <gtest/gtest.h>

namespace deut::tc {
namespace {

TEST(GatherEstimateTest, BeforeAnythingIsKnownEachRecordMayBeInTheTc) {
  const GatherEstimate estimate;
  EXPECT_EQ(estimate.KeysFor(100), 125u);
  EXPECT_EQ(estimate.KeysFor(1), 1u);
}

TEST(GatherEstimateTest, FollowsWhatScansNeed) {
  GatherEstimate estimate;
  for (int i = 0; i < 10; ++i) estimate.Record(50, 0);
  EXPECT_LE(estimate.KeysFor(1000), 10u);
  for (int i = 0; i < 1000; ++i) estimate.Record(100, 20);
  EXPECT_GE(estimate.KeysFor(100), 20u + 3 * 4);
  EXPECT_LE(estimate.KeysFor(100), 40u);
  for (int i = 0; i < 1000; ++i) estimate.Record(100, 100);
  EXPECT_GE(estimate.KeysFor(100), 100u);
  // Keys that show nothing: the estimate is no higher than for records that are all in the TC.
  for (int i = 0; i < 1000; ++i) estimate.Record(1, 1000);
  EXPECT_LE(estimate.KeysFor(100), 130u);
}

TEST(GatherEstimateTest, OldReportsAreForgotten) {
  GatherEstimate estimate;
  estimate.Record(100, 100);
  for (int i = 0; i < 400; ++i) estimate.Record(100, 0);
  EXPECT_LE(estimate.KeysFor(1'000'000), 4u);
}

}  // namespace
}  // namespace deut::tc

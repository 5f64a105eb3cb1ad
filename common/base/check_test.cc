#include "common/base/check.h"

#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(CheckDeathTest, NamesFileAndCondition) {
  const int one = 1;
  DEUT_CHECK(one == 1);
  EXPECT_DEATH(DEUT_CHECK(one == 2), "check_test.cc:[0-9]+: invariant does not hold: one == 2");
}

TEST(CheckDeathTest, FailStopExitsWithStatus3) {
  EXPECT_EXIT(FailStop("the device failed"), ::testing::ExitedWithCode(3), "fail-stop: the device failed");
}

TEST(Check, EvaluatesTheConditionOnce) {
  int evaluations = 0;
  DEUT_CHECK(++evaluations > 0);
  EXPECT_EQ(evaluations, 1);
}

#ifdef NDEBUG
TEST(Check, DebugCheckIsNotEvaluatedInReleaseBuilds) {
  int evaluations = 0;
  DEUT_DCHECK(++evaluations > 0);
  EXPECT_EQ(evaluations, 0);
}
#else
TEST(CheckDeathTest, DebugCheckEndsTheProcessInDebugBuilds) {
  const int one = 1;
  EXPECT_DEATH(DEUT_DCHECK(one == 2), "one == 2");
}
#endif

}  // namespace
}  // namespace deut

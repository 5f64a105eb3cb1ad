#include "tc/redo_log/linger_policy.h"

#include <gtest/gtest.h>

namespace deut::tc {
namespace {

TEST(LingerPolicy, IdleLingersEndInASleepAndARecordBeginsAnew) {
  LingerPolicy policy;
  for (int i = 1; i < LingerPolicy::kIdleLingersBeforeSleep; ++i) policy.EndLinger(0, /*idle=*/true);
  EXPECT_TRUE(policy.may_linger());
  policy.EndLinger(0, /*idle=*/false);
  for (int i = 0; i < LingerPolicy::kIdleLingersBeforeSleep; ++i) {
    EXPECT_TRUE(policy.may_linger()) << i;
    policy.EndLinger(0, /*idle=*/true);
  }
  EXPECT_FALSE(policy.may_linger());
  policy.BeginSleep();
  policy.EndSleep();
  EXPECT_TRUE(policy.may_linger()) << "a wake means that there is work";
}

TEST(LingerPolicy, AContendedLeadEndsLeadingForSomeSleeps) {
  LingerPolicy policy;
  policy.EndLinger(1, /*idle=*/false);
  for (int i = 0; i < LingerPolicy::kSleepsAfterContention; ++i) {
    EXPECT_FALSE(policy.may_linger()) << i;
    policy.BeginSleep();
    policy.EndSleep();
  }
  EXPECT_TRUE(policy.may_linger());
  policy.EndLinger(1, /*idle=*/false);
  EXPECT_TRUE(policy.may_linger()) << "it was counted before";
}

}  // namespace
}  // namespace deut::tc

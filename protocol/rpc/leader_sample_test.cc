#include "protocol/rpc/leader_sample.h"

#include <pthread.h>

#include <ctime>

#include "common/base/check.h"
#include "gtest/gtest.h"
#include "protocol/rpc/rpc_thread_pool.h"

namespace deut {
namespace {

// The calling thread is the leader.
class LeaderSampleTest : public ::testing::Test {
 protected:
  LeaderSampleTest() { DEUT_CHECK(pthread_getcpuclockid(pthread_self(), &leader_.clock) == 0); }

  // Uses the processor for at least this long.
  void Compute(Duration time) const {
    const auto used = [this] {
      timespec now{};
      DEUT_CHECK(clock_gettime(leader_.clock, &now) == 0);
      return seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
    };
    const auto end = used() + time;
    while (used() < end) {
    }
  }

  RpcThread leader_;
  LeaderSample sample_;
};

TEST_F(LeaderSampleTest, ALeaderThatUsesTheProcessorMostOfTheTimeComputes) {
  EXPECT_FALSE(sample_.Computes(&leader_, milliseconds(2))) << "there is no earlier check to compare with";
  Compute(milliseconds(2));
  EXPECT_TRUE(sample_.Computes(&leader_, milliseconds(2)));
  EXPECT_FALSE(sample_.Computes(&leader_, seconds(3600))) << "it has waited nearly all of that time";
}

TEST_F(LeaderSampleTest, ALeaderThatHasBegunAnotherWaitDoesNotCompute) {
  (void)sample_.Computes(&leader_, milliseconds(2));
  Compute(milliseconds(2));
  ++leader_.lead_count;
  EXPECT_FALSE(sample_.Computes(&leader_, milliseconds(2)));
  Compute(milliseconds(2));
  EXPECT_TRUE(sample_.Computes(&leader_, milliseconds(2)));
}

TEST_F(LeaderSampleTest, AnotherLeaderOrNoneInBetweenBeginsANewComparison) {
  RpcThread other;
  other.clock = leader_.clock;
  (void)sample_.Computes(&other, milliseconds(2));
  Compute(milliseconds(2));
  EXPECT_FALSE(sample_.Computes(&leader_, milliseconds(2)));
  Compute(milliseconds(2));
  EXPECT_FALSE(sample_.Computes(nullptr, milliseconds(2)));
  Compute(milliseconds(2));
  EXPECT_FALSE(sample_.Computes(&leader_, milliseconds(2)));
}

}  // namespace
}  // namespace deut

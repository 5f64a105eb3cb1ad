#include "common/sync/adaptive_spin.h"

#include <cstdint>

#include "common/runtime/runtime.h"
#include "common/testing/forwarding_runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

// Time stands still, except that each Yield advances it.
class SteppedRuntime final : public testing::ForwardingRuntime {
 public:
  MonotonicTime Now() override { return now_; }
  void Yield() override { now_ += yield_; }

  void SetYield(Duration yield) { yield_ = yield; }

 private:
  Duration yield_ = microseconds(1);
  MonotonicTime now_ = RealRuntime().Now();
};

class AdaptiveSpinTest : public ::testing::Test {
 protected:
  // Waits for something that the look number `at` finds; 0: no look finds it.
  bool Find(int at, Deadline deadline = kNoDeadline) {
    looks_ = 0;
    return spin_.Find(runtime_, deadline, [&] { return ++looks_ == at; });
  }

  SteppedRuntime runtime_;
  AdaptiveSpin spin_;
  int looks_ = 0;
};

TEST_F(AdaptiveSpinTest, SpinsForSpinTimeAndNotBeyondTheDeadline) {
  const MonotonicTime begin = runtime_.Now();
  EXPECT_TRUE(Find(7));
  EXPECT_EQ(looks_, 7);
  EXPECT_FALSE(Find(0));
  EXPECT_EQ(runtime_.Now() - begin, AdaptiveSpin::kSpinTime + microseconds(7));
  // Once more from the beginning, with a deadline that has passed: one look.
  AdaptiveSpin other;
  looks_ = 0;
  EXPECT_FALSE(other.Find(runtime_, runtime_.Now(), [&] { return ++looks_ == 2; }));
  EXPECT_EQ(looks_, 1);
}

TEST_F(AdaptiveSpinTest, AfterFailedSpinsTheNextWaitsSleep) {
  for (uint64_t round = 1; round <= 3; ++round) {
    EXPECT_FALSE(Find(0));
    EXPECT_EQ(spin_.spins(), round);
    EXPECT_EQ(spin_.failed_spins(), round);
    for (uint32_t i = 0; i < AdaptiveSpin::kWaitsToSkip; ++i) {
      EXPECT_FALSE(Find(1));
      EXPECT_EQ(looks_, 0) << "it sleeps without a look";
    }
  }
}

// Each successful spin makes up for half of a failed one, and a long run of them for a few failed ones.
TEST_F(AdaptiveSpinTest, SpinsWhereTwoOfThreeSpinsFindTheEvent) {
  EXPECT_TRUE(Find(1));
  EXPECT_TRUE(Find(1));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(Find(0));
    EXPECT_TRUE(Find(1));
    EXPECT_TRUE(Find(1));
  }
  EXPECT_EQ(spin_.spins(), 3002u);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Find(1));
  const uint64_t before = spin_.failed_spins();
  while (true) {
    Find(0);
    if (looks_ == 0) break;
  }
  EXPECT_EQ(spin_.failed_spins() - before, AdaptiveSpin::kMaxCredit / 2 + 1);
}

// With other threads at work, a yield lasts for a turn of the scheduler. A thread that yields again and again would get
// almost no turns, and would say of itself that it finds all it waits for.
TEST_F(AdaptiveSpinTest, ASpinWithALongYieldCountsAsFailed) {
  for (int i = 0; i < AdaptiveSpin::kMaxCredit; ++i) EXPECT_TRUE(Find(1));
  runtime_.SetYield(AdaptiveSpin::kMaxYield + microseconds(1));
  for (uint64_t late = 1; late <= AdaptiveSpin::kMaxCredit / 2 + 1; ++late) {
    EXPECT_TRUE(Find(1)) << "what is there is found nonetheless";
    EXPECT_EQ(spin_.failed_spins(), late);
  }
  EXPECT_FALSE(Find(1));
  EXPECT_EQ(looks_, 0) << "it sleeps without a look";
}

}  // namespace
}  // namespace deut

#include "tc/dc_link/low_water_rounds.h"

#include "gtest/gtest.h"

namespace deut::tc {
namespace {

MonotonicTime At(int64_t ms) { return MonotonicTime(seconds(100) + milliseconds(ms)); }

class FixedLowWater final : public LowWaterSource {
 public:
  Timestamp low_water() const override { return low_water_; }
  Timestamp AdvanceNow() override {
    low_water_ = next;
    return low_water_;
  }
  Timestamp next{10};

 private:
  Timestamp low_water_{10};
};

TEST(LowWaterRoundsTest, PausesDoubleWhileLowWaterStandsStill) {
  FixedLowWater source;
  LowWaterRounds rounds(source, milliseconds(1), milliseconds(3));
  EXPECT_TRUE(rounds.Due(At(0)));
  EXPECT_FALSE(rounds.Run(At(0)));
  EXPECT_FALSE(rounds.Due(At(1)));
  EXPECT_EQ(rounds.next(), At(2));
  EXPECT_FALSE(rounds.Run(At(2)));
  EXPECT_EQ(rounds.next(), At(5)) << "at most the longest pause";
  source.next = Timestamp{11};
  EXPECT_TRUE(rounds.Run(At(5)));
  EXPECT_EQ(rounds.next(), At(6)) << "it has moved: the pause is short again";
}

TEST(LowWaterRoundsTest, PausesBeginAnewForTheNextCommitThatIsHeldBack) {
  FixedLowWater source;
  LowWaterRounds rounds(source, milliseconds(1), milliseconds(100));
  rounds.Run(At(0));
  rounds.Run(At(2));
  EXPECT_EQ(rounds.next(), At(6));
  rounds.Reset();
  rounds.Run(At(10));
  EXPECT_EQ(rounds.next(), At(12));
}

}  // namespace
}  // namespace deut::tc

#include "tc/dc_link/read_target.h"

#include "gtest/gtest.h"

namespace deut::tc {
namespace {

constexpr Position EndOf(uint64_t commit) { return Position{Lsn{commit}, UINT32_MAX}; }

TEST(ReadTargetTest, NothingIsEnoughBeforeTheStartTargetIsKnown) {
  ReadTarget target;
  target.RequireAllSent(Position{});
  EXPECT_FALSE(target.start_target_known());
  target.RaiseEverSent(EndOf(20));  // the first Hello: an earlier process has sent that
  EXPECT_FALSE(target.ReachedBy(EndOf(20)));
  target.SetStartTarget(EndOf(50));
  EXPECT_TRUE(target.start_target_known());
  EXPECT_FALSE(target.ReachedBy(Position{Lsn{50}, 3}));
  EXPECT_TRUE(target.ReachedBy(EndOf(50)));
  EXPECT_EQ(target.ever_sent(), EndOf(50)) << "an earlier process may have sent it";
}

TEST(ReadTargetTest, AnotherIncarnationNeedsAllThatWasSentAndNotOnlyWhatWasAcknowledged) {
  ReadTarget target;
  target.SetStartTarget(Position{});
  target.RaiseEverSent(EndOf(100));
  EXPECT_TRUE(target.ReachedBy(Position{})) << "the present incarnation is asked for no more than at its beginning";
  target.RequireAllSent(EndOf(40));
  EXPECT_EQ(target.required(), EndOf(100));
  EXPECT_FALSE(target.ReachedBy(EndOf(40)));
  target.RaiseEverSent(EndOf(200));
  EXPECT_TRUE(target.ReachedBy(EndOf(100))) << "what is sent later is not required of it";
}

TEST(ReadTargetTest, PositionsNeverGoBack) {
  ReadTarget target;
  target.RaiseEverSent(EndOf(100));
  target.RequireAllSent(Position{});
  target.SetStartTarget(EndOf(50));
  target.RaiseEverSent(EndOf(70));
  EXPECT_EQ(target.required(), EndOf(100));
  EXPECT_EQ(target.ever_sent(), EndOf(100));
}

}  // namespace
}  // namespace deut::tc

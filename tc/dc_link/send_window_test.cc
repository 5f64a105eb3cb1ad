#include "tc/dc_link/send_window.h"

#include "gtest/gtest.h"

namespace deut::tc {
namespace {

constexpr Position EndOf(uint64_t commit) { return Position{Lsn{commit}, UINT32_MAX}; }
MonotonicTime At(int64_t ms) { return MonotonicTime(seconds(100) + milliseconds(ms)); }

TEST(SendWindowTest, BoundsTheBytesInFlight) {
  SendWindow window(1000, seconds(10));
  window.Restart(Position{}, At(0));
  EXPECT_TRUE(window.HasRoomFor(5000)) << "a batch that is larger than the window is sent alone";
  window.Sent(EndOf(10), 600, At(0));
  EXPECT_TRUE(window.HasRoomFor(400));
  EXPECT_FALSE(window.HasRoomFor(401));
  window.Sent(Position{Lsn{20}, 7}, 400, At(1));
  EXPECT_EQ(window.bytes(), 1000u);
  EXPECT_FALSE(window.HasRoomFor(1));
}

TEST(SendWindowTest, ABatchLeavesWhenAllOfItIsApplied) {
  SendWindow window(1000, seconds(10));
  window.Restart(Position{}, At(0));
  window.Sent(EndOf(10), 100, At(0));
  window.Sent(Position{Lsn{20}, 7}, 200, At(0));
  window.Sent(EndOf(20), 300, At(0));
  window.Acknowledge(Position{Lsn{10}, 5}, At(1));
  EXPECT_EQ(window.bytes(), 600u) << "a part of the first batch";
  window.Acknowledge(Position{Lsn{20}, 7}, At(2));
  EXPECT_EQ(window.bytes(), 300u);
  window.Acknowledge(Position{Lsn{20}, 7}, At(3));  // again
  EXPECT_EQ(window.bytes(), 300u);
  window.Acknowledge(EndOf(30), At(4));
  EXPECT_TRUE(window.empty());
  EXPECT_EQ(window.bytes(), 0u);
}

TEST(SendWindowTest, StallsWhenNothingIsAcknowledgedForTheTimeout) {
  SendWindow window(1000, milliseconds(30));
  window.Restart(Position{}, At(0));
  EXPECT_FALSE(window.Stalled(At(1000))) << "nothing is in flight";
  window.Sent(EndOf(10), 100, At(1000));
  window.Sent(EndOf(20), 100, At(1020));
  EXPECT_EQ(window.stalls_at(), At(1030));
  EXPECT_FALSE(window.Stalled(At(1029)));
  EXPECT_TRUE(window.Stalled(At(1030)));
  window.Acknowledge(EndOf(10), At(1025));
  EXPECT_FALSE(window.Stalled(At(1054)));
  window.Acknowledge(EndOf(10), At(1050));  // nothing new: no progress
  EXPECT_TRUE(window.Stalled(At(1055)));
}

TEST(SendWindowTest, ANewStreamBeginsEmpty) {
  SendWindow window(1000, milliseconds(30));
  window.Restart(Position{}, At(0));
  window.Sent(EndOf(10), 900, At(0));
  window.Restart(EndOf(4), At(50));  // of another incarnation, which has less
  EXPECT_TRUE(window.empty());
  EXPECT_TRUE(window.HasRoomFor(1000));
  window.Sent(EndOf(5), 100, At(60));
  EXPECT_FALSE(window.Stalled(At(89)));
  window.Acknowledge(EndOf(5), At(70));
  EXPECT_TRUE(window.empty());
}

}  // namespace
}  // namespace deut::tc

#include "tc/dc_link/acknowledged_positions.h"

#include "gtest/gtest.h"

namespace deut::tc {
namespace {

constexpr Position EndOf(uint64_t commit) { return Position{Lsn{commit}, UINT32_MAX}; }

TEST(AcknowledgedPositionsTest, RiseWithinAnIncarnationEachByItself) {
  AcknowledgedPositions positions;
  EXPECT_EQ(positions.applied(), Position{});
  EXPECT_EQ(positions.stable(), Position{});
  positions.Raise(EndOf(20), EndOf(10));
  positions.Raise(EndOf(15), EndOf(12));  // late, but told by another checkpoint
  EXPECT_EQ(positions.applied(), EndOf(20));
  EXPECT_EQ(positions.stable(), EndOf(12));
  positions.Raise(Position{Lsn{20}, 7}, EndOf(3));  // inside a commit that is applied to its end
  EXPECT_EQ(positions.applied(), EndOf(20));
  EXPECT_EQ(positions.stable(), EndOf(12));
}

TEST(AcknowledgedPositionsTest, AnotherIncarnationReplacesBothAlsoByLowerOnes) {
  AcknowledgedPositions positions;
  positions.Raise(EndOf(100), EndOf(60));
  positions.Replace(EndOf(20), EndOf(10));
  EXPECT_EQ(positions.applied(), EndOf(20));
  EXPECT_EQ(positions.stable(), EndOf(10));
  positions.Raise(EndOf(40), EndOf(10));
  EXPECT_EQ(positions.applied(), EndOf(40));
}

}  // namespace
}  // namespace deut::tc

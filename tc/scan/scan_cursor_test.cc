#include "tc/scan/scan_cursor.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace deut::tc {
namespace {

ScanCursor Over(Direction direction, std::string low, std::string high) {
  return ScanCursor{.direction = direction, .low = std::move(low), .high = std::move(high)};
}

TEST(ScanCursorTest, MovesToTheBoundAndThenToTheEnd) {
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    ScanCursor cursor = Over(direction, "b", "y");
    EXPECT_TRUE(cursor.AtBound()) << "nothing is gathered";
    cursor.gathered = true;
    cursor.bound = "m";
    EXPECT_FALSE(cursor.AtBound());
    EXPECT_FALSE(cursor.GatheredToTheEnd());
    cursor.MoveTo(/*to_the_bound=*/true, nullptr);
    EXPECT_TRUE(cursor.AtBound());
    EXPECT_EQ(cursor.position(), "m");
    EXPECT_FALSE(cursor.AtEnd());
    cursor.bound = cursor.far_end();
    EXPECT_TRUE(cursor.GatheredToTheEnd());
    cursor.MoveTo(/*to_the_bound=*/true, nullptr);
    EXPECT_TRUE(cursor.AtEnd());
  }
}

TEST(ScanCursorTest, TheEndOfAllKeysIsAnEnd) {
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    ScanCursor cursor = Over(direction, "", "");
    EXPECT_FALSE(cursor.AtEnd());
    cursor.gathered = true;
    EXPECT_TRUE(cursor.GatheredToTheEnd());
    std::string covered = "k";
    cursor.MoveTo(/*to_the_bound=*/false, &covered);
    EXPECT_FALSE(cursor.AtEnd());
    cursor.MoveTo(/*to_the_bound=*/true, nullptr);
    EXPECT_TRUE(cursor.AtEnd());
  }
}

TEST(ScanCursorTest, MovesBehindAKey) {
  ScanCursor up = Over(Direction::kAscending, "a", "");
  up.MoveBehind("c");
  EXPECT_EQ(up.position(), std::string("c\0", 2));
  ScanCursor down = Over(Direction::kDescending, "", "z");
  down.MoveBehind("c");
  EXPECT_EQ(down.position(), "c");
}

TEST(ScanCursorTest, ProgressIsAStepInTheOrderOfTheScan) {
  const ScanCursor up = Over(Direction::kAscending, "b", "y");
  EXPECT_TRUE(up.IsProgress("c", "b", "y"));
  EXPECT_FALSE(up.IsProgress("b", "b", "y"));
  const ScanCursor down = Over(Direction::kDescending, "b", "");
  EXPECT_TRUE(down.IsProgress("c", "b", "y"));
  EXPECT_FALSE(down.IsProgress("y", "b", "y"));
  EXPECT_TRUE(down.IsProgress("y", "b", "")) << "it began at the end of all keys";
}

}  // namespace
}  // namespace deut::tc

#include "dc/page_cache/memory_budget.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace deut::dc {
namespace {

TEST(MemoryBudgetTest, EachLevelBeginsAboveItsShareOfTheLimit) {
  uint64_t used = 0;
  const MemoryBudget budget([&used] { return used; }, 1600);
  EXPECT_FALSE(budget.unlimited());
  EXPECT_EQ(budget.limit(), 1600u);
  EXPECT_EQ(budget.apply_limit(), 1500u);
  const auto levels = [&](uint64_t bytes) {
    used = bytes;
    return (budget.IsOverLowMark() ? 1 : 0) + (budget.IsOverHighMark() ? 1 : 0) + (budget.IsExceededWithout(0) ? 1 : 0);
  };
  EXPECT_EQ(levels(1300), 0);
  EXPECT_EQ(levels(1301), 1);
  EXPECT_EQ(levels(1400), 1);
  EXPECT_EQ(levels(1401), 2);
  EXPECT_EQ(levels(1600), 2);
  EXPECT_EQ(levels(1601), 3);
  EXPECT_EQ(budget.used(), 1601u);
}

TEST(MemoryBudgetTest, RetiredMemoryDoesNotExceedTheLimit) {
  const MemoryBudget budget([] { return 1700; }, 1600);
  EXPECT_TRUE(budget.IsExceededWithout(99));
  EXPECT_FALSE(budget.IsExceededWithout(100));
}

TEST(MemoryBudgetTest, WithoutALimitNothingIsTooMuch) {
  const MemoryBudget budget([] { return UINT64_MAX; }, 0);
  EXPECT_TRUE(budget.unlimited());
  EXPECT_FALSE(budget.IsOverHighMark());
  EXPECT_FALSE(budget.IsExceededWithout(0));
}

}  // namespace
}  // namespace deut::dc

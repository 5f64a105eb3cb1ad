#include "dc/page_cache/freed_memory_returner.h"

#include <cstdint>

#include "common/testing/leaping_runtime.h"
#include "dc/page_cache/memory_budget.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kUsed = 100 * kMiB;

// A process whose memory the test sets. It cannot return `kept` of the bytes beyond kUsed.
class FreedMemoryReturnerTest : public ::testing::Test {
 protected:
  // Sets the bytes beyond kUsed, and returns whether freed memory is returned at the next check.
  bool ReturnsAt(uint64_t unaccounted) {
    unaccounted_ = unaccounted;
    const int before = returned_;
    runtime_.Pass(FreedMemoryReturner::kInterval);
    returner_.RunIfDue();
    return returned_ != before;
  }

  ::deut::testing::LeapingRuntime runtime_;
  uint64_t limit_ = 1024 * kMiB;
  uint64_t unaccounted_ = 0;
  uint64_t kept_ = 0;
  int returned_ = 0;
  int measured_ = 0;
  const MemoryBudget budget_{[] { return kUsed; }, limit_};
  FreedMemoryReturner returner_{runtime_, budget_,
                                [this] {
                                  ++measured_;
                                  return kUsed + unaccounted_;
                                },
                                [this] {
                                  ++returned_;
                                  unaccounted_ = kept_;
                                }};
};

TEST_F(FreedMemoryReturnerTest, MemoryIsReturnedWhenTheProcessHasGrownByASixteenthOfTheBudget) {
  EXPECT_FALSE(ReturnsAt(0));
  EXPECT_FALSE(ReturnsAt(64 * kMiB - 1));
  EXPECT_TRUE(ReturnsAt(64 * kMiB));
  EXPECT_FALSE(ReturnsAt(0));
}

TEST_F(FreedMemoryReturnerTest, GrowthCountsFromTheBytesThatWereLeftAfterTheLastReturn) {
  kept_ = 40 * kMiB;
  EXPECT_TRUE(ReturnsAt(64 * kMiB));
  EXPECT_FALSE(ReturnsAt(104 * kMiB - 1));
  // Other parts of the process release memory: growth counts from there.
  EXPECT_FALSE(ReturnsAt(10 * kMiB));
  EXPECT_FALSE(ReturnsAt(74 * kMiB - 1));
  EXPECT_TRUE(ReturnsAt(74 * kMiB));
}

TEST_F(FreedMemoryReturnerTest, AProcessBelowItsAccountedBytesReturnsNothing) {
  const MemoryBudget budget([] { return kUsed; }, limit_);
  FreedMemoryReturner returner(runtime_, budget, [] { return kUsed - 1; }, [this] { ++returned_; });
  returner.RunIfDue();
  EXPECT_EQ(returned_, 0);
}

TEST_F(FreedMemoryReturnerTest, ASmallBudgetToleratesGrowthUpToTheMinimum) {
  uint64_t resident = kUsed + FreedMemoryReturner::kMinReturnedBytes - 1;
  const MemoryBudget small([] { return kUsed; }, kMiB);
  FreedMemoryReturner returner(runtime_, small, [&] { return resident; }, [this] { ++returned_; });
  returner.RunIfDue();
  EXPECT_EQ(returned_, 0);
  ++resident;
  runtime_.Pass(FreedMemoryReturner::kInterval);
  returner.RunIfDue();
  EXPECT_EQ(returned_, 1);
}

// Room in the slabs of pages is not freed memory of the heap, whether it counts against the budget or not.
TEST_F(FreedMemoryReturnerTest, RoomOfSlabsChangesNothing) {
  for (const uint64_t room : {uint64_t{0}, limit_ / 8, limit_ / 3}) {
    uint64_t other = limit_ / 16 - 1;
    const MemoryBudget budget([] { return kUsed; }, limit_, [room](uint64_t) { return room; });
    FreedMemoryReturner returner(runtime_, budget, [&] { return kUsed + other; }, [this] { ++returned_; });
    returned_ = 0;
    returner.RunIfDue();
    EXPECT_EQ(returned_, 0);
    ++other;
    runtime_.Pass(FreedMemoryReturner::kInterval);
    returner.RunIfDue();
    EXPECT_EQ(returned_, 1) << room;
  }
}

TEST_F(FreedMemoryReturnerTest, TheProcessIsMeasuredOnceForEachInterval) {
  EXPECT_FALSE(ReturnsAt(0));
  EXPECT_EQ(measured_, 1);
  unaccounted_ = 64 * kMiB;
  runtime_.Pass(FreedMemoryReturner::kInterval - Duration(1));
  returner_.RunIfDue();
  EXPECT_EQ(measured_, 1);
  runtime_.Pass(Duration(1));
  returner_.RunIfDue();
  EXPECT_EQ(returned_, 1);
}

}  // namespace
}  // namespace deut::dc

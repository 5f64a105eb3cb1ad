#include "dc/page_cache/hot_page_plan.h"

#include <cstdint>
#include <span>
#include <vector>

#include "gtest/gtest.h"

namespace deut::dc {
namespace {

PageAddress At(uint64_t segment, uint64_t offset, uint64_t bytes = 1024) {
  return PageAddress::Make(segment, offset, bytes);
}

TEST(HotPagePlanTest, WindowsFollowTheOrderOfThePlacesOnTheDisk) {
  HotPagePlan plan({{At(2, 4096), PageId(1), 1024},
                    {At(1, 8192), PageId(2), 1024},
                    {At(1, 4096), PageId(3), 1024},
                    {At(1, 8192), PageId(2), 1024},  // the list has an id twice
                    {At(1, 1 << 20), PageId(4), 5000}});
  EXPECT_EQ(plan.size(), 4u);
  std::vector<uint32_t> order;
  std::vector<size_t> sizes;
  for (;;) {
    const std::span<const HotPage> window = plan.Take(/*bytes=*/2048);
    if (window.empty()) break;
    sizes.push_back(window.size());
    for (const HotPage& page : window) order.push_back(page.id.value);
  }
  EXPECT_EQ(order, (std::vector<uint32_t>{3, 2, 4, 1}));
  EXPECT_EQ(sizes, (std::vector<size_t>{2, 1, 1})) << "a page of more than a window is a window";
}

TEST(HotPagePlanTest, AWindowHasABoundedNumberOfPages) {
  std::vector<HotPage> pages;
  for (uint32_t i = 1; i <= HotPagePlan::kMaxWindowPages + 3; ++i) {
    pages.push_back({At(1, uint64_t{4096} * i), PageId(i), 1});
  }
  HotPagePlan plan(pages);
  EXPECT_EQ(plan.Take(UINT64_MAX).size(), HotPagePlan::kMaxWindowPages);
  EXPECT_EQ(plan.Take(UINT64_MAX).size(), 3u);
  EXPECT_TRUE(plan.Take(UINT64_MAX).empty());
}

TEST(HotPagePlanTest, NeighboursAreReadTogetherWithASmallGapOfOtherBytes) {
  std::vector<PageAddress> parts = {At(1, 4096 + 2048), At(1, 4096), At(1, 6144 + 1024 + kMaxGapBytes)};
  const PageAddress behind = At(1, parts[2].offset() + 1024 + kMaxGapBytes + 128);
  parts.push_back(behind);
  parts.push_back(At(2, behind.offset() + 1024));
  const std::vector<RunOfParts> runs = PlanRuns(&parts);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].first, At(1, 4096));
  EXPECT_EQ(runs[0].last, At(1, 6144 + 1024 + kMaxGapBytes));
  EXPECT_EQ(runs[1].first, behind);
  EXPECT_EQ(runs[1].last, behind);
  EXPECT_EQ(runs[2].first.segment(), 2u);
}

TEST(HotPagePlanTest, ARunIsBoundedUnlessItIsOnePart) {
  constexpr uint64_t kPart = 120 << 10;  // has an exact length bound
  std::vector<PageAddress> parts;
  for (uint64_t i = 0; i < 20; ++i) parts.push_back(At(1, 4096 + i * kPart, kPart));
  parts.push_back(At(2, 4096, 4 << 20));
  const std::vector<RunOfParts> runs = PlanRuns(&parts);
  size_t covered = 0;
  for (const RunOfParts& run : runs) {
    const uint64_t bytes = run.last.offset() + run.last.length_bound() - run.first.offset();
    if (run.first == run.last) EXPECT_EQ(run.first.segment(), 2u);
    if (run.first != run.last) EXPECT_LE(bytes, kMaxRunBytes);
    for (const PageAddress part : parts) covered += run.first <= part && part <= run.last ? 1 : 0;
  }
  EXPECT_EQ(covered, parts.size()) << "each part lies in exactly one run";
  EXPECT_EQ(runs.size(), 6u);
}

TEST(HotPagePlanTest, NothingIsPlannedForNothing) {
  std::vector<PageAddress> parts;
  EXPECT_TRUE(PlanRuns(&parts).empty());
  EXPECT_TRUE(HotPagePlan().Take(1000).empty());
}

}  // namespace
}  // namespace deut::dc

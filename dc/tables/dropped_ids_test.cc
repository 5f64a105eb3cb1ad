#include "dc/tables/dropped_ids.h"

#include <cstdint>
#include <set>
#include <vector>

#include "common/base/ids.h"
#include "common/runtime/random.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

using Runs = std::vector<DroppedIds::Run>;

TEST(DroppedIdsTest, NeighboursBecomeOneRun) {
  DroppedIds ids;
  EXPECT_TRUE(ids.empty());
  EXPECT_FALSE(ids.Contains(TableId(0)));
  for (const uint32_t id : {5u, 3u, 9u}) ids.Add(TableId(id));
  EXPECT_EQ(ids.runs(), (Runs{{3, 3}, {5, 5}, {9, 9}}));
  ids.Add(TableId(4));
  EXPECT_EQ(ids.runs(), (Runs{{3, 5}, {9, 9}}));
  ids.Add(TableId(6), TableId(8));
  EXPECT_EQ(ids.runs(), (Runs{{3, 9}}));
  ids.Add(TableId(UINT32_MAX));
  EXPECT_EQ(ids.highest(), TableId(UINT32_MAX));
  EXPECT_TRUE(ids.Contains(TableId(UINT32_MAX)));
  EXPECT_FALSE(ids.Contains(TableId(2)));
  EXPECT_FALSE(ids.Contains(TableId(10)));
}

TEST(DroppedIdsTest, AgreesWithASetInAnyOrder) {
  Random random(1);
  for (int round = 0; round < 50; ++round) {
    DroppedIds ids;
    std::set<uint32_t> model;
    while (model.size() < 60) {
      const auto id = static_cast<uint32_t>(1 + random.Below(80));
      if (model.insert(id).second) ids.Add(TableId(id));
      for (uint32_t any = 0; any <= 82; ++any) ASSERT_EQ(ids.Contains(TableId(any)), model.contains(any));
    }
    for (size_t i = 1; i < ids.runs().size(); ++i) ASSERT_GT(ids.runs()[i].first, ids.runs()[i - 1].last + 1);
    ASSERT_EQ(ids.highest().value, *model.rbegin());
  }
}

}  // namespace
}  // namespace deut::dc

#include "dc/tables/table_trees.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/tree_fixture.h"
#include "dc/page_store/segment_store.h"
#include "dc/tables/table_registry.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"

namespace deut::dc {
namespace {

class TableTreesTest : public ::testing::Test {
 protected:
  void Create(uint32_t table) {
    const auto created = trees_.registry().Create(TableId(table), Concat("table ", table));
    ASSERT_TRUE(created.ok() && *created);
  }
  void Drop(uint32_t table) {
    const auto dropped = trees_.registry().Drop(TableId(table));
    ASSERT_TRUE(dropped.ok() && *dropped);
  }
  void Put(uint32_t table, uint64_t records) {
    const ReclamationDomain::Guard guard(trees_.domain());
    for (uint64_t i = 0; i < records; ++i) {
      ASSERT_TRUE(trees_.registry().FindTree(TableId(table))->Put(KeyOf(i), std::string(50, 'v'), V(++now_)).ok());
    }
  }
  // Lets the reaper free the trees of all dropped tables.
  void Settle() {
    do {
      trees_.domain().Collect();
      RealRuntime().Yield();
    } while (trees_.domain().pending_bytes() != 0 || trees_.reaper().tables() != 0);
  }

  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  uint64_t now_ = 0;
  TableTrees trees_{
      RealRuntime(), SmallPages(), std::move(*MappingTable::Create(1 << 16)),
      std::move(*SegmentStore::Create(*storage_, RealRuntime(), "/pages", DcId(1), SegmentStoreOptions()))};
};

TEST_F(TableTreesTest, SumsAreThoseOfTheLiveTables) {
  EXPECT_EQ(trees_.Statistics().tables, 0u);
  EXPECT_EQ(trees_.TreeBytes(), 0u);
  Create(1);
  Create(2);
  Put(1, 500);
  Put(2, 500);
  const TableTrees::Sum both = trees_.Statistics();
  EXPECT_EQ(both.tables, 2u);
  EXPECT_GT(both.trees.splits, 1u);
  EXPECT_GT(both.trees.bytes, 1000u * 50);
  EXPECT_EQ(trees_.TreeBytes(), both.trees.bytes);
  EXPECT_GE(trees_.memory_bytes(), both.trees.bytes + trees_.pages().memory_bytes());

  const std::vector<TableInfo> before = trees_.List();
  ASSERT_EQ(before.size(), 2u);
  EXPECT_EQ(before[0].bytes + before[1].bytes, both.trees.bytes);
  Drop(1);
  EXPECT_EQ(trees_.Statistics().tables, 1u);
  EXPECT_EQ(trees_.TreeBytes(), before[1].bytes);
}

TEST_F(TableTreesTest, ADroppedTreeCountsAgainstMemoryUntilItIsFreed) {
  Create(1);
  const uint64_t empty = trees_.memory_bytes() - trees_.TreeBytes();
  Put(1, 2000);
  const uint64_t bytes = trees_.TreeBytes();
  {
    const ReclamationDomain::Guard reader(trees_.domain());
    Drop(1);
    EXPECT_EQ(trees_.TreeBytes(), 0u);
    EXPECT_GE(trees_.memory_bytes(), bytes) << "a reader may still use it";
  }
  Settle();
  EXPECT_EQ(trees_.reaper().bytes(), 0u);
  EXPECT_EQ(trees_.pages().used(), 0u);
  EXPECT_LT(trees_.memory_bytes() - empty, bytes);
}

// With many tables the sum is reused for a moment, and is right afterwards.
TEST_F(TableTreesTest, TheSumOfManyTablesIsRightAfterAWhile) {
  for (uint32_t table = 1; table <= 100; ++table) Create(table);
  const uint64_t before = trees_.TreeBytes();
  EXPECT_EQ(before, trees_.Statistics().trees.bytes);
  Put(50, 500);
  const uint64_t after = trees_.Statistics().trees.bytes;
  ASSERT_GT(after, before);
  for (uint64_t bytes; (bytes = trees_.TreeBytes()) != after;) {
    ASSERT_EQ(bytes, before);
    RealRuntime().SleepUntil(RealRuntime().Now() + std::chrono::microseconds(100));
  }
}

// The trees replace records' timestamps below C by one, and C is the value that is stored here (rule X1).
TEST_F(TableTreesTest, TheTreesUseTheConsolidationTimestamp) {
  const BwTreeEnvironment environment = trees_.environment();
  EXPECT_EQ(environment.consolidation_timestamp.load(), 0u);
  trees_.consolidation_timestamp().store(7);
  EXPECT_EQ(environment.consolidation_timestamp.load(), 7u);
  EXPECT_EQ(environment.gate, &trees_.gate());
  EXPECT_EQ(environment.images, &trees_.segments());
}

}  // namespace
}  // namespace deut::dc

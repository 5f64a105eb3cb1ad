// How reads of keys without an entry are remembered (R6): by the floor of the bucket, by entries of their own, and by
// a floor of all keys of the bucket. Also the races of such a read with a write of the same key, played at test
// points.
#include "tc/record_manager/remember_read.h"

#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

// R6: reads of other keys of a bucket stop no writer. Reads of its own keys do, wherever they are remembered.
TEST(RememberReadTest, OnlyReadsOfItsOwnKeysStopAWriter) {
  constexpr int kKeys = 40;
  EngineFixture f({.log2_buckets = 1});
  const Result<TableId> other = f.manager->CreateTable("other", {}, EngineFixture::Soon());
  ASSERT_TRUE(other.ok());
  {
    std::vector<std::unique_ptr<TestTransaction>> writers;
    TestTransaction bulk = f.Begin();
    for (int i = 0; i < kKeys; ++i) writers.push_back(f.BeginPointer());
    for (const TableId table : {EngineFixture::kTable, *other}) {
      for (int i = 0; i < kKeys; ++i) {
        TestTransaction reader = f.Begin();
        reader.table = table;
        EXPECT_EQ(reader.Get(Concat("read", i)), "-");
        EXPECT_EQ(bulk.Put(Concat("written", 2 * i + (table == *other ? 1 : 0)), "1"), "ok");
        EXPECT_EQ(reader.Commit(), "ok");
      }
    }
    for (int i = 0; i < kKeys; ++i) {
      const std::string put = writers[i]->Put(Concat("read", i), "1");
      EXPECT_TRUE(put == "bucket-floor" || put == "record-read-later") << i << ": " << put;
    }
    EXPECT_EQ(bulk.Commit(), "ok");
    EXPECT_EQ(f.engine->counters.shared_floors.load(), 0u);
  }
  // Entries made only for reads go with the last transaction that they could stop.
  EXPECT_TRUE(f.Settle());
  EXPECT_EQ(f.records->entries(), 0u);
  EXPECT_EQ(f.collector->deferred_entries(), 0u);
}

// R6: when too many entries remember reads, the bucket remembers the latest read of all its keys.
TEST(RememberReadTest, OverTheBudgetNoReadIsForgotten) {
  constexpr int kKeys = 10;
  EngineFixture f({.log2_buckets = 1, .max_deferred_entries = 0});
  std::vector<std::unique_ptr<TestTransaction>> readers, writers;
  for (int i = 0; i < kKeys; ++i) writers.push_back(f.BeginPointer());
  for (int i = 0; i < kKeys; ++i) readers.push_back(f.BeginPointer());
  // The latest reader first: the others must not lower the floor.
  for (int i = kKeys - 1; i >= 0; --i) EXPECT_EQ(readers[i]->Get(Concat("k", i)), "-");
  EXPECT_GT(f.engine->counters.shared_floors.load(), 0u);
  EXPECT_EQ(f.records->entries(), 0u);
  for (int i = 0; i < kKeys - 1; ++i) {
    EXPECT_EQ(readers[i]->Put(Concat("k", kKeys - 1), "1"), "bucket-floor") << i;
    EXPECT_EQ(writers[i]->Put(Concat("k", i), "1"), "bucket-floor") << i;
  }
}

// R6, the race: the reader's second look finds the writer, or the writer's look at the floor finds the reader.
TEST(RememberReadTest, ReadAndInsertOfAnAbsentKeyRace) {
  EngineFixture f;
  TestTransaction t10 = f.Begin(), t20 = f.Begin();
  std::string put;
  AtPoint point("read.floor_raised", [&] { put = t10.Put("new", "1"); });
  const std::string read = t20.Get("new");
  EXPECT_TRUE(point.reached());
  EXPECT_EQ(put, "bucket-floor");
  EXPECT_EQ(read, "-");
}

// R6: the second look sees a version that was installed before the raise.
TEST(RememberReadTest, AnInsertBetweenTheLooksOfARead) {
  EngineFixture f;
  TestTransaction t10 = f.Begin(), t20 = f.Begin();
  std::string put, committed;
  AtPoint point("read.absent", [&] {
    put = t10.Put("new", "1");
    committed = t10.Commit();
  });
  EXPECT_EQ(t20.Get("new"), "1");
  EXPECT_TRUE(point.reached());
  EXPECT_EQ(put, "ok");
  EXPECT_EQ(committed, "ok");
}

// Where nothing is written no other thread runs rounds of low-water, so floors would never become free.
TEST(RememberReadTest, AmongReadersAloneLowWaterRises) {
  // The collector, which would run rounds as well, does not wake by itself.
  EngineFixture f({.log2_buckets = 1, .collector_period = seconds(1000)});
  uint64_t last = 0;
  for (uint64_t i = 0; i < 3 * remember_read::kTimestampsPerLowWaterRound; ++i) {
    TestTransaction reader = f.Begin();
    last = reader.timestamp();
    EXPECT_EQ(reader.Get(Concat("k", i)), "-");
    EXPECT_EQ(reader.Commit(), "ok");
  }
  EXPECT_GT(f.active->low_water().value + 2 * remember_read::kTimestampsPerLowWaterRound, last);
}

}  // namespace
}  // namespace deut::tc

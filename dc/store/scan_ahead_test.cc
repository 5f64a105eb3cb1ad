// A scan over pages that are not in memory loads several of them at once.
#include <cstdint>
#include <memory>
#include <string>

#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

constexpr uint64_t kRecords = 3000;

RecordStoreOptions Options() {
  RecordStoreOptions options = SmallPages(/*memory_bytes=*/0);
  options.tree.inner_page_bytes = 16 << 10;  // makes the leaves neighbours under one parent
  options.scrubber.bytes_per_second = 0;
  options.loader.threads = 1;  // so that the loads of a scan are counted before it goes on
  return options;
}

class ScanAheadTest : public ::testing::TestWithParam<Direction> {
 protected:
  ScanAheadTest() {
    EXPECT_TRUE(world_.TryRestart().ok());
    world_.Create();
    for (uint64_t i = 0; i < kRecords; ++i) world_.Put(KeyOf(i), std::string(50, 'a'));
    world_.TryFlush();
    EXPECT_TRUE(world_.Checkpoint().ok());
    EXPECT_TRUE(world_.TryRestart().ok());
  }

  // Returns the number of records that the scan returned.
  size_t Scan(uint64_t records, RecordOperations::ScanReadAhead* ahead) {
    ScanCursor cursor;
    ScanBudget budget;
    budget.records = records;
    RecordBatch answer;
    EXPECT_TRUE(world_.operations().Scan(kTable, GetParam(), &cursor, &budget, UINT64_MAX, &answer, ahead).ok());
    return answer.size();
  }
  uint64_t Loaded() { return world_.Counter("pages_loaded"); }

  FaultyDisk disk_{RealRuntime(), 1};
  World world_{Options(), &disk_};
};

INSTANTIATE_TEST_SUITE_P(Both, ScanAheadTest, ::testing::Values(Direction::kAscending, Direction::kDescending));

TEST_P(ScanAheadTest, SeveralPagesAreReadAtOnceAndTheRecordsAreRight) {
  // At first the scan loads only the pages that it needs.
  EXPECT_EQ(Scan(30, nullptr), 30u);
  disk_.HoldOperations(kDiskRead);
  RecordOperations::ScanReadAhead ahead{.misses = 3};
  const auto scan = RealRuntime().StartThread("scan", [&] { EXPECT_EQ(Scan(kRecords, &ahead), kRecords); });
  while (disk_.held_operations() < 3) RealRuntime().Yield();
  disk_.HoldOperations(0);
  scan->Join();
  EXPECT_GT(ahead.misses, 3u);
  world_.ExpectRight();
}

// Each page is a wait for the disk, and the deadline counts between two of them. The scan moves nevertheless.
TEST_P(ScanAheadTest, AScanWhoseDeadlineHasPassedLoadsOnePage) {
  ScanCursor cursor;
  size_t records = 0;
  for (int calls = 0; calls < 3; ++calls) {
    const ScanCursor before = cursor;
    const uint64_t loaded = Loaded();
    ScanBudget budget;
    RecordBatch answer;
    ASSERT_TRUE(world_.operations()
                    .Scan(kTable, GetParam(), &cursor, &budget, UINT64_MAX, &answer, nullptr, RealRuntime().Now())
                    .ok());
    EXPECT_EQ(Loaded() - loaded, 1u);
    EXPECT_FALSE(cursor.complete);
    EXPECT_NE(cursor.low + cursor.high, before.low + before.high);
    records += answer.size();
  }
  ScanBudget budget;
  RecordBatch rest;
  ASSERT_TRUE(world_.operations().Scan(kTable, GetParam(), &cursor, &budget, UINT64_MAX, &rest).ok());
  EXPECT_EQ(records + rest.size(), kRecords);
}

TEST_P(ScanAheadTest, AShortScanReadsNoMoreThanItNeeds) {
  const uint64_t before = Loaded();
  EXPECT_EQ(Scan(1, nullptr), 1u);
  EXPECT_EQ(Loaded() - before, 1u);
  // The budget is a few leaves' worth of records: the scan loads hardly more pages than that, however often it has
  // missed.
  EXPECT_EQ(Scan(100, nullptr), 100u);
  const uint64_t loaded = Loaded() - before;
  EXPECT_LE(loaded, 100u * 80 / 512 + 4);
  EXPECT_EQ(Scan(100, nullptr), 100u);
  EXPECT_EQ(Loaded() - before, loaded) << "they are there";
}

TEST_P(ScanAheadTest, ItDoesNotReadBeyondItsRange) {
  ScanCursor cursor{KeyOf(1000), KeyOf(1060), false};
  ScanBudget budget;
  RecordBatch answer;
  RecordOperations::ScanReadAhead ahead{.misses = 10};
  const uint64_t before = Loaded();
  ASSERT_TRUE(world_.operations().Scan(kTable, GetParam(), &cursor, &budget, UINT64_MAX, &answer, &ahead).ok());
  EXPECT_EQ(answer.size(), 60u);
  const uint64_t loaded = Loaded() - before;
  // The same scan without loading ahead.
  ASSERT_TRUE(world_.TryRestart().ok());
  ScanCursor again{KeyOf(1000), KeyOf(1060), false};
  ScanBudget rest;
  RecordBatch other;
  const uint64_t then = Loaded();
  while (!again.complete) {
    ASSERT_TRUE(world_.operations().Scan(kTable, GetParam(), &again, &rest, /*max_pages=*/1, &other).ok());
  }
  EXPECT_EQ(other.bytes(), answer.bytes());
  EXPECT_EQ(loaded, Loaded() - then);
}

}  // namespace
}  // namespace deut::dc

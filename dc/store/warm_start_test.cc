// After a start the pages of before come back into memory, beside all other work.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/page_store/hot_page_list.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr TableId kOther{4};

RecordStoreOptions Options() {
  RecordStoreOptions options = SmallPages(/*memory_bytes=*/0);
  options.fetch_hot_pages = true;
  options.merge_interval = std::chrono::hours(1);  // the merger loads pages, too
  options.scrubber.bytes_per_second = 0;
  return options;
}

void WaitForFetch(RecordStore& store) {
  while (CounterOf(store, "hot_pages_fetching") != 0) RealRuntime().Yield();
}

class WarmStartTest : public ::testing::Test {
 protected:
  ~WarmStartTest() override { testing::SetPointHandler({}); }

  void Fill(World* world, uint64_t records) {
    ASSERT_TRUE(world->TryRestart().ok());
    world->Create();
    for (uint64_t i = 0; i < records; ++i) world->Put(KeyOf(i), std::string(50, 'a'));
    world->TryFlush();
    WaitForFetch(world->store());  // there is no list yet
    ASSERT_TRUE(world->Checkpoint().ok());
  }

  FaultyDisk disk_{RealRuntime(), 1};
};

TEST_F(WarmStartTest, AllPagesComeBackWithoutARequest) {
  World world(Options(), &disk_);
  Fill(&world, 3000);
  ASSERT_TRUE(world.TryRestart().ok());
  WaitForFetch(world.store());
  EXPECT_GT(world.Counter("hot_pages_listed"), 100u);
  EXPECT_EQ(world.Counter("hot_pages_fetched"), world.Counter("hot_pages_listed"));
  EXPECT_GT(world.Counter("hot_pages_bytes"), 3000u * 50);
  world.ExpectRight();
  EXPECT_EQ(world.Counter("pages_loaded"), 0u) << "no request has missed";
}

TEST_F(WarmStartTest, WithoutTheOptionNothingIsRecordedOrFetched) {
  RecordStoreOptions options = Options();
  options.fetch_hot_pages = false;
  World world(options, &disk_);
  Fill(&world, 500);
  EXPECT_EQ(ReadHotPages(world.storage(), "/pages").status(), ErrorCode::kNotFound);
  ASSERT_TRUE(world.TryRestart().ok());
  EXPECT_EQ(world.Counter("hot_pages_listed"), 0u);
  world.ExpectRight();
  EXPECT_GT(world.Counter("pages_loaded"), 0u);
}

// The list has those pages first that are worth keeping.
TEST_F(WarmStartTest, OnlyTheFirstPagesOfALongScanAreWorthKeeping) {
  constexpr uint64_t kRecords = 3000;
  RecordStoreOptions without_list = Options();
  without_list.fetch_hot_pages = false;
  {
    World world(without_list, &disk_);
    Fill(&world, kRecords);
  }
  const auto storage = disk_.Mount();
  const auto store = OpenLife(*storage, /*incarnation=*/77, Options());
  ASSERT_TRUE(store.ok()) << store.status().ToString();
  WaitForFetch(**store);  // there is no list yet
  ScanCursor cursor;
  ScanBudget budget;
  RecordBatch answer;
  RecordOperations& operations = (*store)->operations();
  ASSERT_TRUE(operations.Scan(kTable, Direction::kAscending, &cursor, &budget, UINT64_MAX, &answer).ok());
  ASSERT_EQ(answer.size(), kRecords);
  const Position position = (*store)->recovered();
  ASSERT_TRUE((*store)->Checkpoint([&] { return position; }).ok());
  const auto list = ReadHotPages(*storage, "/pages");
  ASSERT_TRUE(list.ok()) << list.status().ToString();
  EXPECT_EQ(list->used.size(), ScanCursor::kPagesOfShortScan);
  EXPECT_GT(list->others.size(), 5 * ScanCursor::kPagesOfShortScan);
}

// The redo, updates, drops and checkpoints change the pages while they are fetched.
TEST_F(WarmStartTest, RecordsAreRightWhilePagesAreFetchedAndChanged) {
  World world(Options(), &disk_);
  Fill(&world, 3000);
  Random random(3);
  for (uint32_t life = 0; life < 6; ++life) {
    world.Create(TableId(100 + life));
    for (uint64_t i = 0; i < 300; ++i) world.PutInto(TableId(100 + life), KeyOf(i), "dropped soon");
    Change(&world, &random, 3000, 500);
    if (life % 2 == 0) ASSERT_TRUE(world.Checkpoint().ok());
    Change(&world, &random, 3000, 300);  // only the log has these
    world.TryFlush();
    ASSERT_TRUE(world.TryRestart().ok());
    world.Drop(TableId(100 + life));
    Change(&world, &random, 3000, 500);
    world.ExpectRight();
    ASSERT_TRUE(world.Checkpoint().ok());
    WaitForFetch(world.store());
    world.ExpectRight();
    ASSERT_TRUE(world.Checkpoint().ok());
  }
}

TEST_F(WarmStartTest, ABudgetSmallerThanTheListIsKeptWithoutAnEviction) {
  constexpr uint64_t kBudget = 1 << 20;
  {
    World world(Options(), &disk_);
    Fill(&world, 30'000);
    EXPECT_GT(world.store().memory_bytes(), kBudget);
  }
  RecordStoreOptions options = Options();
  options.memory_bytes = kBudget;
  const auto storage = disk_.Mount();
  auto store = OpenLife(*storage, 77, options);
  ASSERT_TRUE(store.ok()) << store.status().ToString();
  WaitForFetch(**store);
  EXPECT_LE((*store)->memory_bytes(), kBudget / 8 * 7);
  EXPECT_GT(CounterOf(**store, "hot_pages_fetched"), 0u);
  EXPECT_EQ(CounterOf(**store, "pages_swapped_out"), 0u);
}

// The list belongs to no checkpoint: after a loss of power it may be older or newer than the one that is opened.
TEST_F(WarmStartTest, ALossOfPowerAnywhereInACheckpointAndItsList) {
  std::atomic<int> failures{0};
  RecordStoreOptions options = Options();
  options.on_failure = [&failures](const Status&) { ++failures; };
  World world(options, &disk_);
  Fill(&world, 300);
  Random random(5);
  uint64_t completed = 0;
  for (uint64_t operation = 1; operation <= 120; ++operation) {
    Change(&world, &random, 300, 60);
    WaitForFetch(world.store());
    const uint64_t crashes = disk_.crashes();
    disk_.CrashAfter(operation % 40 + 1);
    if (world.Checkpoint().ok()) ++completed;
    if (disk_.crashes() == crashes) disk_.Crash(operation);
    disk_.CrashAfter(0);
    ASSERT_TRUE(world.TryRestart().ok()) << operation;
    ASSERT_FALSE(world.broken());
    const Status list = ReadHotPages(world.storage(), "/pages").status();
    EXPECT_TRUE(list.ok() || list == ErrorCode::kNotFound) << list.ToString();
    world.ExpectRight();
  }
  EXPECT_GT(completed, 0u);
  EXPECT_LT(completed, 120u);
}

TEST_F(WarmStartTest, AListThatCannotBeWrittenFailsNoCheckpoint) {
  std::atomic<int> failures{0};
  RecordStoreOptions options = Options();
  options.on_failure = [&failures](const Status&) { ++failures; };
  World world(options, &disk_);
  Fill(&world, 500);
  const Result<HotPageList> before = ReadHotPages(world.storage(), "/pages");
  ASSERT_TRUE(before.ok()) << before.status().ToString();
  Random random(4);
  for (const auto action : {DiskFault::Action::kNoSpace, DiskFault::Action::kIoError}) {
    for (const uint32_t kinds : {kDiskName, kDiskAllocate, kDiskWrite, kDiskSync}) {
      Change(&world, &random, 500, 50);
      const int fault = disk_.AddFault({.action = action, .kinds = kinds, .path_contains = "hot_pages"});
      EXPECT_TRUE(world.Checkpoint().ok()) << kinds;
      EXPECT_GE(disk_.hits(fault), 1u) << kinds;
      disk_.RemoveFault(fault);
      const Result<HotPageList> after = ReadHotPages(world.storage(), "/pages");
      ASSERT_TRUE(after.ok()) << after.status().ToString();
      EXPECT_EQ(*after, *before) << kinds;
    }
  }
  EXPECT_EQ(failures.load(), 0);
  ASSERT_TRUE(world.TryRestart().ok());
  WaitForFetch(world.store());
  EXPECT_GT(world.Counter("hot_pages_fetched"), 10u);
  world.ExpectRight();
}

TEST_F(WarmStartTest, RecordsInMemoryAreReadAndUpdatedWhileTheDiskHangs) {
  World world(Options(), &disk_);
  ASSERT_TRUE(world.TryRestart().ok());
  world.Create();
  world.Create(kOther);
  world.Put("a", "before");  // its table has only a root, which a start loads
  for (uint64_t i = 0; i < 3000; ++i) world.PutInto(kOther, KeyOf(i), std::string(50, 'b'));
  world.TryFlush();
  WaitForFetch(world.store());
  ASSERT_TRUE(world.Checkpoint().ok());
  AtPoint("page_cache.hot.before_read", [&] { disk_.HoldOperations(kDiskRead, "base-"); });
  ASSERT_TRUE(world.TryRestart().ok());
  while (disk_.held_operations() == 0) RealRuntime().Yield();
  EXPECT_EQ(world.Counter("hot_pages_fetching"), 1u);
  EXPECT_EQ(world.Read("a"), "before");
  world.Put("a", "after");
  world.Flush();
  EXPECT_EQ(world.Read("a"), "after");
  disk_.HoldOperations(0);
  WaitForFetch(world.store());
  EXPECT_GT(world.Counter("hot_pages_fetched"), 100u);
}

}  // namespace
}  // namespace deut::dc

// Updates whose pages must be loaded first load them together, and respect the memory budget, however small they are.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/bwtree/bwtree.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kBudget = 600 << 10;
constexpr uint64_t kRecords = 4000;
constexpr uint64_t kRecordsPerPage = 40;  // fewer than this fit into a page

RecordStoreOptions Options() {
  RecordStoreOptions options = SmallPages(kBudget);
  options.tree.leaf_page_bytes = 4096;
  options.scrubber.bytes_per_second = 0;
  return options;
}

// Puts an update into each page, and applies the batch.
void UpdateEachPage(World& world, const std::string& value) {
  for (uint64_t page = 0; page < kRecords; page += kRecordsPerPage) world.Put(KeyOf(page), value);
  world.TryFlush();
}

// Makes a table whose pages are on storage, and have as many updates in memory as they accept without being loaded.
void FillWithUpdates(World& world) {
  ASSERT_TRUE(world.TryRestart().ok());
  world.Create();
  for (uint64_t i = 0; i < kRecords; ++i) {
    world.Put(KeyOf(i), std::string(100, 'a'));
    if (i % 100 == 0) world.TryFlush();
  }
  world.TryFlush();
  ASSERT_TRUE(world.Checkpoint().ok());
  ASSERT_TRUE(world.TryRestart().ok());
  // They come in several batches, because of one batch only the last update of a key is applied (S3).
  for (int i = 0; i < 16; ++i) UpdateEachPage(world, "b");
}

TEST(UpdateLoadTest, ThePagesThatUpdatesNeedAreReadTogether) {
  FaultyDisk disk(RealRuntime(), 1);
  RecordStoreOptions options = Options();
  options.memory_bytes = 0;
  options.merge_interval = std::chrono::hours(1);  // the thread that merges pages loads some of them
  World world(options, &disk);
  FillWithUpdates(world);
  ASSERT_EQ(world.Counter("pages_loaded"), 0u);
  disk.HoldOperations(kDiskRead);
  const auto log = RealRuntime().StartThread("log", [&] { UpdateEachPage(world, "c"); });
  const MonotonicTime limit = RealRuntime().Now() + std::chrono::seconds(30);
  while (disk.held_operations() < BwTree::kMaxLeavesPerCall && RealRuntime().Now() < limit) RealRuntime().Yield();
  EXPECT_GE(disk.held_operations(), BwTree::kMaxLeavesPerCall);
  disk.HoldOperations(0);
  log->Join();
  EXPECT_EQ(world.Counter("pages_loaded"), kRecords / kRecordsPerPage);
  EXPECT_FALSE(world.broken());
  world.ExpectRight();
}

TEST(UpdateLoadTest, TheBudgetIsKept) {
  FaultyDisk disk(RealRuntime(), 1);
  World world(Options(), &disk);
  FillWithUpdates(world);
  for (uint64_t i = kRecords; world.store().memory_bytes() < kBudget / 8 * 6; ++i) {
    world.Put(KeyOf(i), std::string(4000, 'c'));
    world.TryFlush();
  }
  // The thread that makes room is stopped.
  Event let_go;
  std::atomic<uint64_t> highest{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point == "bwtree.evict.before_cas") let_go.Wait(RealRuntime(), kNoDeadline);
    if (point == "bwtree.load.before_cas") {
      highest.store(std::max(highest.load(), world.store().memory_bytes()));
    }
  });
  std::atomic<bool> applied{false};
  const auto log = RealRuntime().StartThread("log", [&] {
    // A page that was written meanwhile, and so has few updates, is also loaded in the end.
    for (int i = 0; i < 17; ++i) UpdateEachPage(world, "d");
    applied.store(true);
  });
  while (!applied.load() && world.store().memory_bytes() <= kBudget) RealRuntime().Yield();
  for (int i = 0; i < 200; ++i) RealRuntime().Yield();  // time enough for the others to continue
  EXPECT_FALSE(applied.load());
  let_go.Signal(RealRuntime());
  log->Join();
  testing::SetPointHandler({});
  EXPECT_GT(world.Counter("pages_loaded"), 50u);
  EXPECT_LE(highest.load(), kBudget + (64 << 10));
  EXPECT_FALSE(world.broken());
  world.ExpectRight();
}

}  // namespace
}  // namespace deut::dc

// Updates whose pages must be loaded first respect the memory budget, however small the updates are.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
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

TEST(UpdateLoadTest, TheBudgetIsKept) {
  FaultyDisk disk(RealRuntime(), 1);
  World world(Options(), &disk);
  ASSERT_TRUE(world.TryRestart().ok());
  world.Create();
  for (uint64_t i = 0; i < kRecords; ++i) {
    world.Put(KeyOf(i), std::string(100, 'a'));
    if (i % 100 == 0) world.TryFlush();
  }
  world.TryFlush();
  ASSERT_TRUE(world.Checkpoint().ok());
  ASSERT_TRUE(world.TryRestart().ok());
  // Each page gets as many updates as it accepts without being loaded. They come in several batches, because of one
  // batch only the last update of a key is applied (S3).
  for (int i = 0; i < 16; ++i) {
    for (uint64_t page = 0; page < kRecords; page += kRecordsPerPage) world.Put(KeyOf(page), "b");
    world.TryFlush();
  }
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
    for (int i = 0; i < 17; ++i) {
      for (uint64_t page = 0; page < kRecords; page += kRecordsPerPage) world.Put(KeyOf(page), "d");
      world.TryFlush();
    }
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

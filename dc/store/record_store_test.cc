#include "dc/store/record_store.h"

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"

namespace deut::dc {
namespace {

TEST(RecordStoreTest, EveryCounterHasANameOfItsOwnAndTheRightFigure) {
  World world;
  world.Create();
  for (uint64_t i = 0; i < 1000; ++i) world.Put(KeyOf(i), "value");
  world.Flush();
  ASSERT_TRUE(world.Checkpoint().ok());
  std::vector<CounterValue> counters;
  world.store().AppendCounters(&counters);
  std::set<std::string> names;
  for (const CounterValue& counter : counters) EXPECT_TRUE(names.insert(counter.name).second) << counter.name;
  EXPECT_EQ(world.Counter("updates_applied"), 1001u);
  EXPECT_EQ(world.Counter("tables"), 1u);
  EXPECT_EQ(world.Counter("checkpoints"), 1u);
  EXPECT_EQ(world.Counter("parts_merged"), 0u) << "nothing has left memory";
  EXPECT_GT(world.Counter("splits"), 10u);
  EXPECT_GT(world.Counter("records"), 500u);
  EXPECT_GT(world.Counter("memory_bytes"), 1000u * 15);
  EXPECT_GE(world.Counter("storage_bytes"), world.Counter("storage_live_bytes"));
}

TEST(RecordStoreTest, BytesOfWholePagesAndOfChangesAreCounted) {
  World world;
  world.Create();
  for (uint64_t i = 0; i < 100; ++i) world.Put(KeyOf(i), std::string(50, 'a'));
  world.Flush();
  ASSERT_TRUE(world.Checkpoint().ok());
  const uint64_t pages = world.Counter("flushed_page_bytes");
  EXPECT_GT(pages, 5000u);
  EXPECT_EQ(world.Counter("flushed_delta_bytes"), 0u);
  world.Put(KeyOf(7), std::string(50, 'b'));
  world.Flush();
  ASSERT_TRUE(world.Checkpoint().ok());
  EXPECT_EQ(world.Counter("flushed_page_bytes"), pages);
  EXPECT_GT(world.Counter("flushed_delta_bytes"), 0u);
  EXPECT_LE(world.Counter("flushed_delta_bytes"), 256u);
}

// Rule X7: room for them must be left on the disk until a checkpoint has written them.
TEST(RecordStoreTest, UpdatesAreUnflushedUntilACheckpointHasWrittenThem) {
  World world;
  EXPECT_EQ(world.store().unflushed_bytes(0), 0u);
  world.Create();
  world.Put(KeyOf(1), "value");
  world.Flush();
  EXPECT_GT(world.store().unflushed_bytes(0), 0u);
  ASSERT_TRUE(world.Checkpoint().ok());
  EXPECT_EQ(world.store().unflushed_bytes(0), 0u);
}

// The disk's content cannot be trusted after a failed sync, so the process is to end; it is told once.
TEST(RecordStoreTest, AFailedDiskIsReportedOnce) {
  std::atomic<int> failures{0};
  RecordStoreOptions options = SmallPages(/*memory_bytes=*/0);
  options.on_failure = [&failures](const Status& status) {
    EXPECT_EQ(status, ErrorCode::kIoError) << status.ToString();
    ++failures;
  };
  FaultyDisk disk(RealRuntime(), /*seed=*/1);
  World world(options, &disk);
  ASSERT_TRUE(world.TryRestart().ok());
  world.Create();
  world.Put(KeyOf(1), "value");
  world.TryFlush();
  ASSERT_TRUE(world.Checkpoint().ok());
  EXPECT_EQ(failures.load(), 0);
  world.Put(KeyOf(1), "another");
  world.TryFlush();
  disk.AddFault({.kinds = kDiskSync});
  const Position stable = world.store().stable();
  EXPECT_EQ(world.Checkpoint(), ErrorCode::kIoError);
  EXPECT_EQ(failures.load(), 1);
  EXPECT_EQ(world.Checkpoint(), ErrorCode::kIoError);
  EXPECT_EQ(failures.load(), 1);
  EXPECT_EQ(world.store().stable(), stable);
  EXPECT_EQ(world.Read(KeyOf(1)), "another");
}

}  // namespace
}  // namespace deut::dc

// Records outlive the process, and may be more than memory holds: against a reference, with everything running at once.
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/record_ops/world_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

TEST(PersistenceTest, WhatACheckpointHoldsIsThereInTheNextLife) {
  World world;
  Random random(1);
  world.Create();
  Change(&world, &random, 2000, 6000);
  ASSERT_TRUE(world.Checkpoint().ok());
  const Position stable = world.operations().stable();
  EXPECT_GT(stable, Position());
  world.operations().stable();
  world.Restart();
  EXPECT_EQ(world.operations().recovered(), stable);
  EXPECT_EQ(world.Counter("updates_applied"), 0u);  // nothing had to be applied again
  // How many there are is estimated from some pages.
  EXPECT_NEAR(static_cast<double>(world.Counter("records")), static_cast<double>(world.records().size()),
              static_cast<double>(world.records().size()) / 4);
  world.ExpectRight();
}

TEST(PersistenceTest, RedoBringsTheRest) {
  World world;
  Random random(2);
  world.Create();
  for (int round = 0; round < 10; ++round) {
    Change(&world, &random, 1500, 1500);
    if (round % 3 != 2) ASSERT_TRUE(world.Checkpoint().ok());
    Change(&world, &random, 1500, 500);
    world.Restart();
    world.ExpectRight();
  }
}

TEST(PersistenceTest, MoreThanMemoryHolds) {
  constexpr uint64_t kBudget = 600 << 10;
  World world(kBudget);
  Random random(3);
  world.Create();
  for (int round = 0; round < 6; ++round) {
    Change(&world, &random, 20000, 10000);
    EXPECT_LT(world.operations().memory_bytes(), kBudget * 3 / 2);
    for (int i = 0; i < 500; ++i) {
      const std::string key = KeyOf(random.Below(20000));
      const auto record = world.records().find(key);
      const std::optional<std::string> found = world.Read(key);
      ASSERT_EQ(found, record == world.records().end() ? std::nullopt : std::optional(record->second)) << key;
    }
    if (round % 2 == 1) {
      ASSERT_TRUE(world.Checkpoint().ok());
      world.Restart();
    }
  }
  world.ExpectRight();
  EXPECT_GT(world.Counter("pages_swapped_out"), 100u);
  EXPECT_GT(world.Counter("pages_loaded"), 100u);
}

TEST(PersistenceTest, CheckpointsWhileEverythingGoesOn) {
  World world(400 << 10);
  Random random(4);
  world.Create();
  std::atomic<bool> stop{false};
  std::atomic<int> taken{0};
  const auto checkpoints = RealRuntime().StartThread("checkpoints", [&] {
    while (!stop.load()) {
      ASSERT_TRUE(world.Checkpoint().ok());
      taken.fetch_add(1);
    }
  });
  const auto reader = RealRuntime().StartThread("reader", [&] {
    Random own(5);
    while (!stop.load()) {
      RecordBatch batch;
      const Status status = world.operations().Read(kTable, KeyOf(own.Below(8000)), &batch);
      ASSERT_TRUE(status.ok() || status == ErrorCode::kNotFound) << status.ToString();
      ASSERT_LE(batch.size(), 1u);
    }
  });
  for (int round = 0; round < 5 || taken.load() < 5; ++round) Change(&world, &random, 8000, 4000);
  stop.store(true);
  checkpoints->Join();
  reader->Join();
  world.ExpectRight();
  world.Restart();
  world.ExpectRight();
}

TEST(PersistenceTest, X6ThePositionIsReadBeforeAnythingIsWritten) {
  World world;
  Random random(7);
  world.Create();
  Change(&world, &random, 1000, 2000);
  AtPoint("checkpoint.after_pass", [&] { Change(&world, &random, 1000, 200); });
  ASSERT_TRUE(world.Checkpoint().ok());
  testing::SetPointHandler({});
  world.Restart();
  world.ExpectRight();
}

TEST(PersistenceTest, NothingIsSplitWhileTheStructureIsTakenDown) {
  World world(600 << 10);
  Random random(8);
  world.Create();
  Change(&world, &random, 3000, 6000);
  // So much that pages are written and swapped out meanwhile.
  AtPoint("checkpoint.before_snapshot", [&] {
    for (int i = 0; i < 6; ++i) Change(&world, &random, 40000, 1500);
  });
  ASSERT_TRUE(world.Checkpoint().ok());
  testing::SetPointHandler({});
  world.Restart();
  world.ExpectRight();
}

TEST(PersistenceTest, AThreadThatStopsPutsACheckpointOff) {
  World world;
  Random random(9);
  world.Create();
  Change(&world, &random, 500, 500);
  Event stopped;
  Event go_on;
  AtPoint("bwtree.update.before_cas", [&] {
    stopped.Signal(RealRuntime());
    go_on.Wait(RealRuntime(), kNoDeadline);
  });
  const auto updates = RealRuntime().StartThread("updates", [&] { Change(&world, &random, 500, 500); });
  stopped.Wait(RealRuntime(), kNoDeadline);
  EXPECT_EQ(world.Checkpoint(), ErrorCode::kResourceExhausted);
  go_on.Signal(RealRuntime());
  updates->Join();
  testing::SetPointHandler({});
  EXPECT_TRUE(world.Checkpoint().ok());
  world.Restart();
  world.ExpectRight();
}

TEST(PersistenceTest, ADroppedTableGivesItsSpaceBack) {
  World world;
  Random random(6);
  world.Create();
  Change(&world, &random, 3000, 9000);
  ASSERT_TRUE(world.Checkpoint().ok());
  const uint64_t full = world.Counter("storage_bytes");
  const uint64_t pages = world.Counter("pages");
  world.Drop(kTable);
  world.Flush();
  world.Create(TableId(4));
  world.Flush();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(world.Checkpoint().ok());
  EXPECT_LT(world.Counter("storage_bytes"), full / 4);
  EXPECT_LT(world.Counter("pages"), pages / 10);
  world.Restart();
  EXPECT_EQ(world.Counter("tables"), 1u);
}

// Nobody is told that there is no such table, or no such record, because a file is gone.
TEST(PersistenceTest, ASegmentThatIsGoneIsCorruption) {
  RecordOperationsOptions options = SmallPages(0);
  options.store.max_open_files = 1;
  World world(options);
  Random random(10);
  world.Create();
  Change(&world, &random, 2000, 6000);
  ASSERT_TRUE(world.Checkpoint().ok());
  world.Restart();
  const std::vector<std::string> names = *world.storage().List("/pages");
  for (const std::string& name : names) {
    if (name.ends_with(".seg")) ASSERT_TRUE(world.storage().Remove("/pages/" + name).ok());
  }
  int corrupt = 0;
  for (const auto& [key, value] : world.records()) {
    RecordBatch answer;
    const Status status = world.operations().Read(kTable, key, &answer);
    if (status == ErrorCode::kCorruption) ++corrupt;
    // Of the file that is still open.
    if (status.ok()) ASSERT_EQ(RecordBatch::Iterator(answer).record().value, value);
    ASSERT_TRUE(status.ok() || status == ErrorCode::kCorruption) << status.ToString();
  }
  EXPECT_GT(corrupt, 0);
}

}  // namespace
}  // namespace deut::dc

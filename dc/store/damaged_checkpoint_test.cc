// A file that only later checkpoints need is damaged. The scrubber finds it while the other lineage can still be opened,
// and the next two checkpoints do without any older file.
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

RecordStoreOptions Options() {
  RecordStoreOptions options = SmallPages(/*memory_bytes=*/0);
  options.scrubber.bytes_per_second = 0;
  options.cleaner.interval = Duration();  // it would change more pages
  options.lineages.min_range_bytes = 1;
  return options;
}

std::vector<CheckpointNumber> CheckpointsOf(World& world) { return *FindCheckpoints(world.storage(), "/pages"); }

TEST(DamagedCheckpointTest, TheScrubberFindsItAndTheNextTwoCheckpointsReplaceIt) {
  FaultyDisk disk(RealRuntime(), 1);
  World world(Options(), &disk);
  ASSERT_TRUE(world.TryRestart().ok());
  world.Create();
  for (uint64_t i = 0; i < 3000; ++i) world.Put(KeyOf(i), "value");
  for (uint64_t round = 0; round < 6; ++round) {
    world.Put(KeyOf(round * 400), Concat("value of round ", round));
    world.TryFlush();
    ASSERT_TRUE(world.Checkpoint().ok());
  }
  const std::vector<CheckpointNumber> before = CheckpointsOf(world);
  ASSERT_GT(before.size(), 2u) << "the two newest ones have ancestors";
  ASSERT_TRUE(world.store().Scrub().ok());
  EXPECT_EQ(world.Counter("scrub_errors"), 0u);
  const std::string damaged = "/pages/" + CheckpointName(before.back());
  ASSERT_TRUE(disk.FlipBit(damaged, 100, 1).ok());
  ASSERT_TRUE(world.store().Scrub().ok());
  EXPECT_EQ(world.Counter("scrub_errors"), 1u);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.Checkpoint().ok());
  EXPECT_EQ(CheckpointsOf(world), (std::vector<CheckpointNumber>{CheckpointNumber(before.front().value + 2),
                                                                 CheckpointNumber(before.front().value + 1)}));
  ASSERT_TRUE(world.store().Scrub().ok());
  EXPECT_EQ(world.Counter("scrub_errors"), 1u);
  ASSERT_TRUE(world.TryRestart().ok());
  world.ExpectRight();
}

}  // namespace
}  // namespace deut::dc

// The cleaner frees space and changes nothing else.
#include "dc/cleaner/segment_cleaner.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kSegmentBytes = 64 << 10;
constexpr uint64_t kSlackSegments = 4;
// Segments that the page evictor, the checkpointer and the cleaner append to.
constexpr uint64_t kOpenSegments = 6;

// Options by which cleaning runs only on request.
RecordStoreOptions Options(uint64_t memory_bytes = 0) {
  RecordStoreOptions options = SmallPages(memory_bytes);
  options.cleaner.interval = Duration();
  options.cleaner.bytes_per_second = 0;
  options.cleaner.slack_segments = kSlackSegments;
  // The image of a page that was merged away counts as live until no thread can see the page. Then the live bytes
  // could not be checked exactly. dc/store/persistence_test.cc tests both together.
  options.merge_interval = std::chrono::hours(24);
  return options;
}

uint64_t Bound(World& world, uint64_t longest_segment = kSegmentBytes) {
  return world.Counter("storage_live_bytes") * 3 / 2 + (kSlackSegments + kOpenSegments) * longest_segment;
}

void PrintFigures(World& world, std::string_view name) {
  const auto counter = [&](std::string_view of) { return static_cast<unsigned long>(world.Counter(of)); };
  std::printf("%s: storage %lu, live %lu, cleaned %lu, read %lu, written %lu, freed %lu, lost %lu\n", name.data(),
              counter("storage_bytes"), counter("storage_live_bytes"), counter("segments_cleaned"),
              counter("cleaned_bytes_read"), counter("cleaned_bytes_written"), counter("cleaned_bytes_freed"),
              counter("cleaned_copies_lost"));
}

// Checks that the live bytes are those that the images name: the next incarnation counts them again.
void ExpectLiveBytesRight(World& world) {
  // Pages are still evicted in the background. Two checkpoints between which nothing was written have the same
  // images.
  uint64_t live;
  uint64_t written;
  do {
    ASSERT_TRUE(world.Checkpoint().ok());
    live = world.Counter("storage_live_bytes");
    written = world.Counter("storage_written_bytes");
    ASSERT_TRUE(world.Checkpoint().ok());
  } while (world.Counter("storage_written_bytes") != written || world.Counter("storage_live_bytes") != live);
  world.Restart();
  EXPECT_EQ(world.Counter("storage_live_bytes"), live);
  world.ExpectRight();
}

class SegmentCleanerTest : public ::testing::Test {
 protected:
  ~SegmentCleanerTest() override {
    testing::SetPointHandler({});
    testing::SetCasHandler({});
  }
};

void OverwriteAndDelete(const RecordStoreOptions& options, uint64_t longest_segment, uint64_t min_cleaned) {
  World world(options);
  Random random(1);
  world.Create();
  constexpr uint64_t kKeys = 10000;
  for (uint64_t i = 0; i < kKeys; ++i) world.Put(KeyOf(i), std::string(150, 'a'));
  world.Flush();
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 1500; ++i) world.Put(KeyOf(random.Below(kKeys)), Concat(random.Next(), std::string(130, 'b')));
    world.LowWater();
    world.Flush();
    ASSERT_TRUE(world.Checkpoint().ok());
    ASSERT_TRUE(world.store().Clean().ok());
  }
  PrintFigures(world, "overwritten");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.Checkpoint().ok());
  EXPECT_LE(world.Counter("storage_bytes"), Bound(world, longest_segment));
  EXPECT_GE(world.Counter("segments_cleaned"), min_cleaned);
  EXPECT_LE(world.Counter("cleaned_bytes_written"), 2 * world.Counter("cleaned_bytes_freed"));
  world.ExpectRight();

  for (uint64_t i = 0; i < kKeys; ++i) {
    if (i % 10 != 0) world.Delete(KeyOf(i));
  }
  world.LowWater();
  world.Flush();
  const uint64_t full = world.Counter("storage_live_bytes");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.Checkpoint().ok());
  world.ExpectRight();
  ASSERT_TRUE(world.store().Clean().ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.Checkpoint().ok());
  PrintFigures(world, "deleted");
  EXPECT_LE(world.Counter("storage_bytes"), Bound(world, longest_segment));
  EXPECT_LE(world.Counter("storage_live_bytes"), full);
  ExpectLiveBytesRight(world);
}

TEST_F(SegmentCleanerTest, SpaceComesBackAfterOverwritingAndDeleting) {
  OverwriteAndDelete(Options(), kSegmentBytes, /*min_cleaned=*/10);
}

TEST_F(SegmentCleanerTest, SpaceComesBackFromSegmentsOfManyLengths) {
  RecordStoreOptions options = Options();
  options.store.segments_before_growth = 16;
  options.store.max_segment_bytes = 4 * kSegmentBytes;
  OverwriteAndDelete(options, options.store.max_segment_bytes, /*min_cleaned=*/2);
}

TEST_F(SegmentCleanerTest, WithNothingToCleanNothingIsWritten) {
  World world(Options());
  Random random(2);
  world.Create();
  Change(&world, &random, 3000, 6000);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(world.Checkpoint().ok());
    ASSERT_TRUE(world.store().Clean().ok());
  }
  while (world.store().CheckpointFreesSpace()) ASSERT_TRUE(world.Checkpoint().ok());
  const uint64_t written = world.Counter("storage_written_bytes");
  const uint64_t read = world.Counter("cleaned_bytes_read");
  ASSERT_TRUE(world.store().Clean().ok());
  EXPECT_FALSE(world.store().CheckpointFreesSpace());
  EXPECT_EQ(world.Counter("storage_written_bytes"), written);
  EXPECT_EQ(world.Counter("cleaned_bytes_read"), read);
}

// If blocks and headers are large beside a segment, a copy may fill its segment as sparsely as the original did.
TEST_F(SegmentCleanerTest, CopiedSegmentsAreNotCopiedRepeatedly) {
  RecordStoreOptions options = Options();
  options.store.segment_bytes = 12 << 10;
  options.cleaner.slack_segments = 0;
  World world(options);
  Random random(9);
  world.Create();
  for (int round = 0; round < 10; ++round) {
    Change(&world, &random, 300, 100);
    ASSERT_TRUE(world.Checkpoint().ok());
    const uint64_t segments = world.Counter("storage_segments");
    const uint64_t cleaned = world.Counter("segments_cleaned");
    ASSERT_TRUE(world.store().Clean().ok());
    EXPECT_LE(world.Counter("segments_cleaned") - cleaned, segments);
  }
  EXPECT_GT(world.Counter("segments_cleaned"), 0u);
  world.ExpectRight();
}

// Cleans in the background, with checkpoints only when they free space.
TEST_F(SegmentCleanerTest, AThreadOfItsOwn) {
  RecordStoreOptions options = Options();
  options.cleaner.interval = std::chrono::milliseconds(1);
  options.cleaner.bytes_per_second = 64 << 20;
  World world(options);
  Random random(3);
  world.Create();
  for (int round = 0; round < 8; ++round) {
    Change(&world, &random, 5000, 4000);
    ASSERT_TRUE(world.Checkpoint().ok());
  }
  while (world.Counter("segments_cleaned") < 5 || world.Counter("storage_bytes") > Bound(world)) {
    if (world.store().CheckpointFreesSpace()) {
      ASSERT_TRUE(world.Checkpoint().ok());
    } else {
      RealRuntime().Yield();
    }
  }
  PrintFigures(world, "in the background");
  world.ExpectRight();
  world.Restart();
  world.ExpectRight();
}

TEST_F(SegmentCleanerTest, WhileEverythingGoesOn) {
  World world(Options(400 << 10));
  Random random(4);
  world.Create();
  CheckpointsAndReads background(&world, 8000);
  std::atomic<bool> stop{false};
  const auto cleaner = RealRuntime().StartThread("cleaner", [&] {
    while (!stop.load()) ASSERT_TRUE(world.store().Clean().ok());
  });
  for (int round = 0; round < 5 || background.taken() < 5 || world.Counter("segments_cleaned") < 10; ++round) {
    Change(&world, &random, 8000, 4000);
    // Another table, whose pages are freed and whose ids are reused.
    const TableId other(10 + static_cast<uint32_t>(round));
    world.Create(other);
    for (uint64_t i = 0; i < 1000; ++i) world.PutInto(other, KeyOf(i), std::string(50, 'o'));
    world.Flush();
    if (round % 2 == 1) Change(&world, &random, 8000, 1000);
    world.Drop(other);
  }
  stop.store(true);
  cleaner->Join();
  background.Stop();
  PrintFigures(world, "while everything goes on");
  world.ExpectRight();
  ExpectLiveBytesRight(world);
}

// Makes segments that are worth cleaning, and none that is wholly dead.
void MakeGarbage(World* world, Random* random) {
  world->Create();
  for (int round = 0; round < 6; ++round) {
    Change(world, random, 4000, 3000);
    ASSERT_TRUE(world->Checkpoint().ok());
  }
  while (world->store().CheckpointFreesSpace()) ASSERT_TRUE(world->Checkpoint().ok());
}

// A checkpoint is taken between writing the copies and installing them. The replaced parts become dead only after the
// installation. Otherwise this checkpoint would name parts in segments that it need not keep.
TEST_F(SegmentCleanerTest, CleanACheckpointKeepsWhatItNames) {
  World world(Options());
  Random random(6);
  MakeGarbage(&world, &random);
  int checkpoints = 0;
  testing::SetPointHandler([&](std::string_view at) {
    if (at != "bwtree.rewrite.written" || checkpoints++ >= 20) return;
    ASSERT_TRUE(world.Checkpoint().ok());
  });
  ASSERT_TRUE(world.store().Clean().ok());
  testing::SetPointHandler({});
  EXPECT_GT(checkpoints, 5);
  world.Restart();
  world.ExpectRight();
  ASSERT_TRUE(world.Checkpoint().ok());
  world.Restart();
  world.ExpectRight();
}

// An update is written, and covered by a checkpoint, between reading an image and installing its copy.
TEST_F(SegmentCleanerTest, CleanACopyNeverBringsBackWhatWasBefore) {
  World world(Options());
  Random random(7);
  MakeGarbage(&world, &random);
  int rounds = 0;
  testing::SetPointHandler([&](std::string_view at) {
    if (at != "bwtree.rewrite.written" || rounds++ >= 10) return;
    Change(&world, &random, 4000, 1000);
    ASSERT_TRUE(world.Checkpoint().ok());
  });
  ASSERT_TRUE(world.store().Clean().ok());
  testing::SetPointHandler({});
  EXPECT_GT(world.Counter("cleaned_copies_lost"), 0u);
  ASSERT_TRUE(world.Checkpoint().ok());
  world.Restart();
  world.ExpectRight();
}

TEST_F(SegmentCleanerTest, LostCompareAndSwaps) {
  World world(Options());
  Random random(8);
  MakeGarbage(&world, &random);
  uint64_t passes = 0;
  testing::SetCasHandler(
      [&](std::string_view name) { return name == "mapping_table.replace_image.cas" && ++passes % 3 == 0; });
  ASSERT_TRUE(world.store().Clean().ok());
  testing::SetCasHandler({});
  EXPECT_GE(passes, 15u);
  EXPECT_GE(world.Counter("cleaned_copies_lost"), passes / 3);
  EXPECT_GE(world.Counter("segments_cleaned"), 1u);
  ExpectLiveBytesRight(world);
}

}  // namespace
}  // namespace deut::dc

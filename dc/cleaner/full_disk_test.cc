// A full disk: deletes free space all the same, and checkpoints continue.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kDiskBytes = 6 << 20;

// `growing`: segments become longer as the store grows, up to eight times the length.
RecordStoreOptions Options(uint64_t reserve_segments, bool growing = false) {
  RecordStoreOptions options = SmallPages(0);
  if (growing) {
    options.store.segments_before_growth = 16;
    options.cleaner.slack_segments = 1;
  }
  options.cleaner.interval = Duration();
  options.cleaner.bytes_per_second = 0;
  options.store.reserve_bytes = reserve_segments * options.store.segment_bytes;
  return options;
}

// Puts records, with checkpoints, until one finds no room. Returns the number of records.
uint64_t Fill(World* world) {
  for (uint64_t number = 0;;) {
    for (int i = 0; i < 200; ++i, ++number) world->Put(KeyOf(number * 7919 % 100003), std::string(150, 'f'));
    world->LowWater();
    world->TryFlush();
    EXPECT_FALSE(world->broken());
    const Status status = world->Checkpoint();
    if (!status.ok()) {
      EXPECT_EQ(status, ErrorCode::kResourceExhausted) << status.ToString();
      return number;
    }
    (void)world->store().Clean();  // may fail for lack of room, too
  }
}

// Does the work of the background threads until a checkpoint has room. Returns the number of tries; 0: it never had.
int TriesToCheckpoint(World* world) {
  for (int tries = 1; tries <= 200; ++tries) {
    const Status cleaned = world->store().Clean();
    EXPECT_TRUE(cleaned.ok() || cleaned == ErrorCode::kResourceExhausted) << cleaned.ToString();
    if (world->Checkpoint().ok()) return tries;
  }
  return 0;
}

class FullDiskTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Growing, FullDiskTest, ::testing::Bool());

TEST_P(FullDiskTest, DeletesGiveSpaceBack) {
  FaultyDisk disk(RealRuntime(), 1);
  disk.SetFreeBytes(kDiskBytes);
  World world(Options(16, GetParam()), &disk);
  ASSERT_TRUE(world.TryRestart().ok());
  world.Create();
  const uint64_t records = Fill(&world);
  const uint64_t full = world.Counter("storage_bytes");
  std::printf("%lu records, %lu bytes of storage, %lu live, %lu free\n", records, full,
              world.Counter("storage_live_bytes"), *disk.Mount()->FreeBytes(""));
  ASSERT_GT(full, kDiskBytes / 2);
  world.ExpectRight();
  // As many records are deleted between two checkpoints as were put between two.
  int most = 0;
  for (uint64_t i = 0; i < records;) {
    for (const uint64_t end = std::min(records, i + 200); i < end; ++i) {
      if (i % 10 != 0) world.Delete(KeyOf(i * 7919 % 100003));
    }
    world.LowWater();
    world.TryFlush();
    ASSERT_FALSE(world.broken());
    const int tries = TriesToCheckpoint(&world);
    ASSERT_GT(tries, 0) << i << " of " << records;
    most = std::max(most, tries);
  }
  std::printf("a checkpoint had room after %d tries at most\n", most);
  // Ten segments: the slack, and the segments that are being written. Merging runs beside it and writes, too.
  const uint64_t ten_segments = (GetParam() ? 10 * 128 : 10 * 64) << 10;
  const auto near_live = [&] {
    return world.Counter("storage_bytes") < world.Counter("storage_live_bytes") * 3 / 2 + ten_segments;
  };
  const auto gave_back = [&] { return world.Counter("storage_bytes") < full * 2 / 3; };
  const MonotonicTime end = RealRuntime().Now() + seconds(30);
  for (int i = 0; i < 4 || (RealRuntime().Now() < end && !(near_live() && gave_back())); ++i) {
    ASSERT_TRUE(world.store().Clean().ok());
    ASSERT_TRUE(world.Checkpoint().ok());
  }
  EXPECT_TRUE(near_live()) << world.Counter("storage_bytes") << " of " << world.Counter("storage_live_bytes");
  EXPECT_TRUE(gave_back()) << world.Counter("storage_bytes") << " of " << full;
  world.ExpectRight();
  ASSERT_TRUE(world.TryRestart().ok());
  world.ExpectRight();
}

// Records are overwritten on a disk that just holds them: new parts have room only where others have died.
TEST_P(FullDiskTest, UpdatesGoOnWhereThereIsHardlyAnyRoom) {
  FaultyDisk disk(RealRuntime(), 2);
  const RecordStoreOptions options = Options(8, GetParam());
  World world(options, &disk);
  Random random(2);
  ASSERT_TRUE(world.TryRestart().ok());
  world.Create();
  for (uint64_t i = 0; i < 10000; ++i) world.Put(KeyOf(i), std::string(150, 'a'));
  world.TryFlush();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.Checkpoint().ok());
  // The reserve takes half of it. The rest is for delta parts, which may have half of the bytes of their pages.
  disk.SetFreeBytes(6 << 18);
  uint64_t splits_before = world.Counter("splits");
  int most = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 1500; ++i) world.Put(KeyOf(random.Below(10000)), Concat(round, std::string(130, 'b')));
    world.LowWater();
    world.TryFlush();
    // Nothing asks here whether there is room (X7), so the updates must keep to what the reserve is made for: the
    // splits between two checkpoints need at most half of it.
    const uint64_t all_splits = world.Counter("splits");
    const uint64_t splits = all_splits - std::exchange(splits_before, all_splits);
    ASSERT_LE(splits * (options.tree.leaf_page_bytes + options.tree.inner_page_bytes), options.store.reserve_bytes / 2)
        << splits << " splits in round " << round << " are another test";
    const int tries = TriesToCheckpoint(&world);
    ASSERT_GT(tries, 0) << "round " << round;
    most = std::max(most, tries);
  }
  std::printf("tries at most %d, storage %lu, live %lu\n", most, world.Counter("storage_bytes"),
              world.Counter("storage_live_bytes"));
  world.ExpectRight();
  ASSERT_TRUE(world.TryRestart().ok());
  world.ExpectRight();
}

// A small segment is a header, a few live pages, and the rest of a block; a copy of it would be just as large.
TEST(FullDiskOfShortSegmentsTest, ASegmentWhoseCopyWouldBeNoSmallerIsNotCopied) {
  FaultyDisk disk(RealRuntime(), 3);
  RecordStoreOptions options = Options(8);
  options.merge_interval = std::chrono::hours(24);  // no merge writes pages
  World world(options, &disk);
  ASSERT_TRUE(world.TryRestart().ok());
  world.Create();
  for (uint64_t i = 0; i < 60; ++i) world.Put(KeyOf(i), std::string(150, 'a'));
  world.TryFlush();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.Checkpoint().ok());
  // Short of space: less than the reserve, a checkpoint's file and four segments.
  disk.SetFreeBytes(12 * (uint64_t{64} << 10));
  uint64_t copied = 0;
  for (int life = 0; life < 4; ++life) {
    ASSERT_TRUE(world.TryRestart().ok());  // so that nothing is appended to the existing segments
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(world.store().Clean().ok());
      ASSERT_TRUE(world.Checkpoint().ok());
    }
    copied = world.Counter("cleaned_bytes_written");
    if (life == 0) EXPECT_GT(copied, 0u);  // two segments become one
  }
  EXPECT_EQ(copied, 0u);
  world.ExpectRight();
}

}  // namespace
}  // namespace deut::dc

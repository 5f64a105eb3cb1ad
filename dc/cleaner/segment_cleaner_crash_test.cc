// A data component that cleans loses power at every changing operation of its disk, or runs out of space there.
// Everything that it had promised is there afterwards. DEUT_POWER_STEP: tests every N-th operation (1: all).
// DEUT_SEED: seed of the runs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/concat.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr uint64_t kKeys = 500;
constexpr uint64_t kEnough = uint64_t{1} << 40;  // enough free bytes

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}
uint64_t Seed() { return FromEnvironment("DEUT_SEED", 1); }
uint64_t Step() { return FromEnvironment("DEUT_POWER_STEP", 3); }

// `growing`: segments become longer as the store grows.
RecordStoreOptions Options(bool growing) {
  RecordStoreOptions options = SmallPages(0);
  options.store.segment_bytes = 16 << 10;
  options.store.append_buffer_bytes = 16 << 10;
  options.cleaner.interval = Duration();
  options.cleaner.bytes_per_second = 0;
  options.cleaner.slack_segments = 1;
  options.store.reserve_bytes = 8 * options.store.segment_bytes;
  if (growing) options.store.segments_before_growth = 4;
  options.on_failure = [](const Status&) {};  // the process would end; here the incarnation continues with errors
  return options;
}

struct WorkResult {
  uint64_t cleaned = 0;
  uint64_t refused = 0;  // checkpoints and cleanings without space
};

// All operations are requested in one fixed order, whatever their results.
WorkResult Work(World* world, Random* random, int rounds) {
  WorkResult result;
  for (int round = 0; round < rounds && !world->broken(); ++round) {
    for (int i = 0; i < 150; ++i) {
      const std::string key = KeyOf(random->Below(kKeys));
      if (random->OneIn(5)) {
        world->Delete(key);
      } else {
        world->Put(key, Concat("value ", random->Next(), std::string(random->Below(80), 'v')));
      }
    }
    world->LowWater();
    world->TryFlush();
    if (world->broken()) break;
    for (const Status& status : {world->Checkpoint(), world->store().Clean()}) {
      if (status == ErrorCode::kResourceExhausted) ++result.refused;
    }
    result.cleaned = world->Counter("segments_cleaned");
  }
  return result;
}

void Begin(World* world) {
  ASSERT_TRUE(world->TryRestart().ok());
  world->Create();
  world->TryFlush();
}

// Continues to work, and ends without a loss of power.
void ExpectRightAfterwards(World* world, Random* random) {
  world->ExpectRight();
  Work(world, random, 4);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(world->Checkpoint().ok());
  world->ExpectRight();
  const Status status = world->TryRestart();
  ASSERT_TRUE(status.ok()) << status.ToString();
  world->ExpectRight();
}

// `free_bytes`: free bytes of the disk from the first record on.
void LosePowerAtEveryOperation(uint64_t free_bytes) {
  constexpr int kRounds = 12;
  uint64_t operations[2] = {};  // with short segments only, and with growing ones
  for (const bool growing : {false, true}) {
    FaultyDisk disk(RealRuntime(), Seed());
    World world(Options(growing), &disk);
    Random random(Seed());
    Begin(&world);
    disk.SetFreeBytes(free_bytes);
    const WorkResult result = Work(&world, &random, kRounds);
    ASSERT_GE(result.cleaned, growing ? 1u : 10u);
    ASSERT_EQ(result.refused > (growing ? 0 : 3), free_bytes < kEnough);
    operations[growing] = disk.counts().changing;
    std::printf("operations %lu, segments cleaned %lu, refused %lu, checkpoints %lu, storage %lu, live %lu\n",
                operations[growing], result.cleaned, result.refused, world.Counter("checkpoints"),
                world.Counter("storage_bytes"), world.Counter("storage_live_bytes"));
  }
  uint64_t tried = 0;
  uint64_t crashes = 0;
  uint64_t in_recovery = 0;
  uint64_t cleaned = 0;
  bool growing = false;
  for (uint64_t at = operations[0] / 4 + Seed() % Step(); at <= operations[0]; at += Step(), growing = !growing) {
    if (at > operations[growing]) continue;
    ++tried;
    SCOPED_TRACE(Concat("seed ", Seed(), growing ? ", growing segments" : "", ", power is lost at operation ", at));
    FaultyDisk disk(RealRuntime(), Seed());
    World world(Options(growing), &disk);
    Random random(Seed());
    Begin(&world);
    disk.SetFreeBytes(free_bytes);
    disk.CrashAfter(at - std::min(at - 1, disk.counts().changing));
    cleaned += Work(&world, &random, kRounds).cleaned;
    crashes += disk.crashes();
    disk.CrashAfter(0);
    if (disk.crashes() == 0) disk.Crash(at);
    // Power is lost again soon after the start.
    Random second(at);
    disk.CrashAfter(1 + second.Below(30));
    if (world.TryRestart().ok()) Work(&world, &random, 2);
    in_recovery += disk.crashes() > 1 ? 1 : 0;
    disk.CrashAfter(0);
    const Status status = world.TryRestart();
    ASSERT_TRUE(status.ok()) << status.ToString();
    disk.SetFreeBytes(kEnough);
    ExpectRightAfterwards(&world, &random);
    if (::testing::Test::HasFailure()) return;
  }
  std::printf("crashes %lu, again in the next life %lu, segments cleaned before %lu\n", crashes, in_recovery, cleaned);
  EXPECT_GT(crashes, tried * 2 / 3);
}

TEST(SegmentCleanerCrashTest, AtEveryOperation) { LosePowerAtEveryOperation(kEnough); }

// Includes checkpoints that are taken only to remove dead segments, and cleaning with the rest of the reserve.
TEST(SegmentCleanerCrashTest, AtEveryOperationOnAFullDisk) { LosePowerAtEveryOperation(540 << 10); }

TEST(SegmentCleanerCrashTest, WithoutSpaceAtEveryOperation) {
  uint64_t refused = 0;
  for (uint64_t at = 0; at < 400; at += 3 * Step()) {
    const bool growing = at % 2 == 1;
    SCOPED_TRACE(Concat("seed ", Seed(), growing ? ", growing segments" : "", ", no space after ", at, " writes"));
    FaultyDisk disk(RealRuntime(), Seed());
    World world(Options(growing), &disk);
    Random random(Seed());
    Begin(&world);
    disk.AddFault({.action = DiskFault::Action::kNoSpace,
                   .kinds = kDiskWrite | kDiskName,
                   .path_contains = ".seg",
                   .skip = at,
                   .count = 1 + at % 4});
    refused += Work(&world, &random, 12).refused;
    disk.RemoveAllFaults();
    ASSERT_FALSE(world.broken());
    ExpectRightAfterwards(&world, &random);
    if (HasFailure()) return;
  }
  std::printf("refused for want of space %lu\n", refused);
  EXPECT_GT(refused, 60 / Step());
}

}  // namespace
}  // namespace deut::dc

// The power is lost at every changing operation of the disk while a large table is dropped: before the drop is in a
// checkpoint, and behind each of the steps in which the table's pages are freed. The next incarnation frees the rest.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/store/world_fixture.h"
#include "dc/tables/table_reaper.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

constexpr TableId kLarge{4};
constexpr TableId kSameName{9};
constexpr uint64_t kLargeRecords = 2600;

RecordStoreOptions Options() {
  RecordStoreOptions options = SmallPages(/*memory_bytes=*/0);
  options.merge_interval = std::chrono::hours(1);
  options.cleaner.interval = Duration();  // no thread but the test's changes the disk
  options.scrubber.bytes_per_second = 0;
  options.on_failure = [](const Status&) {};  // the process would end; here the incarnation continues with errors
  return options;
}

// Stops the reaper before each step, until the test lets it take one.
class HeldReaper {
 public:
  HeldReaper() {
    testing::SetPointHandler([this](std::string_view point) {
      if (point != "table_reaper.step") return;
      const int number = arrived_.fetch_add(1);
      while (!released_.load() && allowed_.load() <= number) RealRuntime().Yield();
    });
  }
  // REQUIRES: no reaper is at work any more.
  ~HeldReaper() { testing::SetPointHandler(nullptr); }
  HeldReaper(const HeldReaper&) = delete;
  HeldReaper& operator=(const HeldReaper&) = delete;

  void AllowStep() { allowed_.fetch_add(1); }
  // From now on the reaper takes its steps by itself.
  void Release() { released_.store(true); }
  // Number of steps before which it has stopped.
  int arrived() const { return arrived_.load(); }

 private:
  std::atomic<int> arrived_{0};
  std::atomic<int> allowed_{0};
  std::atomic<bool> released_{false};
};

class DropWorld {
 public:
  explicit DropWorld(uint64_t seed) : disk(RealRuntime(), seed), world(Options(), &disk) {}
  ~DropWorld() { reaper.Release(); }

  void Fill() {
    ASSERT_TRUE(world.TryRestart().ok());
    world.Create();
    for (uint64_t i = 0; i < 100; ++i) world.Put(KeyOf(i), "stays");
    world.TryFlush();
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.Checkpoint().ok());
    pages_before = world.Counter("pages");
    world.Create(kLarge);
    for (uint64_t i = 0; i < kLargeRecords; ++i) world.PutInto(kLarge, KeyOf(i), std::string(100, 'x'));
    world.TryFlush();
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.Checkpoint().ok());
    ASSERT_GT(world.Counter("pages"), pages_before + 4 * TableReaper::kPagesPerStep);
  }

  // Drops the table, and takes a checkpoint behind each step of the reaper. Returns early when the power is lost.
  void DropInSteps() {
    world.Drop(kLarge);
    world.TryFlush();
    // The reaper gets the table when the guards of the time of the drop have ended; a checkpoint waits for them.
    while (reaper.arrived() == 0) {
      if (!world.Checkpoint().ok()) return;
    }
    for (int step = 1; world.Counter("tables_being_freed") != 0; ++step) {
      reaper.AllowStep();
      while (reaper.arrived() <= step && world.Counter("tables_being_freed") != 0) RealRuntime().Yield();
      EXPECT_LE(world.Counter("dropped_pages_freed"), static_cast<uint64_t>(step) * TableReaper::kPagesPerStep);
      world.Put(KeyOf(static_cast<uint64_t>(step)), Concat("beside step ", step));
      world.TryFlush();
      steps = step;
      if (!world.Checkpoint().ok()) return;
    }
    (void)world.Checkpoint();
  }

  // Expects that nothing is left of the table, on disk and among the page ids.
  void ExpectGone() {
    // The first checkpoint hands the table to the reaper, the next ones give back ids and segments.
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(world.Checkpoint().ok());
      while (world.Counter("tables_being_freed") != 0) RealRuntime().Yield();
    }
    EXPECT_LE(world.Counter("pages"), pages_before + 8);
    EXPECT_LT(world.Counter("storage_live_bytes"), 64'000u) << "the table had " << kLargeRecords * 100;
    RecordBatch none;
    EXPECT_EQ(world.operations().Read(kLarge, KeyOf(1), &none), ErrorCode::kNotFound);
    world.ExpectRight();
  }

  HeldReaper reaper;
  FaultyDisk disk;
  World world;
  uint64_t pages_before = 0;
  int steps = 0;  // that the reaper has taken
};

TEST(DropCrashTest, PowerMayGoAtAnyMomentOfADrop) {
  uint64_t crashes = 0;
  uint64_t in_the_middle = 0;
  for (uint64_t n = 1;; ++n) {
    SCOPED_TRACE(::testing::Message() << "power is lost at operation " << n);
    DropWorld drop(n);
    drop.Fill();
    if (::testing::Test::HasFatalFailure()) return;
    drop.disk.CrashAfter(n);
    drop.DropInSteps();
    const bool crashed = drop.disk.crashes() != 0;
    in_the_middle += crashed && drop.world.Counter("tables_being_freed") != 0 ? 1 : 0;
    drop.disk.CrashAfter(0);
    drop.reaper.Release();
    if (!crashed) {
      EXPECT_GT(drop.steps, 4);
      drop.ExpectGone();
      break;
    }
    ++crashes;
    const Status started = drop.world.TryRestart();
    ASSERT_TRUE(started.ok()) << started.ToString();
    // A table of the same name does not wait for the rest of the dropped one.
    drop.world.CreateNamed(kSameName, Concat("table ", kLarge.value));
    drop.world.PutInto(kSameName, KeyOf(1), "new");
    drop.world.TryFlush();
    ASSERT_FALSE(drop.world.broken());
    drop.ExpectGone();
    const Status again = drop.world.TryRestart();
    ASSERT_TRUE(again.ok()) << again.ToString();
    drop.ExpectGone();
    RecordBatch record;
    ASSERT_TRUE(drop.world.operations().Read(kSameName, KeyOf(1), &record).ok());
    EXPECT_EQ(record.size(), 1u);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(crashes, 30u);
  EXPECT_GT(in_the_middle, 10u);
}

}  // namespace
}  // namespace deut::dc

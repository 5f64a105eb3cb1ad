// The power is lost during all kinds of work: splits, merges, eviction, cleaning, checkpoints, tables created and
// dropped. Each time the content of the disk is intact, and so is the disk of the next incarnation. The test fails if
// one of these steps is omitted: DEUT_OMIT=X6.sync_segments, X6.sync_checkpoint, X6.sync_checkpoint_name,
// S2.segments_of_two_generations, flush.child_first, clean.unlinks_first.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/store/record_store.h"
#include "dc/verify/store_on_disk.h"
#include "dc/verify/verify.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr int kKeys = 4000;

RecordStoreOptions Busy() {
  RecordStoreOptions options = StoreOnDisk::SmallPages();
  options.memory_bytes = 256 << 10;
  options.merge_interval = milliseconds(1);
  options.cleaner.interval = milliseconds(1);
  options.cleaner.bytes_per_second = 0;
  options.cleaner.slack_segments = 0;
  options.scrubber.bytes_per_second = 0;
  return options;
}

std::string KeyOf(uint64_t i) { return Concat("key ", 100000 + i); }

// Performs one operation: an entry of the log, or a checkpoint.
void Step(StoreOnDisk& store, Random& random) {
  const uint64_t at = random.Below(kKeys);
  switch (random.Below(16)) {
    case 0:  // many at once, so that pages become empty
      for (uint64_t i = at; i < at + 400; ++i) store.Delete(StoreOnDisk::kAccounts, KeyOf(i));
      return;
    case 1:
      for (uint64_t i = at; i < at + 200; ++i) store.Put(StoreOnDisk::kAccounts, KeyOf(i), std::string(60, 'x'));
      return;
    case 2:
      store.LowWater();
      return;
    case 3:
      return store.Checkpoint();
    default:
      store.Put(StoreOnDisk::kAccounts, KeyOf(at), std::string(random.Below(200), 'y'));
  }
}

// Returns the damage; empty if there is none.
std::string Damage(Storage& storage) {
  const auto report = VerifyDirectory(storage, RealRuntime(), std::string(StoreOnDisk::kDirectory), {});
  if (!report.ok()) return report.status().ToString();
  return report->clean() ? "" : ReportText(*report);
}

uint64_t Counter(StoreOnDisk& store, std::string_view name) {
  std::vector<CounterValue> counters;
  store.running().AppendCounters(&counters);
  for (const CounterValue& counter : counters) {
    if (counter.name == name) return counter.value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

// A data component at work, and copies of its disk in the state after a loss of power.
class CrashRun {
 public:
  explicit CrashRun(uint64_t seed) : random_(seed), disk_(RealRuntime(), seed), store_(disk_.Mount(), Busy()) {
    store_.Start();
    store_.Create(StoreOnDisk::kAccounts);
  }
  ~CrashRun() { store_.Stop(); }

  // Continues to work, loses power, and perhaps again in the next incarnation. Returns the damage; empty if there is
  // none.
  std::string Crash() {
    for (uint64_t steps = random_.Below(30); steps > 0; --steps) Step(store_, random_);
    if (random_.OneIn(4)) MakeTable();
    const uint64_t seed = random_.Next();
    const std::unique_ptr<FaultyDisk> left = disk_.CopyAfterCrash(seed);
    std::string damage = Damage(*left->Mount());
    return damage.empty() && random_.OneIn(5) ? NextLife(*left, seed + 1) : damage;
  }
  StoreOnDisk& store() { return store_; }

 private:
  void MakeTable() {
    const TableId table(++tables_);
    store_.Create(table);
    for (int i = 0; i < 100; ++i) store_.Put(table, KeyOf(random_.Below(kKeys)), "short-lived");
    if (random_.OneIn(2)) store_.Checkpoint();
    store_.Drop(table);
  }
  std::string NextLife(FaultyDisk& disk, uint64_t seed) {
    StoreOnDisk next(disk.Mount(), Busy());
    next.Start();
    for (uint64_t steps = random_.Below(60); steps > 0 && Counter(next, "tables") != 0; --steps) Step(next, random_);
    next.Checkpoint();
    std::string damage = Damage(*disk.CopyAfterCrash(seed)->Mount());
    next.Stop();
    return damage.empty() ? Damage(*disk.Mount()) : damage;
  }

  Random random_;
  FaultyDisk disk_;
  StoreOnDisk store_;
  uint32_t tables_ = 100;
};

TEST(VerifyCrashTest, AfterACrashAtAnyMomentTheFolderIsIntact) {
  const char* const given = std::getenv("DEUT_VERIFY_CRASHES");
  const int crashes = given == nullptr ? 300 : std::atoi(given);
  const uint64_t seed = given == nullptr ? 1 : RealRuntime().RandomSeed();
  CrashRun run(seed);
  for (int crash = 0; crash < crashes; ++crash) ASSERT_EQ(run.Crash(), "") << "crash " << crash << ", seed " << seed;
  EXPECT_GT(Counter(run.store(), "merges"), 10u);
  EXPECT_GT(Counter(run.store(), "splits"), 100u);
  EXPECT_GT(Counter(run.store(), "segments_cleaned"), 10u);
  EXPECT_GT(Counter(run.store(), "pages_swapped_out"), 10u);
  EXPECT_GT(Counter(run.store(), "checkpoints"), 100u);
}

// A checkpoint that is taken while the pages of a dropped table are being freed has images of the pages that are left.
// They are no damage.
TEST(VerifyCrashTest, ACheckpointInTheMiddleOfADropIsIntact) {
  constexpr TableId kLarge(100);
  FaultyDisk disk(RealRuntime(), 1);
  StoreOnDisk store(disk.Mount(), StoreOnDisk::SmallPages());
  store.Start();
  store.Create(StoreOnDisk::kAccounts);
  store.Put(StoreOnDisk::kAccounts, KeyOf(1), "stays");
  store.Create(kLarge);
  for (int i = 0; i < kKeys; ++i) store.Put(kLarge, KeyOf(i), std::string(200, 'x'));
  store.Checkpoint();
  Event in_the_middle, go_on;
  std::atomic<int> steps{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "table_reaper.step" || steps.fetch_add(1) != 2) return;
    in_the_middle.Signal(RealRuntime());
    go_on.Wait(RealRuntime(), kNoDeadline);
  });
  store.Drop(kLarge);
  do store.Checkpoint();
  while (!in_the_middle.Wait(RealRuntime(), RealRuntime().Now() + milliseconds(1)));
  store.Checkpoint();
  EXPECT_EQ(Counter(store, "tables_being_freed"), 1u);
  for (uint64_t seed = 1; seed <= 10; ++seed) EXPECT_EQ(Damage(*disk.CopyAfterCrash(seed)->Mount()), "") << seed;
  go_on.Signal(RealRuntime());
  store.Stop();
  testing::SetPointHandler(nullptr);
  EXPECT_EQ(Damage(*disk.Mount()), "");
}

}  // namespace
}  // namespace deut::dc

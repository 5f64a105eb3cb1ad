// Records outlive the process, and may exceed the memory. The tests compare them with a reference while everything
// runs at once.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/process_budget.h"
#include "common/testing/test_points.h"
#include "dc/page_cache/memory_budget.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

TEST(PersistenceTest, CheckpointedRecordsAreThereInTheNextIncarnation) {
  World world;
  Random random(1);
  world.Create();
  Change(&world, &random, 2000, 6000);
  ASSERT_TRUE(world.Checkpoint().ok());
  const Position stable = world.store().stable();
  EXPECT_GT(stable, Position());
  world.store().stable();
  world.Restart();
  EXPECT_EQ(world.store().recovered(), stable);
  EXPECT_EQ(world.Counter("updates_applied"), 0u);  // no update had to be applied again
  // The number of records is estimated from some pages.
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

TEST(PersistenceTest, PagesTakePartInTheMemoryBudgetOfTheProcess) {
  constexpr uint64_t kMiB = 1 << 20;
  ProcessBudget budget(RealRuntime(), 1024 * kMiB, {.resident_bytes = [] { return 500 * kMiB; }});
  {
    RecordStoreOptions options = SmallPages(0);
    options.memory_bytes.reset();
    options.process_budget = &budget;
    World world(options);
    Random random(3);
    world.Create();
    Change(&world, &random, 2000, 2000);
    budget.Measure();
    // All resident memory that the store does not report is a fixed part.
    const uint64_t reported = budget.limit(MemoryPart::kPages) - 524 * kMiB;
    EXPECT_GT(reported, 100u << 10);
    EXPECT_LE(reported, 500 * kMiB);
    EXPECT_EQ(world.Counter("memory_limit_bytes"), MemoryBudget::LimitWithin(budget.limit(MemoryPart::kPages)));
  }
  budget.Measure();
  EXPECT_EQ(budget.limit(MemoryPart::kPages), 524 * kMiB) << "the store has ended";
}

TEST(PersistenceTest, MoreThanMemoryHolds) {
  constexpr uint64_t kBudget = 600 << 10;
  World world(kBudget);
  Random random(3);
  world.Create();
  for (int round = 0; round < 6; ++round) {
    Change(&world, &random, 20000, 10000);
    // Memory that a descheduled thread keeps from being freed may come on top for a moment.
    const MonotonicTime patience = RealRuntime().Now() + std::chrono::seconds(20);
    while (world.store().memory_bytes() >= kBudget * 3 / 2 && RealRuntime().Now() < patience) RealRuntime().Yield();
    EXPECT_LT(world.store().memory_bytes(), kBudget * 3 / 2);
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
  CheckpointsAndReads background(&world, 8000);
  for (int round = 0; round < 5 || background.taken() < 5; ++round) Change(&world, &random, 8000, 4000);
  background.Stop();
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
  // Enough updates that pages are written and evicted meanwhile.
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
  // Two generations must pass. Then files are deleted when all threads that read the old pages have left.
  const MonotonicTime patience = RealRuntime().Now() + std::chrono::seconds(60);
  while (world.Counter("storage_bytes") >= full / 4 || world.Counter("pages") >= pages / 10) {
    ASSERT_LT(RealRuntime().Now(), patience) << world.Counter("storage_bytes") << " bytes of " << full << ", "
                                             << world.Counter("pages") << " pages of " << pages;
    ASSERT_TRUE(world.Checkpoint().ok());
  }
  world.Restart();
  EXPECT_EQ(world.Counter("tables"), 1u);
}

// A table of many pages is dropped, and the thread that frees it stops in the middle. No other thread waits for it. A
// checkpoint that is taken then can be recovered from, and that recovery frees the rest of the table.
TEST(PersistenceTest, NothingWaitsForALargeTableThatIsFreed) {
  constexpr TableId kLarge(4);
  World world;
  world.Create();
  for (int i = 0; i < 200; ++i) world.Put(KeyOf(i), "v");
  world.Flush();
  ASSERT_TRUE(world.Checkpoint().ok());
  const uint64_t pages_before = world.Counter("pages");
  world.Create(kLarge);
  for (int i = 0; i < 20'000; ++i) world.PutInto(kLarge, KeyOf(i), std::string(100, 'x'));
  world.Flush();
  ASSERT_TRUE(world.Checkpoint().ok());
  const uint64_t pages = world.Counter("pages") - pages_before;
  ASSERT_GT(pages, 10 * TableReaper::kPagesPerStep);

  Event in_the_middle, go_on;
  std::atomic<int> steps{0};
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "table_reaper.step" || steps.fetch_add(1) != 3) return;
    in_the_middle.Signal(RealRuntime());
    go_on.Wait(RealRuntime(), kNoDeadline);
  });
  world.Drop(kLarge);
  world.Flush();
  // The table is collected once the last guards that saw it have ended, by the next thread that takes a guard.
  while (!in_the_middle.Wait(RealRuntime(), RealRuntime().Now() + std::chrono::milliseconds(1))) {
    world.Put(KeyOf(0), "again");
    world.Flush();
    ASSERT_TRUE(world.Checkpoint().ok());
  }
  EXPECT_EQ(world.Counter("tables_being_freed"), 1u);
  EXPECT_EQ(world.Counter("dropped_pages_freed"), 3 * TableReaper::kPagesPerStep) << "in bounded steps";
  EXPECT_GT(world.Counter("memory_bytes"), 100'000u) << "what is not freed yet counts";
  // Reads, updates, creations, drops, the table list of a Hello, and a checkpoint all succeed. So does the creation of
  // a table that has the dropped one's name.
  EXPECT_EQ(world.Read(KeyOf(7)), "v");
  world.Put(KeyOf(7), "w");
  world.Create(TableId(5));
  world.Drop(TableId(5));
  world.CreateNamed(TableId(6), "table 4");
  world.PutInto(TableId(6), KeyOf(1), "of the new one");
  world.Flush();
  EXPECT_EQ(world.Read(KeyOf(7)), "w");
  EXPECT_EQ(world.store().Tables().size(), 3u);
  ASSERT_TRUE(world.Checkpoint().ok());
  world.ExpectRight();
  EXPECT_EQ(world.Counter("dropped_pages_freed"), 3 * TableReaper::kPagesPerStep);

  // The incarnation ends here: the pages that it frees at its end are still in the checkpoint.
  go_on.Signal(RealRuntime());
  world.Restart();
  testing::SetPointHandler({});
  world.ExpectRight();
  EXPECT_EQ(world.Counter("tables"), 2u);
  EXPECT_LT(world.Counter("pages"), pages_before + 50);
  const MonotonicTime patience = RealRuntime().Now() + std::chrono::seconds(60);
  while (world.Counter("storage_live_bytes") > 200'000) {
    ASSERT_LT(RealRuntime().Now(), patience) << world.Counter("storage_live_bytes");
    ASSERT_TRUE(world.Checkpoint().ok());
  }
}

// Checkpoint files, page ids and memory do not grow with the number of dropped tables.
TEST(PersistenceTest, ManyDroppedTablesLeaveNothingBehind) {
  World world;
  world.Create();
  world.Put("k", "v");
  world.Flush();
  const auto size_of_newest = [&]() -> uint64_t {
    const auto names = world.storage().List("/pages");
    std::string newest;
    for (const std::string& name : *names) {
      if (name.starts_with("checkpoint-")) newest = std::max(newest, name);
    }
    const auto file = world.storage().Open("/pages/" + newest, {});
    EXPECT_TRUE(file.ok()) << newest << ": " << file.status().ToString();
    return file.ok() ? (*file)->Size().value() : 0;
  };
  uint64_t first_bytes = 0, first_pages = 0, first_memory = 0;
  uint32_t id = kTable.value;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 1000; ++i) {
      world.Create(TableId(++id));
      world.Drop(TableId(id));
    }
    world.Flush();
    ASSERT_TRUE(world.Checkpoint().ok());
    if (round == 4) {
      while (world.Counter("tables_being_freed") != 0) RealRuntime().Yield();
      first_bytes = size_of_newest();
      first_pages = world.Counter("pages");
      first_memory = world.Counter("memory_bytes");
    }
  }
  EXPECT_EQ(size_of_newest(), first_bytes);
  // Page ids are reused after the reaper has freed them and a later checkpoint has completed.
  const MonotonicTime patience = RealRuntime().Now() + std::chrono::seconds(60);
  while (world.Counter("pages") > first_pages) {
    ASSERT_LT(RealRuntime().Now(), patience) << world.Counter("pages") << " pages, " << first_pages << " before";
    ASSERT_TRUE(world.Checkpoint().ok());
  }
  EXPECT_EQ(size_of_newest(), first_bytes);
  EXPECT_LE(world.Counter("memory_bytes"), first_memory + (1 << 20));
  world.Restart();
  world.ExpectRight();
  EXPECT_EQ(world.Counter("tables"), 1u);
  EXPECT_EQ(world.store().Tables().back().id, TableId(id)) << "T1: ids go on above the last one dropped";
}

// Tested in memory, and under a budget that evicts most pages.
TEST(PersistenceTest, MassDeletesGiveMemoryAndDiskBack) {
  constexpr uint64_t kKeys = 12000;
  for (const uint64_t budget : {uint64_t{0}, uint64_t{500} << 10}) {
    SCOPED_TRACE(budget);
    World world(budget);
    world.Create();
    for (uint64_t i = 0; i < kKeys; ++i) {
      world.Put(KeyOf(i), std::string(60, static_cast<char>('a' + i % 26)));
      if (i % 100 == 0) world.Flush();
    }
    world.LowWater();
    world.Flush();
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.Checkpoint().ok());
    const uint64_t pages = world.Counter("pages");
    const uint64_t live = world.Counter("storage_live_bytes");
    for (uint64_t i = 0; i < kKeys; ++i) {
      if (i % 100 != 0) world.Delete(KeyOf(i));
      if (i % 100 == 0) world.Flush();
    }
    world.LowWater();
    world.Flush();
    // The space is freed in the background, without a request.
    const MonotonicTime patience = RealRuntime().Now() + std::chrono::seconds(60);
    while (RealRuntime().Now() < patience) {
      ASSERT_TRUE(world.Checkpoint().ok());
      ASSERT_TRUE(world.store().Clean().ok());
      if (world.Counter("pages") < pages / 8 && world.Counter("storage_live_bytes") < live / 8 &&
          world.Counter("storage_bytes") < live / 2)
        break;
    }
    EXPECT_LT(world.Counter("pages"), pages / 8);
    EXPECT_LT(world.Counter("storage_live_bytes"), live / 8);
    EXPECT_LT(world.Counter("storage_bytes"), live / 2);
    world.ExpectRight();
    world.Restart();
    world.ExpectRight();
  }
}

// Waves of records are inserted and deleted, while all background work runs at its full rate.
TEST(PersistenceTest, TidesWhileEverythingGoesOn) {
  constexpr uint64_t kKeys = 6000;
  World world(500 << 10);
  Random random(11);
  world.Create();
  std::atomic<bool> stop{false};
  const auto checkpoints = RealRuntime().StartThread("checkpoints", [&] {
    while (!stop.load()) {
      ASSERT_TRUE(world.Checkpoint().ok());
      ASSERT_TRUE(world.store().Clean().ok());
    }
  });
  const auto reader = RealRuntime().StartThread("reader", [&] {
    Random own(12);
    while (!stop.load()) {
      ScanCursor cursor;
      cursor.low = KeyOf(own.Below(kKeys));
      ScanBudget budget;
      budget.records = 200;
      RecordBatch batch;
      const Direction direction = own.OneIn(2) ? Direction::kAscending : Direction::kDescending;
      const Status status = world.operations().Scan(kTable, direction, &cursor, &budget, 20, &batch);
      ASSERT_TRUE(status.ok() || status == ErrorCode::kNotFound) << status.ToString();
    }
  });
  uint64_t merges = 0;
  const MonotonicTime patience = RealRuntime().Now() + std::chrono::seconds(60);
  for (int tide = 0; (tide < 6 || merges < 20) && RealRuntime().Now() < patience; ++tide) {
    const uint64_t first = random.Below(kKeys / 2);
    for (uint64_t i = first; i < first + kKeys / 2; ++i) {
      world.Put(KeyOf(i), std::string(random.Below(80), 'v'));
      if (i % 64 == 0) world.Flush();
    }
    Change(&world, &random, kKeys, 500);
    for (uint64_t i = first; i < first + kKeys / 2; ++i) {
      if (random.Below(20) != 0) world.Delete(KeyOf(i));
      if (i % 64 == 0) world.Flush();
      if (i % 512 == 0) world.LowWater();
    }
    world.LowWater();
    world.Flush();
    merges = world.Counter("merges");
  }
  stop.store(true);
  checkpoints->Join();
  reader->Join();
  EXPECT_GE(merges, 20u);
  world.ExpectRight();
  world.Restart();
  world.ExpectRight();
}

// No reader is told that a table or record does not exist because a file is missing.
TEST(PersistenceTest, ASegmentThatIsGoneIsCorruption) {
  RecordStoreOptions options = SmallPages(0);
  options.store.max_open_files = 1;
  options.merge_interval = std::chrono::hours(24);  // no merge loads pages
  options.cleaner.interval = Duration();
  options.scrubber.bytes_per_second = 0;  // the scrubber opens no file: an open file remains readable
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
    // The record comes from the file that is still open.
    if (status.ok()) ASSERT_EQ(RecordBatch::Iterator(answer).record().value, value);
    ASSERT_TRUE(status.ok() || status == ErrorCode::kCorruption) << status.ToString();
  }
  EXPECT_GT(corrupt, 0);
}

// A page that cannot be read does not mean that the disk refuses writes. No checkpoint is taken, but everything else
// continues.
TEST(PersistenceTest, APageThatCannotBeReadDoesNotEndTheProcess) {
  int failures = 0;
  RecordStoreOptions options = SmallPages(0);
  options.store.max_open_files = 1;
  // No background work loads the page, or reduces its parts.
  options.merge_interval = std::chrono::hours(24);
  options.cleaner.interval = Duration();
  options.scrubber.bytes_per_second = 0;  // the scrubber leaves its file open
  options.on_failure = [&failures](const Status&) { ++failures; };
  World world(options);
  Random random(11);
  world.Create();
  Change(&world, &random, 2000, 6000);
  ASSERT_TRUE(world.Checkpoint().ok());
  // Its image gets the largest number of parts; then the page must be loaded to be written.
  for (size_t parts = 1; parts < kMaxPartsOfImage; ++parts) {
    world.Restart();
    world.Put(KeyOf(1000), Concat("part ", parts));
    world.Flush();
    ASSERT_TRUE(world.Checkpoint().ok());
  }
  world.Restart();
  const Position stable = world.store().stable();
  world.Put(KeyOf(1000), "the last straw");
  world.Flush();
  (void)world.Read(KeyOf(1));  // the file that stays open belongs to another page
  const std::vector<std::string> names = *world.storage().List("/pages");
  for (const std::string& name : names) {
    if (name.starts_with("base-")) ASSERT_TRUE(world.storage().Remove(Concat("/pages/", name)).ok());
  }
  EXPECT_FALSE(world.Checkpoint().ok());
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(world.store().stable(), stable);
  world.Put(KeyOf(1001), "goes on");
  world.Flush();
}

}  // namespace
}  // namespace deut::dc

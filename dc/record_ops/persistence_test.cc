// Records outlive the process, and may be more than memory holds: against a reference, with everything running at once.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/record_ops/record_operations.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr TableId kTable{3};

RecordOperationsOptions SmallPages(uint64_t memory_bytes) {
  RecordOperationsOptions options;
  options.tree.leaf_page_bytes = 1024;
  options.tree.inner_page_bytes = 512;
  options.tree.leaf_chain_length = 4;
  options.tree.inner_chain_length = 2;
  options.store.segment_bytes = 64 << 10;
  options.store.append_buffer_bytes = 256 << 10;
  options.max_pages = 1 << 20;
  options.memory_bytes = memory_bytes;
  return options;
}

// A log that is kept, the records that it makes, and a DC that may end and begin again.
class World {
 public:
  explicit World(uint64_t memory_bytes = 0) : options_(SmallPages(memory_bytes)) { Open(); }

  void Open() {
    const RecordOperations::Home home{*storage_, "/pages", DcId(7), DcIncarnation(++incarnation_)};
    auto opened = RecordOperations::Open(RealRuntime(), home, options_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    operations_ = std::move(*opened);
    applied_.store(operations_->recovered().commit.value);
  }
  // The DC ends; the next life begins with the last checkpoint, and gets the log from there.
  void Restart() {
    operations_.reset();
    Open();
    operations_->BeginStream();
    for (const LogBatch& batch : log_) ASSERT_TRUE(Apply(batch).ok());
  }

  void Create(TableId table = kTable) { Entry(LogEntryKind::kCreateTable, table, Concat("table ", table.value), {}); }
  void Drop(TableId table) { Entry(LogEntryKind::kDropTable, table, Concat("table ", table.value), {}); }
  void Put(std::string_view key, std::string value) {
    Entry(LogEntryKind::kPut, kTable, key, value);
    records_[std::string(key)] = std::move(value);
  }
  void Delete(std::string_view key) {
    Entry(LogEntryKind::kDelete, kTable, key, {});
    records_.erase(std::string(key));
  }
  void LowWater() { Entry(LogEntryKind::kLowWater, TableId(), {}, {}); }
  // Applies what was logged since the last call.
  void Flush() {
    LogBatch batch = std::exchange(batch_, LogBatch());
    batch_.from = batch_.to = batch.to;
    ASSERT_TRUE(Apply(batch).ok());
    log_.push_back(std::move(batch));
  }
  Status Checkpoint() {
    return operations_->Checkpoint([this] { return Position{Lsn(applied_.load()), 1}; });
  }

  std::optional<std::string> Read(std::string_view key) {
    RecordBatch batch;
    const Status status = operations_->Read(kTable, key, &batch);
    DEUT_CHECK(status.ok());
    if (batch.empty()) return std::nullopt;
    return std::string(RecordBatch::Iterator(batch).record().value);
  }
  std::map<std::string, std::string> Scan(Direction direction) {
    std::map<std::string, std::string> found;
    ScanCursor cursor;
    while (!cursor.complete) {
      RecordBatch batch;
      ScanBudget budget;
      budget.bytes = 4096;
      DEUT_CHECK(operations_->Scan(kTable, direction, &cursor, &budget, UINT64_MAX, &batch).ok());
      for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) {
        DEUT_CHECK(found.emplace(it.record().key, it.record().value).second);
      }
    }
    return found;
  }
  void ExpectRight() {
    EXPECT_EQ(Scan(Direction::kAscending), records_);
    EXPECT_EQ(Scan(Direction::kDescending), records_);
  }

  RecordOperations& operations() { return *operations_; }
  const std::map<std::string, std::string>& records() const { return records_; }
  uint64_t Counter(std::string_view name) {
    std::vector<CounterValue> counters;
    operations_->AppendCounters(&counters);
    for (const CounterValue& counter : counters) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

 private:
  Status Apply(const LogBatch& batch) {
    const Position applied{Lsn(applied_.load()), 1};
    if (batch.to <= applied) return Status::Ok();
    DEUT_CHECK(batch.Validate().ok());
    DEUT_RETURN_IF_ERROR(operations_->ApplyBatch(batch, applied));
    applied_.store(batch.to.commit.value);
    return Status::Ok();
  }
  void Entry(LogEntryKind kind, TableId table, std::string_view key, std::string_view value) {
    LogEntryView entry;
    entry.kind = kind;
    entry.position = Position{Lsn(lsn_ += 100), 1};
    entry.timestamp = Timestamp(kind == LogEntryKind::kLowWater ? now_ : ++now_);
    entry.table = table;
    entry.key = key;
    entry.value = value;
    batch_.Append(entry);
    batch_.to = entry.position;
  }

  const RecordOperationsOptions options_;
  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  uint64_t incarnation_ = 0;
  std::unique_ptr<RecordOperations> operations_;
  std::atomic<uint64_t> applied_{0};
  uint64_t lsn_ = 0;
  uint64_t now_ = 1;
  LogBatch batch_;
  std::vector<LogBatch> log_;
  std::map<std::string, std::string> records_;
};

std::string KeyOf(uint64_t number) {
  const std::string digits = Concat(number);
  return Concat("key", std::string(8 - digits.size(), '0'), digits);
}

void Change(World* world, Random* random, uint64_t keys, int changes) {
  for (int i = 0; i < changes; ++i) {
    const std::string key = KeyOf(random->Below(keys));
    if (random->Below(4) == 0) {
      world->Delete(key);
    } else {
      world->Put(key, Concat("value ", random->Next(), std::string(random->Below(60), 'v')));
    }
    if (random->Below(50) == 0) world->LowWater();
    if (random->Below(40) == 0) world->Flush();
  }
  world->Flush();
}

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

// At the next pass of the point, once.
void AtPoint(std::string name, std::function<void()> then) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  testing::SetPointHandler([name = std::move(name), then = std::move(then), done](std::string_view at) {
    if (at == name && !done->exchange(true)) then();
  });
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

}  // namespace
}  // namespace deut::dc

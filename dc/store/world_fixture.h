// World: a DC's records, the log that made them, and a record of their expected values. The DC may end and begin
// again. For tests. Thread-safety: one thread changes and flushes; Checkpoint and Read from any.
#ifndef DC_STORE_WORLD_FIXTURE_H_
#define DC_STORE_WORLD_FIXTURE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "dc/record_ops/log_maker.h"
#include "dc/store/record_store.h"
#include "gtest/gtest.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "protocol/record_batch.h"
#include "protocol/table_options.h"

namespace deut::dc {

constexpr TableId kTable{3};

inline RecordStoreOptions SmallPages(uint64_t memory_bytes) {
  RecordStoreOptions options;
  options.tree.leaf_page_bytes = 1024;
  options.tree.inner_page_bytes = 512;
  options.tree.leaf_chain_length = 4;
  options.tree.inner_chain_length = 2;
  options.store.segment_bytes = 64 << 10;
  options.store.append_buffer_bytes = 256 << 10;
  options.max_pages = 1 << 20;
  options.memory_bytes = memory_bytes;
  options.merge_interval = std::chrono::milliseconds(1);
  options.apply_helpers = 2;
  return options;
}

// Opens the records that `storage` holds, in a new incarnation.
inline Result<std::unique_ptr<RecordStore>> OpenLife(Storage& storage, uint64_t incarnation,
                                                     const RecordStoreOptions& options) {
  const RecordStore::Location home{storage, "/pages", DcId(7), DcIncarnation(incarnation)};
  return RecordStore::Open(RealRuntime(), home, options);
}

inline uint64_t CounterOf(RecordStore& store, std::string_view name) {
  std::vector<CounterValue> counters;
  store.AppendCounters(&counters);
  for (const CounterValue& counter : counters) {
    if (counter.name == name) return counter.value;
  }
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

// A log that is kept, the records that it makes, and a DC that may end and begin again.
class World {
 public:
  explicit World(uint64_t memory_bytes = 0) : World(SmallPages(memory_bytes)) {}
  explicit World(const RecordStoreOptions& options) : options_(options), storage_(NewMemoryStorage(RealRuntime())) {
    Open();
  }
  // Uses a disk that may lose power; there is no DC before the first TryRestart.
  World(const RecordStoreOptions& options, FaultyDisk* disk) : options_(options), disk_(disk) {}

  void Open() {
    auto opened = OpenLife(*storage_, ++incarnation_, options_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(*opened);
    applied_.store(store_->recovered().commit.value);
  }
  // The DC ends. The next incarnation begins with the last checkpoint, and gets the log from there.
  void Restart() {
    store_.reset();
    Open();
    store_->operations().BeginStream();
    for (const LogBatch& batch : log_) ASSERT_TRUE(Apply(batch).ok());
  }

  // --- For a disk that fails. After an error nothing more is applied in that incarnation; the log continues.
  Status TryRestart() {
    store_.reset();
    broken_ = true;
    storage_ = disk_->Mount();
    DEUT_ASSIGN_OR_RETURN(store_, OpenLife(*storage_, ++incarnation_, options_));
    applied_.store(store_->recovered().commit.value);
    store_->operations().BeginStream();
    for (const LogBatch& batch : log_) DEUT_RETURN_IF_ERROR(Apply(batch));
    broken_ = false;
    return Status::Ok();
  }
  void TryFlush() {
    LogBatch batch = maker_.Take();
    broken_ = broken_ || !Apply(batch).ok();
    log_.push_back(std::move(batch));
  }
  bool broken() const { return broken_; }

  void Create(TableId table = kTable, const TableOptions& options = {}) {
    CreateNamed(table, Concat("table ", table.value), options);
  }
  void CreateNamed(TableId table, std::string_view name, const TableOptions& options = {}) {
    Entry(LogEntryKind::kCreateTable, table, name, EncodeTableOptions(options));
  }
  void Drop(TableId table) { Entry(LogEntryKind::kDropTable, table, Concat("table ", table.value), {}); }
  void Put(std::string_view key, std::string value) {
    Entry(LogEntryKind::kPut, kTable, key, value);
    records_[std::string(key)] = std::move(value);
  }
  // Puts a record into a table that no check reads.
  void PutInto(TableId table, std::string_view key, std::string_view value) {
    Entry(LogEntryKind::kPut, table, key, value);
  }
  void Delete(std::string_view key) {
    Entry(LogEntryKind::kDelete, kTable, key, {});
    records_.erase(std::string(key));
  }
  void LowWater() { Entry(LogEntryKind::kLowWater, TableId(), {}, {}); }
  // Applies the entries that were logged since the last call.
  void Flush() {
    LogBatch batch = maker_.Take();
    ASSERT_TRUE(Apply(batch).ok());
    log_.push_back(std::move(batch));
  }
  Status Checkpoint() {
    return store_->Checkpoint([this] { return Position{Lsn(applied_.load()), 1}; });
  }

  std::optional<std::string> Read(std::string_view key) {
    RecordBatch batch;
    const Status status = store_->operations().Read(kTable, key, &batch);
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
      DEUT_CHECK(store_->operations().Scan(kTable, direction, &cursor, &budget, UINT64_MAX, &batch).ok());
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

  RecordStore& store() { return *store_; }
  RecordOperations& operations() { return store_->operations(); }
  Storage& storage() { return *storage_; }
  const std::map<std::string, std::string>& records() const { return records_; }
  uint64_t Counter(std::string_view name) { return CounterOf(*store_, name); }

 private:
  Status Apply(const LogBatch& batch) {
    const Position applied{Lsn(applied_.load()), 1};
    if (batch.to <= applied) return Status::Ok();
    DEUT_CHECK(batch.Validate().ok());
    DEUT_RETURN_IF_ERROR(store_->operations().ApplyBatch(batch, applied));
    applied_.store(batch.to.commit.value);
    return Status::Ok();
  }
  void Entry(LogEntryKind kind, TableId table, std::string_view key, std::string_view value) {
    maker_.Add(kind, table, key, value);
  }

  const RecordStoreOptions options_;
  FaultyDisk* const disk_ = nullptr;
  std::unique_ptr<Storage> storage_;
  bool broken_ = false;
  uint64_t incarnation_ = 0;
  std::unique_ptr<RecordStore> store_;
  std::atomic<uint64_t> applied_{0};
  LogMaker maker_;
  std::vector<LogBatch> log_;
  std::map<std::string, std::string> records_;
};

inline std::string KeyOf(uint64_t number) {
  const std::string digits = Concat(number);
  return Concat("key", std::string(8 - digits.size(), '0'), digits);
}

inline void Change(World* world, Random* random, uint64_t keys, int changes) {
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

// While this object lives, one thread takes checkpoints and another one reads records. The world outlives it.
class CheckpointsAndReads {
 public:
  CheckpointsAndReads(World* world, uint64_t keys) {
    checkpoints_ = RealRuntime().StartThread("checkpoints", [this, world] {
      while (!stop_.load()) {
        ASSERT_TRUE(world->Checkpoint().ok());
        taken_.fetch_add(1);
      }
    });
    reader_ = RealRuntime().StartThread("reader", [this, world, keys] {
      Random own(5);
      while (!stop_.load()) {
        RecordBatch batch;
        const Status status = world->operations().Read(kTable, KeyOf(own.Below(keys)), &batch);
        ASSERT_TRUE(status.ok() || status == ErrorCode::kNotFound) << status.ToString();
        ASSERT_LE(batch.size(), 1u);
      }
    });
  }
  ~CheckpointsAndReads() { Stop(); }
  CheckpointsAndReads(const CheckpointsAndReads&) = delete;
  CheckpointsAndReads& operator=(const CheckpointsAndReads&) = delete;

  void Stop() {
    stop_.store(true);
    checkpoints_.reset();
    reader_.reset();
  }
  int taken() const { return taken_.load(); }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> taken_{0};
  std::unique_ptr<Thread> checkpoints_, reader_;
};

// Calls `then` once, when a thread next passes the point.
inline void AtPoint(std::string name, std::function<void()> then) {
  auto done = std::make_shared<std::atomic<bool>>(false);
  testing::SetPointHandler([name = std::move(name), then = std::move(then), done](std::string_view at) {
    if (at == name && !done->exchange(true)) then();
  });
}

}  // namespace deut::dc

#endif  // DC_STORE_WORLD_FIXTURE_H_

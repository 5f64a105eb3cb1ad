// Sixteen threads update, read, scan and partition, and create and drop tables. Meanwhile pages are evicted, merged,
// cleaned and checkpointed without a pause, and memory holds a fraction of the data. Everything is compared with a
// reference all the time, and again in the next incarnation, after redo by as many threads. DEUT_STRESS_SECONDS sets
// the duration; DEUT_SEED repeats the threads' choices (not their interleaving).
//
// Updates come as the protocol allows: different batches in any order, some again and late; a low-water only when
// everything below it was applied. A ticket is both the position of an update in the log and its timestamp. For each
// key the reference knows the newest applied update, and the newest deletion that was ever begun. A value names its
// ticket. So every answer can be judged at any time:
// - A record is the one that its ticket has put there, and is no older than the updates applied when the question was
//   asked.
// - For a key without a record, no put was applied by then, or a deletion has begun since.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "dc/store/world_fixture.h"
#include "gtest/gtest.h"
#include "protocol/log_batch.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

constexpr int kThreads = 16;
constexpr uint32_t kKeys = 20'000;
constexpr uint64_t kBudget = 600 << 10;  // a fraction of the data
constexpr uint32_t kKeysPerRegion = 256;
constexpr uint64_t kTicketsPerTide = 4'000;
constexpr uint32_t kKeysPerTide = 2'000;
constexpr Duration kPhase = std::chrono::milliseconds(1000);

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

Position PositionOf(uint64_t ticket) { return Position{Lsn(100 * ticket), 1}; }

// Returns a value that names its ticket and reveals if it is incomplete. Most values are short; a few are larger than
// a page.
std::string ValueOf(uint32_t key, uint64_t ticket) {
  const uint64_t hash = Mix64(ticket * kKeys + key);
  const size_t bytes = hash % 500 == 0 ? 3000 : 30 + hash % 150;
  std::string value = Concat(ticket, ":", key, ":");
  for (uint64_t word = hash; value.size() < bytes; word = Mix64(word)) ConcatTo(&value, word);
  return value;
}

uint64_t TicketOf(std::string_view value) {
  return std::strtoull(std::string(value.substr(0, 20)).c_str(), nullptr, 10);
}

void Raise(std::atomic<uint64_t>* word, uint64_t value) {
  uint64_t seen = word->load();
  while (seen < value && !word->compare_exchange_weak(seen, value)) {
  }
}

// The reference for one key.
struct KeyState {
  std::atomic<uint64_t> applied{0};        // newest applied update: 2 * ticket, plus 1 if it was a put
  std::atomic<uint64_t> last_deletion{0};  // begun, perhaps not yet applied
};

class Reference {
 public:
  uint64_t Applied(uint32_t key) const { return keys_[key].applied.load(); }
  void DeletionBegins(uint32_t key, uint64_t ticket) { Raise(&keys_[key].last_deletion, ticket); }
  void WasApplied(uint32_t key, uint64_t ticket, bool put) { Raise(&keys_[key].applied, 2 * ticket + (put ? 1 : 0)); }

  // Returns the fault of an answer to a question that was asked when `before` was applied; empty if there is none.
  std::string Judge(uint32_t key, uint64_t before, const RecordView* record) const {
    const uint64_t floor = before / 2;
    const bool was_put = before % 2 == 1;
    if (record == nullptr) {
      if (!was_put || keys_[key].last_deletion.load() > floor) return "";
      return Concat("key ", key, " is not there; ticket ", floor, " has put it");
    }
    const uint64_t ticket = TicketOf(record->value);
    if (record->value != ValueOf(key, ticket))
      return Concat("key ", key, " holds what nobody has written: ", record->value);
    if (record->version.timestamp.value < ticket)
      return Concat("key ", key, ": ticket ", ticket, " under an older version");
    if (ticket > floor || (ticket == floor && was_put)) return "";
    return Concat("key ", key, " holds ticket ", ticket, "; applied was ", floor, was_put ? "" : ", a deletion");
  }

 private:
  std::array<KeyState, kKeys> keys_;
};

class Stress {
 public:
  explicit Stress(uint64_t seed) : random_(seed), storage_(NewMemoryStorage(RealRuntime())) {
    for (int i = 0; i < kThreads; ++i) workers_[i].random = Random(random_.Next());
    Open();
    workers_[0].log.push_back(OneEntry(LogEntryKind::kCreateTable, kTable, "all", DrawTickets(workers_[0], 1)));
    EXPECT_TRUE(Apply(workers_[0].log.back()).ok());
    workers_[0].floor.store(UINT64_MAX);
  }

  // No checkpoint is taken for a while before an incarnation ends, so that redo has updates to apply.
  void RunPhase(bool last_of_life) {
    const MonotonicTime end = RealRuntime().Now() + kPhase;
    StartBackground(last_of_life ? end - kPhase / 4 : kNoDeadline);
    ForAllWorkers([this, end](Worker& worker) {
      while (RealRuntime().Now() < end && !Failed()) Step(worker);
    });
    // All background work continues during the comparison.
    CompareAll();
    StopBackground();
    NoteCounters();
    Forget();
  }

  // The DC ends, and begins again from the last checkpoint; all threads redo the rest at once.
  void NextLife() {
    store_.reset();
    counted_.fill(0);
    Open();
    store_->operations().BeginStream();
    const Position recovered = store_->recovered();
    redo_.store(true);
    StartBackground(kNoDeadline);
    ForAllWorkers([this, recovered](Worker& worker) {
      for (size_t i = 0; i < worker.log.size() && !Failed(); ++i) {
        if (worker.log[i].to <= recovered) continue;
        Expect(store_->operations().ApplyBatch(worker.log[i], recovered));
        redone_.fetch_add(1, std::memory_order_relaxed);
        if (worker.random.OneIn(20)) Expect(Apply(worker.log[worker.random.Below(i + 1)]));
      }
    });
    CompareAll();
    StopBackground();
    redo_.store(false);
  }

  bool Failed() const { return ::testing::Test::HasFailure(); }
  bool HasSeenEverything() const {
    return redone_.load() >= 10 && std::all_of(seen_.begin(), seen_.end(), [](uint64_t count) { return count >= 10; });
  }
  void Print() const {
    std::cout << next_.load() - 1 << " updates, " << reads_.load() << " reads, " << scanned_.load()
              << " records scanned, " << tables_.load() << " tables dropped, " << redone_.load() << " batches redone";
    for (size_t i = 0; i < kCounters.size(); ++i) std::cout << ", " << kCounters[i] << " " << seen_[i];
    std::cout << "\n";
  }

 private:
  static constexpr std::array<std::string_view, 6> kCounters = {"pages_swapped_out", "pages_loaded", "checkpoints",
                                                                "segments_cleaned",  "splits",       "merges"};
  struct Worker {
    Random random{0};
    // All tickets below this that the worker took are applied; UINT64_MAX between two batches.
    std::atomic<uint64_t> floor{UINT64_MAX};
    std::vector<LogBatch> log;  // batches that a later incarnation may need
    uint64_t tables = 0;
  };

  void Open() {
    RecordStoreOptions options = SmallPages(kBudget);
    options.cleaner.interval = std::chrono::milliseconds(1);
    options.cleaner.bytes_per_second = 0;
    options.cleaner.slack_segments = 0;
    options.store.segments_before_growth = 16;
    options.fetch_hot_pages = true;
    auto opened = OpenLife(*storage_, ++incarnation_, options);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(*opened);
  }

  template <typename Work>
  void ForAllWorkers(const Work& work) {
    std::vector<std::unique_ptr<Thread>> threads;
    for (Worker& worker : workers_) {
      threads.push_back(RealRuntime().StartThread("worker", [&work, &worker] { work(worker); }));
    }
  }

  void StartBackground(MonotonicTime checkpoints_end) {
    stop_.store(false);
    background_.push_back(RealRuntime().StartThread("checkpoints", [this, checkpoints_end] {
      while (!stop_.load() && RealRuntime().Now() < checkpoints_end) {
        const Status taken = store_->Checkpoint([this] { return AppliedUpTo(); });
        // The checkpoint was put off because a thread made no progress for seconds.
        EXPECT_TRUE(taken.ok() || taken == ErrorCode::kResourceExhausted) << taken.ToString();
      }
    }));
    if (redo_.load()) return;  // low-water is sent when redo is complete
    background_.push_back(RealRuntime().StartThread("low-water", [this] {
      while (!stop_.load()) {
        const uint64_t all_below = LowestOpen();
        Expect(Apply(OneEntry(LogEntryKind::kLowWater, TableId(), {}, all_below)));
        RealRuntime().SleepUntil(RealRuntime().Now() + std::chrono::milliseconds(1));
      }
    }));
  }
  void StopBackground() {
    stop_.store(true);
    background_.clear();
  }

  // --- Tickets. A worker announces its tickets before it takes them, so that no other thread counts them as applied.
  uint64_t DrawTickets(Worker& worker, uint64_t count) {
    worker.floor.store(next_.load());
    return next_.fetch_add(count);
  }
  // Returns a ticket below which every ticket was applied.
  uint64_t LowestOpen() const {
    uint64_t lowest = next_.load();
    for (const Worker& worker : workers_) lowest = std::min(lowest, worker.floor.load());
    return lowest;
  }
  // In a new incarnation no new update counts as applied before redo is complete.
  // LowestOpen may go back: a worker that announces its tickets may have read `next_` a while ago. A position that was
  // once applied stays applied.
  Position AppliedUpTo() {
    if (redo_) return store_->recovered();
    applied_up_to_ = std::max(applied_up_to_, LowestOpen() - 1);
    return PositionOf(applied_up_to_);
  }

  static LogBatch EmptyBatch(uint64_t first, uint64_t count) {
    LogBatch batch;
    batch.from = PositionOf(first - 1);
    batch.to = PositionOf(first + count - 1);
    return batch;
  }
  static void Add(LogEntryKind kind, TableId table, std::string_view key, std::string_view value, uint64_t ticket,
                  LogBatch* batch) {
    LogEntryView entry;
    entry.kind = kind;
    entry.position = PositionOf(ticket);
    entry.timestamp = Timestamp(ticket);
    entry.table = table;
    entry.key = key;
    entry.value = value;
    batch->Append(entry);
  }
  static LogBatch OneEntry(LogEntryKind kind, TableId table, std::string_view key, uint64_t ticket) {
    LogBatch batch = EmptyBatch(ticket, 1);
    Add(kind, table, key, {}, ticket, &batch);
    return batch;
  }
  // Applies the whole batch, even if it was applied before.
  Status Apply(const LogBatch& batch) { return store_->operations().ApplyBatch(batch, Position()); }
  void ApplyAndKeep(Worker& worker, LogBatch batch) {
    Expect(Apply(batch));
    worker.log.push_back(std::move(batch));
  }

  static void Expect(const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); }
  static void Expect(const std::string& wrong) { EXPECT_EQ(wrong, ""); }

  // --- The work of a worker.
  void Step(Worker& worker) {
    Random& random = worker.random;
    const uint64_t choice = random.Below(100);
    if (choice < 45) {
      UpdateSome(worker);
    } else if (choice < 50) {
      if (!worker.log.empty()) Expect(Apply(worker.log[random.Below(worker.log.size())]));
    } else if (choice < 85) {
      ReadOne(static_cast<uint32_t>(random.Below(kKeys)));
    } else if (choice < 97) {
      const auto first = static_cast<uint32_t>(random.Below(kKeys));
      ScanSome(first, std::min(kKeys, first + 1 + static_cast<uint32_t>(random.Below(200))),
               random.OneIn(2) ? Direction::kAscending : Direction::kDescending, /*pages=*/1 + random.Below(20));
    } else if (choice < 99) {
      PartitionAll(static_cast<uint32_t>(1 + random.Below(64)));
    } else {
      PassTable(worker);
    }
  }

  // The keys are random, or neighbours, mostly in the region of the current wave. There most updates are puts, or
  // deletions, one region after another.
  void UpdateSome(Worker& worker) {
    Random& random = worker.random;
    const uint64_t count = 1 + random.Below(random.OneIn(4) ? 64 : 4);
    const bool neighbours = random.OneIn(2);
    const uint64_t first = DrawTickets(worker, count);
    const uint64_t tide = first / kTicketsPerTide;
    const auto start = static_cast<uint32_t>(
        random.OneIn(4) ? random.Below(kKeys) : (tide * kKeysPerTide + random.Below(kKeysPerTide)) % kKeys);
    LogBatch batch = EmptyBatch(first, count);
    std::vector<std::pair<uint32_t, bool>> updates;
    for (uint64_t ticket = first; ticket < first + count; ++ticket) {
      const uint32_t key = neighbours ? static_cast<uint32_t>((start + ticket - first) % kKeys)
                                      : static_cast<uint32_t>(random.Below(kKeys));
      const bool ebb = Mix64(key / kKeysPerRegion + tide * kKeys) % 2 == 0;
      const bool put = ebb ? random.OneIn(30) : !random.OneIn(10);
      if (!put) reference_.DeletionBegins(key, ticket);
      Add(put ? LogEntryKind::kPut : LogEntryKind::kDelete, kTable, KeyOf(key), put ? ValueOf(key, ticket) : "", ticket,
          &batch);
      updates.emplace_back(key, put);
    }
    ApplyAndKeep(worker, std::move(batch));
    for (size_t i = 0; i < updates.size(); ++i) reference_.WasApplied(updates[i].first, first + i, updates[i].second);
    worker.floor.store(UINT64_MAX);
  }

  void ReadOne(uint32_t key) {
    const uint64_t before = reference_.Applied(key);
    RecordBatch answer;
    Expect(store_->operations().Read(kTable, KeyOf(key), &answer));
    const RecordBatch::Iterator it(answer);
    Expect(reference_.Judge(key, before, it.Valid() ? &it.record() : nullptr));
    reads_.fetch_add(1, std::memory_order_relaxed);
  }

  // Scans the keys of [begin, end), with at most `pages` pages for each call.
  void ScanSome(uint32_t begin, uint32_t end, Direction direction, uint64_t pages) {
    std::vector<uint64_t> before;
    for (uint32_t key = begin; key < end; ++key) before.push_back(reference_.Applied(key));
    ScanCursor cursor;
    cursor.low = KeyOf(begin);
    cursor.high = KeyOf(end);
    const bool up = direction == Direction::kAscending;
    // All keys before this one, in the scan's direction, have been judged.
    uint32_t next = up ? begin : end;
    const auto judge = [&](uint32_t key, const RecordView* record) {
      Expect(reference_.Judge(key, before[key - begin], record));
    };
    while (!cursor.complete && !Failed()) {
      RecordBatch answer;
      ScanBudget budget;
      budget.bytes = 4096;
      Expect(store_->operations().Scan(kTable, direction, &cursor, &budget, pages, &answer));
      for (RecordBatch::Iterator it(answer); it.Valid(); it.Next()) {
        const auto key =
            static_cast<uint32_t>(std::strtoul(std::string(it.record().key.substr(3)).c_str(), nullptr, 10));
        ASSERT_EQ(it.record().key, KeyOf(key));
        ASSERT_TRUE(up ? key >= next && key < end : key >= begin && key < next) << key << " after " << next;
        if (up) {
          for (; next < key; ++next) judge(next, nullptr);
          judge(next++, &it.record());
        } else {
          for (--next; next > key; --next) judge(next, nullptr);
          judge(next, &it.record());
        }
        scanned_.fetch_add(1, std::memory_order_relaxed);
      }
    }
    if (up) {
      for (; next < end; ++next) judge(next, nullptr);
    } else {
      while (next > begin) judge(--next, nullptr);
    }
  }

  void PartitionAll(uint32_t parts) {
    const Result<std::vector<std::string>> bounds = store_->operations().Partition(kTable, parts);
    ASSERT_TRUE(bounds.ok()) << bounds.status().ToString();
    EXPECT_LT(bounds->size(), parts);
    EXPECT_TRUE(std::is_sorted(bounds->begin(), bounds->end(), std::less_equal<>()));
  }

  // A table that only this worker uses: it is created, filled until its root has changed, read, and dropped.
  void PassTable(Worker& worker) {
    const auto index = static_cast<uint32_t>(&worker - workers_.data());
    const TableId table(static_cast<uint32_t>(1000 + kThreads * worker.tables++ + index));
    ApplyAndKeep(worker,
                 OneEntry(LogEntryKind::kCreateTable, table, Concat("table ", table.value), DrawTickets(worker, 1)));
    const uint64_t rows = 1 + worker.random.Below(300);
    const uint64_t first = DrawTickets(worker, rows);
    LogBatch batch = EmptyBatch(first, rows);
    for (uint64_t row = 0; row < rows; ++row) {
      Add(LogEntryKind::kPut, table, KeyOf(row), ValueOf(static_cast<uint32_t>(row), first + row), first + row, &batch);
    }
    ApplyAndKeep(worker, std::move(batch));
    worker.floor.store(UINT64_MAX);
    uint64_t row = 0;
    ScanCursor cursor;
    while (!cursor.complete && !Failed()) {
      RecordBatch answer;
      ScanBudget budget;
      Expect(store_->operations().Scan(table, Direction::kAscending, &cursor, &budget, /*max_pages=*/4, &answer));
      for (RecordBatch::Iterator it(answer); it.Valid(); it.Next(), ++row) {
        ASSERT_EQ(it.record().key, KeyOf(row));
        ASSERT_EQ(it.record().value, ValueOf(static_cast<uint32_t>(row), first + row));
      }
    }
    EXPECT_EQ(row, rows);
    ApplyAndKeep(worker,
                 OneEntry(LogEntryKind::kDropTable, table, Concat("table ", table.value), DrawTickets(worker, 1)));
    worker.floor.store(UINT64_MAX);
    RecordBatch answer;
    EXPECT_EQ(store_->operations().Read(table, KeyOf(0), &answer), ErrorCode::kNotFound);
    tables_.fetch_add(1, std::memory_order_relaxed);
  }

  // --- Between phases.
  void CompareAll() {
    for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
      ScanSome(0, kKeys, direction, /*pages=*/UINT64_MAX);
    }
    uint64_t live = 0;
    for (const TableInfo& table : store_->Tables()) live += table.dropped ? 0 : 1;
    EXPECT_EQ(live, 1u);
  }

  void NoteCounters() {
    for (size_t i = 0; i < kCounters.size(); ++i) {
      const uint64_t now = CounterOf(*store_, kCounters[i]);
      seen_[i] += now - std::exchange(counted_[i], now);
    }
  }

  // Drops the batches that no later incarnation needs.
  void Forget() {
    const Position stable = store_->stable();
    for (Worker& worker : workers_) {
      std::erase_if(worker.log, [stable](const LogBatch& batch) { return batch.to <= stable; });
    }
  }

  Random random_;
  const std::unique_ptr<Storage> storage_;
  std::unique_ptr<RecordStore> store_;
  uint64_t incarnation_ = 0;
  std::atomic<uint64_t> next_{1};
  uint64_t applied_up_to_ = 0;  // used by the thread that takes checkpoints
  std::atomic<bool> redo_{false};
  Reference reference_;
  std::array<Worker, kThreads> workers_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Thread>> background_;
  std::atomic<uint64_t> reads_{0}, scanned_{0}, tables_{0}, redone_{0};
  // counted_: of this incarnation at the last reading; seen_: of all incarnations.
  std::array<uint64_t, kCounters.size()> counted_{}, seen_{};
};

TEST(StressTest, SixteenThreadsAndEverythingInTheBackground) {
  const uint64_t seed = FromEnvironment("DEUT_SEED", RealRuntime().RandomSeed());
  std::cout << "DEUT_SEED=" << seed << "\n";
  const auto stress = std::make_unique<Stress>(seed);
  const Duration length = std::chrono::seconds(FromEnvironment("DEUT_STRESS_SECONDS", 5));
  const MonotonicTime begin = RealRuntime().Now();
  for (int phase = 0; !stress->Failed(); ++phase) {
    const bool last_of_life = phase % 2 == 1;
    stress->RunPhase(last_of_life);
    if (last_of_life && !stress->Failed()) stress->NextLife();
    // Long enough that every kind of event occurred.
    const Duration passed = RealRuntime().Now() - begin;
    if ((passed >= length && phase >= 3 && stress->HasSeenEverything()) || passed > length + std::chrono::seconds(120))
      break;
  }
  stress->Print();
  EXPECT_TRUE(stress->HasSeenEverything());
}

}  // namespace
}  // namespace deut::dc

#include "dc/record_ops/record_operations.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "dc/record_ops/operations_fixture.h"
#include "gtest/gtest.h"

namespace deut::dc {
namespace {

constexpr TableId kTable{3};

TestOperations NewOperations(uint16_t chain_length = 4, uint32_t helpers = 0) {
  BwTreeOptions tree;
  tree.leaf_page_bytes = 1024;
  tree.inner_page_bytes = 512;
  tree.leaf_chain_length = chain_length;
  return TestOperations(tree, helpers);
}

// Builds batches with consecutive positions.
class Log {
 public:
  Log& Entry(LogEntryKind kind, TableId table, uint64_t timestamp, std::string_view key, std::string_view value = {}) {
    LogEntryView entry;
    entry.kind = kind;
    entry.position = Position{Lsn(lsn_ += 100), kind == LogEntryKind::kLowWater ? 0u : 1u};
    entry.timestamp = Timestamp(timestamp);
    entry.table = table;
    entry.key = key;
    entry.value = value;
    batch_.Append(entry);
    batch_.to = entry.position;
    return *this;
  }
  Log& Create(TableId table, std::string_view name) { return Entry(LogEntryKind::kCreateTable, table, 1, name); }
  Log& Drop(TableId table, std::string_view name) { return Entry(LogEntryKind::kDropTable, table, 1, name); }
  Log& Put(uint64_t timestamp, std::string_view key, std::string_view value) {
    return Entry(LogEntryKind::kPut, kTable, timestamp, key, value);
  }
  Log& Delete(uint64_t timestamp, std::string_view key) { return Entry(LogEntryKind::kDelete, kTable, timestamp, key); }
  Log& LowWater(uint64_t timestamp) { return Entry(LogEntryKind::kLowWater, TableId(), timestamp, {}); }

  LogBatch Take() {
    LogBatch taken = std::move(batch_);
    batch_ = LogBatch();
    batch_.from = batch_.to = taken.to;
    return taken;
  }

 private:
  uint64_t lsn_ = 0;
  LogBatch batch_;
};

Status Apply(RecordOperations& operations, const LogBatch& batch, Position applied = Position()) {
  DEUT_CHECK(batch.Validate().ok());
  return operations.ApplyBatch(batch, applied);
}

std::string ValueOf(RecordOperations& operations, std::string_view key) {
  RecordBatch batch;
  const Status status = operations.Read(kTable, key, &batch);
  if (!status.ok()) return status.ToString();
  return batch.empty() ? "absent" : std::string(RecordBatch::Iterator(batch).record().value);
}

std::vector<std::string> KeysOf(RecordOperations& operations, TableId table, Direction direction, ScanCursor cursor,
                                ScanBudget budget) {
  RecordBatch batch;
  EXPECT_TRUE(operations.Scan(table, direction, &cursor, &budget, UINT64_MAX, &batch).ok());
  std::vector<std::string> keys;
  for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) keys.emplace_back(it.record().key);
  return keys;
}

TEST(RecordOperationsTest, AppliesReadsAndScans) {
  auto operations = NewOperations();
  Log log;
  log.Create(kTable, "accounts");
  for (int i = 0; i < 500; ++i) log.Put(10 + i, Concat("k", 1000 + i), "v");
  log.Delete(1000, "k1007");
  ASSERT_TRUE(Apply(*operations, log.Take()).ok());
  EXPECT_EQ(ValueOf(*operations, "k1003"), "v");
  EXPECT_EQ(ValueOf(*operations, "k1007"), "absent");
  ScanBudget budget;
  budget.records = 3;
  EXPECT_EQ(KeysOf(*operations, kTable, Direction::kAscending, {"k1006", "", false}, budget),
            (std::vector<std::string>{"k1006", "k1008", "k1009"}));
  EXPECT_EQ(KeysOf(*operations, kTable, Direction::kDescending, {"", "k1009", false}, budget),
            (std::vector<std::string>{"k1008", "k1006", "k1005"}));
  EXPECT_EQ(KeysOf(*operations, kTable, Direction::kAscending, {}, ScanBudget()).size(), 499u);
  // The scan reads one page at a time if max_pages is 1.
  ScanCursor cursor;
  ScanBudget none;
  RecordBatch batch;
  ASSERT_TRUE(operations->Scan(kTable, Direction::kAscending, &cursor, &none, 1, &batch).ok());
  EXPECT_FALSE(cursor.complete);
  EXPECT_LT(batch.size(), 100u);
  EXPECT_GT(operations.trees().memory_bytes(), 500u * 20);

  std::vector<CounterValue> counters;
  operations->AppendCounters(&counters);
  std::map<std::string, uint64_t> by_name;
  for (const CounterValue& counter : counters) by_name[counter.name] = counter.value;
  EXPECT_EQ(by_name.size(), counters.size());
  EXPECT_EQ(by_name["reads"], 2u);
  EXPECT_EQ(by_name["scans"], 4u);
  EXPECT_EQ(by_name["records_returned"], 1 + 3 + 3 + 499 + batch.size());
  EXPECT_EQ(by_name["updates_applied"], 502u);
  EXPECT_EQ(operations.trees().Statistics().tables, 1u);
}

// Fewer and more reads than kMaxReadsPerGroup, of two tables and one that does not exist. Between the rounds pages get
// deltas and are split.
TEST(RecordOperationsTest, SeveralReadsAnswerAsOneByOne) {
  constexpr TableId kOther{4};
  constexpr uint64_t kKeys = 300;
  auto operations = NewOperations();
  Log log;
  ASSERT_TRUE(Apply(*operations, log.Create(kTable, "accounts").Create(kOther, "others").Take()).ok());
  Random random(11);
  uint64_t counted = 0;
  for (uint64_t round = 1; round <= 200; ++round) {
    for (int i = 0; i < 20; ++i) {
      const std::string key = Concat("key", random.Below(kKeys));
      if (random.OneIn(4)) {
        log.Delete(10 * round, key);
      } else {
        log.Entry(LogEntryKind::kPut, random.OneIn(2) ? kTable : kOther, 10 * round, key, Concat("value", round));
      }
    }
    ASSERT_TRUE(Apply(*operations, log.Take()).ok());
    std::vector<std::string> keys;
    std::vector<RecordBatch> answers(random.Below(20));
    std::vector<RecordOperations::PointRead> reads(answers.size());
    for (size_t i = 0; i < reads.size(); ++i) keys.push_back(Concat("key", random.Below(kKeys)));
    for (size_t i = 0; i < reads.size(); ++i) {
      reads[i].table = random.OneIn(9) ? TableId(99) : random.OneIn(2) ? kTable : kOther;
      reads[i].key = keys[i];
      reads[i].answer = &answers[i];
      reads[i].missing = true;
    }
    operations->TryReadSeveral(reads);
    for (const RecordOperations::PointRead& read : reads) {
      RecordBatch alone;
      const Status status = operations->Read(read.table, read.key, &alone);
      EXPECT_EQ(read.status.code(), status.code());
      EXPECT_FALSE(read.missing);
      EXPECT_EQ(read.answer->bytes(), alone.bytes()) << read.key;
      EXPECT_EQ(read.answer->size(), alone.size());
      counted += status.ok() ? 2 : 0;
    }
  }
  std::vector<CounterValue> counters;
  operations->AppendCounters(&counters);
  const auto reads = std::find_if(counters.begin(), counters.end(), [](const auto& c) { return c.name == "reads"; });
  EXPECT_EQ(reads->value, counted);
}

TEST(RecordOperationsTest, UnknownTables) {
  auto operations = NewOperations();
  EXPECT_EQ(operations->CheckTable(kTable), ErrorCode::kNotFound);
  RecordBatch batch;
  EXPECT_EQ(operations->Read(kTable, "k", &batch), ErrorCode::kNotFound);
  ScanCursor cursor;
  ScanBudget budget;
  EXPECT_EQ(operations->Scan(kTable, Direction::kAscending, &cursor, &budget, 1, &batch), ErrorCode::kNotFound);
  EXPECT_EQ(operations->Partition(kTable, 4).status(), ErrorCode::kNotFound);
  Log log;
  const Status refused = Apply(*operations, log.Put(5, "k", "v").Take());
  EXPECT_EQ(refused, ErrorCode::kCorruption);
  EXPECT_NE(refused.message().find("table 3"), std::string::npos) << refused.ToString();
  EXPECT_EQ(Apply(*operations, log.Drop(kTable, "accounts").Take()), ErrorCode::kCorruption);
}

TEST(RecordOperationsTest, T1TablesAreNeverReusedAndDroppedOnesCountAsApplied) {
  auto operations = NewOperations();
  Log log;
  log.Create(kTable, "accounts").Put(5, "k", "v").Drop(kTable, "accounts");
  const LogBatch all = log.Take();
  ASSERT_TRUE(Apply(*operations, all).ok());
  EXPECT_EQ(operations->CheckTable(kTable), ErrorCode::kNotFound);
  // Late updates, and the table's whole history once more: nothing happens, and no call fails.
  EXPECT_TRUE(Apply(*operations, log.Put(6, "k", "w").Take()).ok());
  EXPECT_TRUE(Apply(*operations, all).ok());
  EXPECT_EQ(operations->CheckTable(kTable), ErrorCode::kNotFound);
  // The name is free again, under another id.
  ASSERT_TRUE(Apply(*operations, log.Create(TableId(4), "accounts").Take()).ok());
  const std::vector<TableInfo> tables = operations.trees().List();
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].id, TableId(4));
  EXPECT_FALSE(tables[0].dropped);
  EXPECT_EQ(tables[1].id, kTable);
  EXPECT_TRUE(tables[1].dropped);
}

// T1: the list contains only as much of the dropped tables as is needed so that no id is used again, whatever their
// number.
TEST(RecordOperationsTest, T1TheListDoesNotGrowWithDroppedTables) {
  auto operations = NewOperations();
  Log log;
  for (uint32_t id = 1; id <= 40; ++id) log.Create(TableId(id), Concat("t", id));
  for (uint32_t id = 1; id <= 40; ++id) {
    if (id != 7) log.Drop(TableId(id), Concat("t", id));
  }
  ASSERT_TRUE(Apply(*operations, log.Take()).ok());
  const std::vector<TableInfo> tables = operations.trees().List();
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].id, TableId(7));
  EXPECT_EQ(tables[1].id, TableId(40));
  EXPECT_TRUE(tables[1].dropped);
  // Each dropped id is remembered for ever.
  for (uint32_t id = 1; id <= 40; ++id) EXPECT_TRUE(Apply(*operations, log.Drop(TableId(id), "t").Take()).ok()) << id;
}

// Two concurrent creations may be logged in either order: a table with an id below dropped ones may still be created.
TEST(RecordOperationsTest, T1AnIdBelowDroppedOnesIsNotTakenForDropped) {
  auto operations = NewOperations();
  Log log;
  log.Create(TableId(6), "six").Drop(TableId(6), "six").Create(TableId(4), "four").Drop(TableId(4), "four");
  ASSERT_TRUE(Apply(*operations, log.Take()).ok());
  EXPECT_EQ(Apply(*operations, log.Drop(TableId(5), "five").Take()), ErrorCode::kCorruption) << "never created";
  ASSERT_TRUE(Apply(*operations, log.Create(TableId(5), "five").Take()).ok());
  EXPECT_TRUE(operations->CheckTable(TableId(5)).ok());
}

TEST(RecordOperationsTest, T1ContradictionsAreCorruption) {
  auto operations = NewOperations();
  Log log;
  ASSERT_TRUE(Apply(*operations, log.Create(kTable, "accounts").Take()).ok());
  EXPECT_TRUE(Apply(*operations, log.Create(kTable, "accounts").Take()).ok());
  EXPECT_EQ(Apply(*operations, log.Create(kTable, "orders").Take()), ErrorCode::kCorruption);
  EXPECT_EQ(Apply(*operations, log.Create(TableId(4), "accounts").Take()), ErrorCode::kCorruption);
}

// T9 deletes k2 at LSN 200. T7 commits its update of k1 on the same page at LSN 300. Only then the log states
// low-water 10. If the page dropped T9's tombstone before the stream got there, T7 would be taken for a duplicate.
TEST(RecordOperationsTest, X1LowWaterCountsOnlyInItsPlace) {
  auto operations = NewOperations(/*chain_length=*/1);
  Log log;
  log.Create(kTable, "accounts").Delete(9, "k2").Put(7, "k1", "seven").LowWater(10);
  ASSERT_TRUE(Apply(*operations, log.Take()).ok());
  EXPECT_EQ(ValueOf(*operations, "k1"), "seven");
}

TEST(RecordOperationsTest, X1ANewStreamStartsWithoutABound) {
  auto operations = NewOperations(/*chain_length=*/1);
  Log log;
  ASSERT_TRUE(Apply(*operations, log.Create(kTable, "accounts").LowWater(10).Take()).ok());
  operations->BeginStream();
  ASSERT_TRUE(Apply(*operations, log.Delete(9, "k2").Put(7, "k1", "seven").Take()).ok());
  EXPECT_EQ(ValueOf(*operations, "k1"), "seven");
}

TEST(RecordOperationsTest, PositionsThatAreAppliedAreSkipped) {
  auto operations = NewOperations();
  Log log;
  const LogBatch first = log.Create(kTable, "accounts").Put(5, "a", "1").Take();
  ASSERT_TRUE(Apply(*operations, first).ok());
  // The applied position lies in the middle of a batch: only the entries behind it are new.
  LogBatch both = first;
  const LogBatch second = log.Put(6, "b", "2").Take();
  both.entries += second.entries;
  both.to = second.to;
  ASSERT_TRUE(Apply(*operations, both, first.to).ok());
  EXPECT_EQ(ValueOf(*operations, "b"), "2");
  std::vector<CounterValue> counters;
  operations->AppendCounters(&counters);
  for (const CounterValue& counter : counters) {
    if (counter.name == "updates_applied") EXPECT_EQ(counter.value, 3u);
    if (counter.name == "updates_duplicate") EXPECT_EQ(counter.value, 2u);
  }
}

// Whole batches are sent again, out of order, and with everything already applied: the state is that of the log.
TEST(RecordOperationsTest, DuplicatedReorderedResentBatches) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(Concat("seed ", seed));
    Random random(seed);
    auto operations = NewOperations();
    Log log;
    std::vector<LogBatch> batches = {log.Create(kTable, "accounts").Take()};
    std::map<std::string, std::string> expected;
    uint64_t now = 1;
    for (int i = 0; i < 40; ++i) {
      for (uint64_t n = random.Below(20); n > 0; --n) {
        const std::string key = Concat("k", random.Below(50));
        if (random.OneIn(3)) {
          log.Delete(++now, key);
          expected.erase(key);
        } else {
          log.Put(++now, key, Concat("v", now));
          expected[key] = Concat("v", now);
        }
      }
      if (random.OneIn(3)) log.LowWater(now + 1);
      batches.push_back(log.Take());
    }
    ASSERT_TRUE(Apply(*operations, batches[0]).ok());
    size_t done = 1;
    while (done < batches.size()) {
      ASSERT_TRUE(Apply(*operations, batches[done]).ok());
      ++done;
      // Late batches in any order. Their low-water entries were reached before.
      for (uint64_t n = random.Below(4); n > 0; --n) ASSERT_TRUE(Apply(*operations, batches[random.Below(done)]).ok());
    }
    RecordBatch all;
    ScanCursor cursor;
    ScanBudget budget;
    ASSERT_TRUE(operations->Scan(kTable, Direction::kAscending, &cursor, &budget, UINT64_MAX, &all).ok());
    std::map<std::string, std::string> found;
    for (RecordBatch::Iterator it(all); it.Valid(); it.Next()) found[std::string(it.record().key)] = it.record().value;
    ASSERT_EQ(found, expected);
  }
}

// Readers and scanners run while tables are created, filled and dropped.
TEST(RecordOperationsTest, DropsUnderReaders) {
  auto operations = NewOperations();
  std::atomic<uint32_t> newest{0};
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint64_t i = 0; i < 2; ++i) {
    threads.push_back(RealRuntime().StartThread("reader", [&, i] {
      Random random(i);
      RecordBatch batch;
      while (!stop.load()) {
        const TableId table(newest.load() - static_cast<uint32_t>(random.Below(2)));
        batch.Clear();
        const Status read = operations->Read(table, "k5", &batch);
        EXPECT_TRUE(read.ok() || read == ErrorCode::kNotFound);
        ScanCursor cursor;
        ScanBudget budget;
        const Status scanned = operations->Scan(table, Direction::kAscending, &cursor, &budget, UINT64_MAX, &batch);
        EXPECT_TRUE(scanned.ok() || scanned == ErrorCode::kNotFound);
        operations.trees().List();
        operations.trees().memory_bytes();
      }
    }));
  }
  Log log;
  for (uint32_t i = 1; i <= 60; ++i) {
    log.Create(TableId(i), Concat("table ", i));
    for (int k = 0; k < 200; ++k) log.Entry(LogEntryKind::kPut, TableId(i), 5, Concat("k", k), "value");
    ASSERT_TRUE(Apply(*operations, log.Take()).ok());
    newest.store(i);
    if (i > 1) ASSERT_TRUE(Apply(*operations, log.Drop(TableId(i - 1), Concat("table ", i - 1)).Take()).ok());
  }
  stop.store(true);
  threads.clear();
  const std::vector<TableInfo> tables = operations.trees().List();
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].id, TableId(60));
  EXPECT_EQ(tables[1].id, TableId(59));
}

// Thousands of updates of few keys between two low-waters, so that threads meet on pages and keys. The largest
// version counts, not the first arrival.
TEST(ApplyTogetherTest, TheNewestVersionOfEachKeyCounts) {
  auto operations = NewOperations(/*chain_length=*/4, /*helpers=*/3);
  Random random(20);
  Log log;
  std::map<std::string, std::string> expected;
  ASSERT_TRUE(Apply(*operations, log.Create(kTable, "t").Take()).ok());
  uint64_t timestamp = 1;
  Position applied;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 3000; ++i) {
      const std::string key = Concat("key", random.Below(i % 3 == 0 ? 8 : 400));
      if (random.Below(4) == 0) {
        log.Delete(++timestamp, key);
        expected.erase(key);
      } else {
        expected[key] = Concat("v", ++timestamp);
        log.Put(timestamp, key, expected[key]);
      }
      if (i == 2000) log.LowWater(timestamp);
    }
    const LogBatch batch = log.Take();
    ASSERT_TRUE(Apply(*operations, batch, applied).ok());
    if (round % 4 == 0) ASSERT_TRUE(Apply(*operations, batch, applied).ok());  // sent again, as after a lost answer
    applied = batch.to;
  }
  for (int i = 0; i < 400; ++i) {
    const std::string key = Concat("key", i);
    const auto found = expected.find(key);
    ASSERT_EQ(ValueOf(*operations, key), found == expected.end() ? "absent" : found->second) << key;
  }
}

// A run of updates that is longer than kMaxUpdatesPerRun, without an entry of another kind in it or behind it, and with
// one.
TEST(ApplyTogetherTest, ALongRunIsAppliedAsAWhole) {
  constexpr int kUpdates = 10'000;
  auto operations = NewOperations(/*chain_length=*/20, /*helpers=*/1);
  Log log;
  log.Create(kTable, "t");
  for (int i = 0; i < kUpdates; ++i) log.Put(10 + i, Concat("k", 100'000 + i), Concat("v", i));
  ASSERT_TRUE(Apply(*operations, log.Take()).ok());
  for (int i = 0; i < kUpdates; ++i) ASSERT_EQ(ValueOf(*operations, Concat("k", 100'000 + i)), Concat("v", i));
  for (int i = 0; i < kUpdates; ++i) log.Delete(20'000 + i, Concat("k", 100'000 + i));
  log.LowWater(40'000);
  log.Put(50'000, "k100007", "back");
  ASSERT_TRUE(Apply(*operations, log.Take()).ok());
  EXPECT_EQ(KeysOf(*operations, kTable, Direction::kAscending, {"", "", false}, ScanBudget()),
            (std::vector<std::string>{"k100007"}));
}

// A low-water takes effect when all updates before it are in the pages, whatever thread applies them.
TEST(ApplyTogetherTest, X1ALowWaterWaitsForEveryHelper) {
  auto operations = NewOperations(/*chain_length=*/4, /*helpers=*/1);
  constexpr uint64_t kUpdates = 1024, kPieces = kUpdates / 64;
  Log log;
  log.Create(kTable, "t");
  for (uint64_t i = 0; i < kUpdates; ++i) log.Put(2 + i, Concat("key", i), "v");
  const LogBatch batch = log.LowWater(2 + kUpdates).Take();
  Event held, let_go;
  std::atomic<uint64_t> pieces{0};
  std::atomic<bool> returned{false};
  std::thread::id applying;  // set before it passes a point
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "record_ops.apply.piece") return;
    ++pieces;
    if (std::this_thread::get_id() == applying) {
      held.Wait(RealRuntime(), kNoDeadline);  // a helper has a piece, too
    } else if (!held.IsSet()) {
      held.Signal(RealRuntime());
      let_go.Wait(RealRuntime(), kNoDeadline);
    }
  });
  const auto applier = RealRuntime().StartThread("apply", [&] {
    applying = std::this_thread::get_id();
    EXPECT_TRUE(Apply(*operations, batch).ok());
    returned.store(true);
  });
  while (pieces.load() < kPieces) RealRuntime().Yield();  // all pieces but the helper's are done, or nearly
  for (int i = 0; i < 200; ++i) RealRuntime().Yield();    // time enough for the others to continue
  EXPECT_FALSE(returned.load());
  EXPECT_EQ(operations.trees().consolidation_timestamp().load(), 0u);
  let_go.Signal(RealRuntime());
  applier->Join();
  testing::SetPointHandler({});
  EXPECT_EQ(operations.trees().consolidation_timestamp().load(), 2 + kUpdates);
}

// A helper meets the error: the applying thread waits in its first piece until a helper has reached the last.
TEST(ApplyTogetherTest, AnErrorOfAHelperIsTheBatchs) {
  auto operations = NewOperations(/*chain_length=*/4, /*helpers=*/1);
  Log log;
  log.Create(kTable, "t");
  constexpr uint64_t kUpdates = 2000, kPieces = (kUpdates + 63) / 64;
  for (uint64_t i = 0; i < kUpdates; ++i) {
    if (i + 1 == kUpdates) {
      log.Entry(LogEntryKind::kPut, TableId(9), 2 + i, "k", "v");
    } else {
      log.Put(2 + i, Concat("key", i), "v");
    }
  }
  std::atomic<uint64_t> pieces{0};
  const std::thread::id applying = std::this_thread::get_id();
  testing::SetPointHandler([&](std::string_view point) {
    if (point != "record_ops.apply.piece") return;
    ++pieces;
    while (std::this_thread::get_id() == applying && pieces.load() < kPieces) RealRuntime().Yield();
  });
  EXPECT_EQ(Apply(*operations, log.Take()), ErrorCode::kCorruption);
  EXPECT_EQ(pieces.load(), kPieces);
  testing::SetPointHandler({});
}

}  // namespace
}  // namespace deut::dc

// EngineFixture: a whole engine for tests: log on a disk in memory, transactions, record table, ranges, collector,
// and a DC that the test pumps. The operations of TestTransaction return short texts, so that a test reads like the
// history it plays:
//   EXPECT_EQ(t20.Scan(), "a=1 c=3");   EXPECT_EQ(t10.Put("b", "2"), "range-read-later");
// Texts:
// - "ok";
// - the reason of an abort, after which the transaction is aborted;
// - the name of another error;
// - for Get the value, or "-" if there is no record;
// - for Scan "key=value" in scan order.
// Table 1, "t", exists from the start, with one range.
// Thread-safety: each TestTransaction by one thread at a time; the fixture's other methods from any thread, except
// Stop.
#ifndef TC_RECORD_MANAGER_ENGINE_FIXTURE_H_
#define TC_RECORD_MANAGER_ENGINE_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "protocol/transaction_service.h"
#include "tc/catalogue/catalogue.h"
#include "tc/mvcc/collector.h"
#include "tc/mvcc/read_cache.h"
#include "tc/mvcc/record_table.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/pumped_dc.h"
#include "tc/record_manager/record_manager.h"
#include "tc/redo_log/redo_log.h"
#include "tc/spill/spilled_runs.h"
#include "tc/txn/active_transactions.h"

namespace deut::tc {

struct EngineFixtureOptions {
  uint32_t log2_buckets = 6;
  size_t max_deferred_entries = 64 << 10;
  uint32_t max_transactions = 256;
  uint32_t max_tables = Catalogue::kDefaultMaxTables;
  Duration collector_period = milliseconds(1);
  // S8. With this default only Fold folds.
  Duration fold_after = seconds(1000);
  size_t fold_at_least = 1;
  uint64_t version_budget_bytes = uint64_t{1} << 30;
  // A commit needs room for its records in two segments.
  size_t log_segment_bytes = size_t{1} << 20;
  bool faulty_disk = false;  // if set, `disk` is there
  RangePrecision range_precision = RangePrecision::kKeys;
  Duration conflict_wait{0};
  RangeControl range_control = RangeControl::kRanges;
  uint64_t read_cache_bytes = 0;  // S7; 0: no read cache
  bool cache_written = false;
  bool spills = false;  // S9: into files of the same storage
  size_t spill_at_least = 1;
  Runtime* engine_runtime = nullptr;  // the engine's own waits go to it instead of the real one
};

class TestTransaction;

class EngineFixture {
 public:
  static constexpr TableId kTable{1};

  explicit EngineFixture(EngineFixtureOptions options = {});
  ~EngineFixture();

  TestTransaction Begin(const TransactionOptions& options = Buffered());
  std::unique_ptr<TestTransaction> BeginPointer(const TransactionOptions& options = Buffered());
  TestTransaction BeginSnapshot();
  static TransactionOptions Buffered();
  static TransactionOptions Declaring(const std::vector<std::string>& keys);

  // Commits one transaction that puts all of them (the value "-" removes the key), then has it applied and collected.
  void Load(const std::vector<std::pair<std::string, std::string>>& puts);
  // Has the DC apply everything that it may, and everything applied collected.
  void PumpAndCollect();
  // Returns once everything is applied and collected; false: not in time. REQUIRES: no open transaction.
  bool Settle();
  // Waits until the collector has nothing left to do for finished and applied transactions.
  void Collect();
  // S8: folds everything that is committed and not applied.
  void Fold();
  // S9. REQUIRES: no other thread runs an operation.
  void SetVersionBudget(uint64_t bytes);
  // S7: drops all copies of the DC's answers.
  void ClearReadCache();
  // Cuts the table into ranges. One thread at a time.
  void SetRanges(const std::vector<std::string>& cuts, TableId table = kTable);
  // Waits until there are `count` copies of postings (P). Copies count while the ranges that were replaced exist.
  bool CopiesBecome(uint64_t count);
  // Returns the whole table as a new transaction sees it.
  std::string Contents();
  // The range of table 1 that holds the key. It stays until ranges are set.
  Range& RangeOf(std::string_view key);
  // Stops the engine. REQUIRES: no open transaction.
  void Stop();

  static Deadline Soon() { return RealRuntime().Now() + seconds(30); }

  std::unique_ptr<FaultyDisk> disk;
  std::unique_ptr<Storage> storage;
  ReclamationDomain domain;
  std::unique_ptr<RedoLog> log;
  std::unique_ptr<ActiveTransactions> active;
  std::unique_ptr<PumpedDc> dc;
  std::unique_ptr<RecordTable> records;
  std::unique_ptr<ReadCache> read_cache;
  std::unique_ptr<SpilledRuns> spilled;
  std::unique_ptr<Catalogue> catalogue;
  std::unique_ptr<Collector> collector;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<RecordManager> manager;
};

class TestTransaction {
 public:
  TestTransaction(RecordManager& manager, std::unique_ptr<Transaction> txn) : manager_(manager), txn_(std::move(txn)) {}
  ~TestTransaction();
  TestTransaction(const TestTransaction&) = delete;
  TestTransaction& operator=(const TestTransaction&) = delete;

  uint64_t timestamp() const { return txn_->timestamp().value; }
  Transaction& transaction() { return *txn_; }
  bool open() const { return txn_->state() == Transaction::State::kOpen; }

  std::string Get(std::string_view key);
  std::string Put(std::string_view key, std::string_view value);
  std::string Remove(std::string_view key);
  std::string Insert(std::string_view key, std::string_view value);
  std::string Update(std::string_view key, std::string_view value);
  // Scans all of [low, high), in as many batches as it takes.
  std::string Scan(std::string_view low = {}, std::string_view high = {}, Direction direction = Direction::kAscending);
  std::string ScanForUpdate(std::string_view low = {}, std::string_view high = {});
  // Scans one batch. Changes `scan` so that the next call continues it; *more becomes false when the scan is
  // complete.
  std::string ScanBatch(Operation* scan, bool* more);
  std::string Commit();
  void Abort();

  TableId table = EngineFixture::kTable;

 private:
  // Aborts after an error that ends a transaction.
  std::string Text(const Status& status);
  std::string ScanAll(Operation scan);

  RecordManager& manager_;
  std::unique_ptr<Transaction> txn_;
  std::string low_, high_;  // texts that the operation of ScanBatch points to
};

std::string StatusText(const Status& status);

// Calls `action` once, the first time any thread passes the point, on that thread; nested passes do nothing.
class AtPoint {
 public:
  AtPoint(std::string point, std::function<void()> action);
  ~AtPoint();
  AtPoint(const AtPoint&) = delete;
  AtPoint& operator=(const AtPoint&) = delete;
  bool reached() const { return reached_->load(); }

 private:
  std::shared_ptr<std::atomic<bool>> reached_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_ENGINE_FIXTURE_H_

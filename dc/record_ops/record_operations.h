// RecordOperations: the DC's operations on records. It applies a redo log to the tables, and reads and scans them. It
// knows tables, versions and idempotence. It knows nothing of transactions, peers or positions of a stream
// (dc/server), of pages (dc/bwtree), nor of what keeps them small and durable (dc/store).
//
// Records may exceed the memory (dc/page_cache). Read, Scan and ApplyBatch block while a page that is not in memory is
// read. A thread that must not block calls TryRead or ContinueScan. When these meet such a page, StartLoad starts to
// load it, and a continuation (LoadWaiter) calls them again.
//
// Idempotence: any entry may be applied again, late, or out of order with entries of other keys (rules X1, X2, T1).
// The only entry whose place matters is a low-water entry: everything in the log below it was applied before (rule
// X1).
// Thread-safety: all methods may be called from any thread, and are latch-free except for creating and dropping
// tables. Answers are copies.
// Ownership: owns the threads that help to apply; borrows the rest. Errors: a Status.
#ifndef DC_RECORD_OPS_RECORD_OPERATIONS_H_
#define DC_RECORD_OPS_RECORD_OPERATIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/observe/counter.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/page_cache/page_evictor.h"
#include "dc/page_cache/page_loader.h"
#include "dc/record_ops/apply_team.h"
#include "dc/record_ops/superseded_updates.h"
#include "dc/record_ops/unflushed_updates.h"
#include "dc/tables/table_trees.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "protocol/record_batch.h"

namespace deut::dc {

struct RecordOperationsOptions {
  // Size of a full leaf: a scan estimates with it how many more pages its budget has room for.
  uint32_t leaf_page_bytes = BwTreeOptions().leaf_page_bytes;
  // Number of threads that help to apply a large batch; 0: each batch is applied by its thread alone.
  uint32_t apply_helpers = 0;
};

class RecordOperations {
 public:
  // `loader` and `evictor` load the pages of `trees`, and keep them within the memory budget.
  RecordOperations(Runtime& runtime, TableTrees& trees, PageLoader& loader, PageEvictor& evictor,
                   const RecordOperationsOptions& options);
  RecordOperations(const RecordOperations&) = delete;
  RecordOperations& operator=(const RecordOperations&) = delete;

  // A new stream of batches begins: the consolidation timestamp starts at 0 (rule X1).
  void BeginStream();
  // Applies the batch's entries behind `applied`. Updates between two other entries are applied in any order, and on
  // several threads (apply_helpers). Their versions decide which of a key's updates counts (X2). All of them are at
  // or above the low-water before them (X1), so none can be taken for a duplicate of consolidated updates. Every
  // other entry is applied after all entries before it and before all entries behind it.
  // CORRUPTION: an entry contradicts the applied log (unknown table); RESOURCE_EXHAUSTED: no more pages. Some entries
  // of the batch are applied then; the batch may be repeated.
  // REQUIRES: batch.Validate() is OK. Threads may call this in any order, with two exceptions. A low-water entry
  // comes when everything below it was applied (rule X1), one at a time. The creation of a table comes before the
  // updates of that table.
  Status ApplyBatch(const LogBatch& batch, Position applied);

  // Appends the record to `answer` if there is one. NOT_FOUND: no such table.
  // REQUIRES: a key of 1 to kMaxKeyBytes bytes.
  Status Read(TableId table, std::string_view key, RecordBatch* answer);
  // The same, but does not block. *missing: the record's page is not in memory, and nothing was done.
  Status TryRead(TableId table, std::string_view key, RecordBatch* answer, bool* missing);

  struct PointRead {
    TableId table;
    std::string_view key;
    RecordBatch* answer = nullptr;
    Status status;         // output: as TryRead's
    bool missing = false;  // output: as TryRead's
  };
  // Reads several records. This takes less time than one read after the other.
  void TryReadSeveral(std::span<PointRead> reads);

  // State of a scan that takes several calls. A scan that has met pages that are not in memory also loads the pages
  // ahead of it.
  struct ScanReadAhead {
    uint32_t misses = 0;
  };
  // Appends records of the cursor's key range to `answer`, and moves the cursor behind them. It stops when the range
  // or the budget is used up, or when `max_pages` pages were read. It holds a guard over at most a few pages.
  // NOT_FOUND: no such table (any more).
  // `ahead`: state of a scan that will continue; null: this call is the whole scan.
  // `deadline`: after it, the scan stops before the next page that is not in memory, but not before it has moved.
  Status Scan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget, uint64_t max_pages,
              RecordBatch* answer, ScanReadAhead* ahead = nullptr, Deadline deadline = kNoDeadline);
  // A whole scan that does not block. Its state lies here while it waits for pages.
  struct ScanState {
    ScanCursor cursor;
    ScanBudget budget;
    uint64_t pages = 0;  // number of pages that it may still read
    ScanReadAhead ahead;
  };
  // The bounds of a scan's work in one call; then it pauses.
  struct ScanTurn {
    uint64_t pages = UINT64_MAX;
    size_t bytes = SIZE_MAX;  // of records; the last page of a turn may exceed it
  };
  enum class ScanStop : uint8_t {
    kEnd,      // the answer is complete
    kMissing,  // the next page is not in memory: the caller calls StartLoad, and then ContinueScan again
    kTurn,     // the turn is over: the caller calls ContinueScan again
  };
  // Begins or continues a scan, whose `answer` was empty at its beginning. Later calls have the same state and answer.
  Result<ScanStop> ContinueScan(TableId table, Direction direction, ScanState* scan, RecordBatch* answer,
                                const ScanTurn& turn);

  // Starts to load the page that TryRead missed, or the page that ContinueScan missed and, for a scan that goes on
  // missing, some of the next ones. Does not block. Returns as PageLoader::Start: if `true`, `waiter` is called once,
  // perhaps before this method returns.
  Result<bool> StartLoad(TableId table, std::string_view key, LoadWaiter* waiter);
  Result<bool> StartLoad(TableId table, Direction direction, ScanState* scan, const RecordBatch& answer,
                         LoadWaiter* waiter);

  // As BwTree::Partition. NOT_FOUND: no such table.
  Result<std::vector<std::string>> Partition(TableId table, uint32_t n);
  Status CheckTable(TableId table);

  // The updates that were applied but are in no checkpoint yet.
  UnflushedUpdates& unflushed() { return unflushed_; }
  // Appends the counters of reads, scans and updates (dc/README.md).
  void AppendCounters(std::vector<CounterValue>* counters) const;

 private:
  using WaitingUpdates = absl::InlinedVector<const LogEntryView*, BwTree::kMaxLeavesPerCall>;

  Status ApplyEntry(const LogEntryView& entry);
  // Scans as far as memory can answer, and counts nothing. *pages: the number of pages that it may still read;
  // decremented.
  Result<ScanStop> ScanPages(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget,
                             uint64_t* pages, const ScanTurn& turn, RecordBatch* answer);
  void TryReadGroup(std::span<PointRead> reads);
  // ApplyRun applies all updates between two entries of other kinds, with helpers. ApplyUpdates applies them on the
  // calling thread, one group after the other. `bytes`: payload of the batch so far; the memory budget is checked every
  // kBytesPerBudgetCheck bytes of it.
  Status ApplyRun(std::span<const LogEntryView> updates, std::atomic<size_t>* bytes);
  Status ApplyUpdates(std::span<const LogEntryView> updates, std::atomic<size_t>* bytes);
  // Applies at most kMaxUpdatesPerGroup updates; first those that need neither a load nor a wait.
  Status ApplyGroup(std::span<const LogEntryView> updates);
  // Applies the updates that need neither a load nor a wait, and appends the others to `waiting`. REQUIRES: they belong
  // to one table, and are at most kMaxUpdatesPerGroup.
  Status ApplyWithoutWaiting(std::span<const LogEntryView> updates, WaitingUpdates* waiting);
  // Loads the pages of these updates together, as far as they need it.
  void LoadPagesOf(std::span<const LogEntryView* const> updates);
  // The number of pages that a scan loads ahead. `misses`: the number of its earlier misses. `whole`: no later call
  // continues it.
  uint64_t PagesAhead(uint32_t misses, bool whole, const ScanBudget& budget, const RecordBatch& answer) const;
  // Starts to load the leaf that a scan needs now, and some of the leaves that it will reach next.
  void ReadAhead(TableId table, Direction direction, const ScanCursor& cursor, uint64_t pages_ahead);
  Result<bool> Update(const LogEntryView& entry);
  void ApplyLowWater(Timestamp low_water);

  Runtime& runtime_;
  TableTrees& trees_;
  PageLoader& loader_;
  PageEvictor& evictor_;
  const uint32_t leaf_page_bytes_;
  ApplyTeam team_;
  SupersededUpdates superseded_;
  UnflushedUpdates unflushed_;
  ::deut::Counter reads_;
  ::deut::Counter scans_;
  ::deut::Counter records_returned_;
  ::deut::Counter applied_;
  ::deut::Counter duplicates_;
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_RECORD_OPERATIONS_H_

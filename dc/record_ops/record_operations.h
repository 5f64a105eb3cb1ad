// RecordOperations: the DC's operations on records. It applies a redo log to its tables, and reads and scans them. It
// knows tables, versions and idempotence. It knows nothing of transactions, peers or positions of a stream
// (dc/server) and nothing of pages (dc/bwtree).
//
// Records outlive the process as of the last checkpoint (dc/checkpoint), and may exceed the memory (dc/page_cache). A
// read of a page that is not in memory blocks on the disk. A thread that must not block calls the Try methods first.
//
// Idempotence: any entry may be applied again, late, or out of order with entries of other keys (rules X1, X2, T1).
// The only entry whose place matters is a low-water entry: everything in the log below it was applied before (rule
// X1).
// Thread-safety: all methods may be called from any thread, and are latch-free except for creating and dropping
// tables. Answers are copies.
// Ownership: owns trees, mapping table and reclamation domain. Errors: a Status; a failed disk is reported to
// on_failure once.
#ifndef DC_RECORD_OPS_RECORD_OPERATIONS_H_
#define DC_RECORD_OPS_RECORD_OPERATIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/observe/counter.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/smo_gate.h"
#include "dc/checkpoint/checkpointer.h"
#include "dc/checkpoint/recovery.h"
#include "dc/cleaner/segment_cleaner.h"
#include "dc/page_cache/damaged_pages.h"
#include "dc/page_cache/load_pool.h"
#include "dc/page_cache/page_evictor.h"
#include "dc/page_cache/page_loader.h"
#include "dc/page_store/segment_store.h"
#include "dc/record_ops/apply_team.h"
#include "dc/record_ops/superseded_updates.h"
#include "dc/record_ops/unflushed_updates.h"
#include "dc/scrubber/segment_scrubber.h"
#include "dc/tables/table_reaper.h"
#include "dc/tables/table_registry.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "protocol/record_batch.h"

namespace deut::dc {

struct RecordOperationsOptions {
  BwTreeOptions tree;
  SegmentStoreOptions store;
  CleanerOptions cleaner;
  ScrubberOptions scrubber;
  // Limit of memory_bytes(); 0: no limit.
  uint64_t memory_bytes = 0;
  // Pages that may be merged are searched for at most once in this interval.
  Duration merge_interval = std::chrono::seconds(1);
  // Number of threads that help to apply a large batch; 0: each batch is applied by its thread alone.
  uint32_t apply_helpers = 0;
  // Called once, on any thread, when the content of the disk can no longer be trusted: a sync or write failed for
  // another reason than lack of space. By default the process ends.
  std::function<void(const Status&)> on_failure = [](const Status& status) { FailStop(status.ToString()); };
  // Limit of the pages of all tables together. Each takes MappingTable::kBytesPerId bytes of address space. With
  // pages of 32 KiB the default is 8 TiB of data.
  uint32_t max_pages = uint32_t{1} << 28;
};

class RecordOperations {
 public:
  // The place of the records on disk, and their owner.
  struct Location {
    Storage& storage;
    std::string directory;  // contains only pages; created if it does not exist
    DcId dc;
    DcIncarnation incarnation;
    RecoveryProgress* progress = nullptr;   // progress of Open; may be null
    CheckpointNumber oldest_required = {};  // RecoveryOptions::oldest_required
  };
  // Opens the records of the newest checkpoint in `location`; there are none without a checkpoint. CORRUPTION: there
  // are checkpoints, but none that can be proven complete; nothing is changed.
  static Result<std::unique_ptr<RecordOperations>> Open(Runtime& runtime, const Location& location,
                                                        const RecordOperationsOptions& options);
  // REQUIRES: no other thread uses the object.
  ~RecordOperations();

  // Every update up to this position was in the pages when Open returned.
  Position recovered() const { return recovered_; }
  // As RecoveredCheckpoints::oldest_kept.
  CheckpointNumber oldest_kept() const { return oldest_kept_; }
  // Takes a checkpoint. `applied` returns the position up to which everything is applied; it is read when the
  // checkpoint begins (rule X6). `record_kept`: see Checkpointer::Take. RESOURCE_EXHAUSTED: the disk has no room;
  // UNAVAILABLE: a page cannot be read. The caller may retry after both. Blocks; one call at a time.
  Status Checkpoint(const std::function<Position()>& applied, const Checkpointer::RecordKept& record_kept = nullptr);
  // Returns true if one or two checkpoints would remove more from the disk than they write, although nothing has
  // changed.
  bool CheckpointFreesSpace() const;
  // Frees the space of segments that are mostly dead, now; their files are deleted after two checkpoints. A
  // background thread does the same. RESOURCE_EXHAUSTED: there is no room to do so.
  Status Clean() { return cleaner_->Clean(); }
  // Runs one round of SegmentScrubber; for tests.
  Status Scrub() { return scrubber_->Scrub(); }
  // Every update up to this position survives a crash (S2).
  Position stable() const { return checkpointer_->stable(); }

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
  Status Scan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget, uint64_t max_pages,
              RecordBatch* answer, ScanReadAhead* ahead = nullptr);
  // The same, but does not block. *missing: the scan stopped before a page that is not in memory. Such a call is not
  // counted, and its records are of use only to a caller that starts over.
  Status TryScan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget, uint64_t max_pages,
                 RecordBatch* answer, bool* missing);

  // As BwTree::Partition. NOT_FOUND: no such table.
  Result<std::vector<std::string>> Partition(TableId table, uint32_t n);
  Status CheckTable(TableId table);
  // Returns the live tables by id, then the dropped table with the highest id.
  std::vector<TableInfo> Tables();

  // Bytes of the disk that are reserved for freeing space when the disk is full.
  uint64_t reserve_bytes() const { return store_->reserve_bytes(); }
  // Bytes of the disk that are needed to write the updates applied since the last checkpoint (X7). Up to `plenty` the
  // result may be a coarse bound.
  uint64_t unflushed_bytes(uint64_t plenty);
  // Returns true if the memory exceeds its budget, and no more pages can be evicted.
  bool memory_exhausted() const { return evictor_->exhausted(); }
  // The bytes that count against the budget: pages, retired memory that is not freed yet, and tables that grow with
  // the number of pages and segments. Buffers do not count, because they do not grow.
  uint64_t memory_bytes();
  // The counters' names are explained in dc/README.md.
  void AppendCounters(std::vector<CounterValue>* counters);

 private:
  RecordOperations(Runtime& runtime, const RecordOperationsOptions& options, RecoveredPages recovered);

  // The objects that all trees use.
  BwTreeEnvironment trees();
  Status Start(const Location& location, const RecoveredCheckpoints& found);
  Status ApplyEntry(const LogEntryView& entry);
  // TryScan without counting. *pages: the number of pages that it may still read; decremented.
  Status ScanPages(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget, uint64_t* pages,
                   RecordBatch* answer, bool* missing);
  void TryReadGroup(std::span<PointRead> reads);
  // ApplyRun applies all updates between two entries of other kinds, with helpers. ApplyUpdates applies them on the
  // calling thread, in their order. `bytes`: payload of the batch so far; the memory budget is checked every
  // kBytesPerBudgetCheck bytes of it.
  Status ApplyRun(std::span<const LogEntryView> updates, std::atomic<size_t>* bytes);
  Status ApplyUpdates(std::span<const LogEntryView> updates, std::atomic<size_t>* bytes);
  // Applies at most kMaxUpdatesPerGroup updates.
  Status ApplyGroup(std::span<const LogEntryView> updates);
  // Applies the updates from the first one up to the first that needs a load or a wait; returns how many. REQUIRES:
  // they belong to one table, and are at most kMaxUpdatesPerGroup.
  Result<size_t> ApplyWithoutWaiting(std::span<const LogEntryView> updates);
  // Bytes of all trees. If there are many trees, the figure is up to one millisecond old.
  uint64_t TreeBytes();
  // Loads the leaf that a scan needs now, and some of the leaves that it will reach next.
  Status LoadForScan(TableId table, Direction direction, const ScanCursor& cursor, size_t pages_ahead);
  Result<bool> Update(const LogEntryView& entry);
  void ApplyLowWater(Timestamp low_water);
  // Calls on_failure, unless the status is OK, a lack of space, or a page that cannot be read.
  void ReportIfFatal(const Status& status);

  // Figures of the recovery in Open.
  struct RecoveryFigures {
    uint64_t checkpoint = 0;
    uint64_t segments = 0;
    uint64_t inner_pages = 0;
    uint64_t milliseconds = 0;
  };

  Runtime& runtime_;
  const std::function<void(const Status&)> on_failure_;
  std::atomic<bool> failed_{false};
  const uint64_t memory_budget_;
  const Duration merge_interval_;
  const CleanerOptions cleaning_;
  const ScrubberOptions scrubbing_;
  const uint64_t segment_bytes_;
  const uint32_t leaf_page_bytes_;
  const uint32_t inner_page_bytes_;
  const Position recovered_;
  const CheckpointNumber oldest_kept_;
  RecoveryFigures recovery_;
  SmoGate gate_;
  std::atomic<uint64_t> consolidation_timestamp_{0};
  // Order of destruction. The domain ends after the live trees. It frees dropped trees and page ids, and its garbage
  // marks parts dead. So it ends before the reaper, the mapping table and the store.
  const std::unique_ptr<SegmentStore> store_;
  const std::unique_ptr<MappingTable> pages_;
  TableReaper reaper_;  // declared before the domain, which hands dropped tables to it until the domain ends
  ReclamationDomain domain_;
  TableRegistry tables_;
  DamagedPages damaged_;
  PageLoader loader_;
  LoadPool loads_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<PageEvictor> evictor_;
  std::unique_ptr<SegmentCleaner> cleaner_;
  std::unique_ptr<SegmentScrubber> scrubber_;

  std::atomic<uint64_t> tree_bytes_{0};
  std::atomic<int64_t> tree_bytes_until_{0};

  ApplyTeam team_;

  ::deut::Counter reads_;
  ::deut::Counter scans_;
  ::deut::Counter records_returned_;
  SupersededUpdates superseded_;
  UnflushedUpdates unflushed_;
  ::deut::Counter applied_;
  ::deut::Counter duplicates_;
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_RECORD_OPERATIONS_H_

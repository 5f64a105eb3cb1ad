// RecordOperations: what the DC does with records: applies a redo log to its tables, reads and scans them. Knows tables, versions and
// idempotence; knows nothing of transactions, peers or positions of a stream (dc/server) and nothing of pages (dc/bwtree).
//
// Records outlive the process as of the last checkpoint (dc/checkpoint), and may be more than memory holds (dc/page_cache): reading what is not
// in memory blocks on the disk. Who must not block calls the Try forms first.
//
// Idempotence: any entry may be applied again, late, or out of order with entries of other keys (rules X1, X2, T1). The one thing that
// has to stand in its place is a low-water entry: everything below it that is in the log was applied before (rule X1).
// Thread-safety: all methods from any thread, latch-free but for creating and dropping tables. Answers are copies.
// Ownership: owns trees, mapping table and reclamation domain.
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
#include "dc/bwtree/structure_gate.h"
#include "dc/checkpoint/checkpointer.h"
#include "dc/checkpoint/recovery.h"
#include "dc/cleaner/segment_cleaner.h"
#include "dc/page_cache/damaged_pages.h"
#include "dc/page_cache/load_pool.h"
#include "dc/page_cache/page_keeper.h"
#include "dc/page_cache/page_loader.h"
#include "dc/page_store/segment_store.h"
#include "dc/record_ops/apply_team.h"
#include "dc/record_ops/superseded_updates.h"
#include "dc/record_ops/table_reaper.h"
#include "dc/record_ops/table_registry.h"
#include "dc/record_ops/unflushed_updates.h"
#include "dc/scrubber/segment_scrubber.h"
#include "protocol/data_component.h"
#include "protocol/log_batch.h"
#include "protocol/record_batch.h"

namespace deut::dc {

struct RecordOperationsOptions {
  BwTreeOptions tree;
  SegmentStoreOptions store;
  CleanerOptions cleaner;
  ScrubberOptions scrubber;
  // What memory_bytes() may come to; 0: no limit.
  uint64_t memory_bytes = 0;
  // So often, at the most, it is looked for pages that may be merged.
  Duration merge_interval = std::chrono::seconds(1);
  // Threads that help whoever applies a large batch; 0: each batch is applied by its thread alone.
  uint32_t apply_helpers = 0;
  // Called once, on any thread, when the disk has failed so that nothing can be relied on any more (a failed sync or write, other than for want
  // of space). By default the process ends.
  std::function<void(const Status&)> on_failure = [](const Status& status) { FailStop(status.ToString()); };
  // Pages of all tables together; each takes MappingTable::kBytesPerId bytes of address space. With pages of 32 KiB the default is 8 TiB of data.
  uint32_t max_pages = uint32_t{1} << 28;
};

class RecordOperations {
 public:
  // Where the records live on disk, and whose they are.
  struct Home {
    Storage& storage;
    std::string directory;  // for pages alone; made if it is not there
    DcId dc;
    DcIncarnation incarnation;
    RecoveryProgress* progress = nullptr;  // of Open; may be null
    CheckpointNumber at_least = {};        // RecoveryOptions::at_least
  };
  // What the newest checkpoint in `home` holds, or nothing. CORRUPTION: there are checkpoints, but none that can be proven complete;
  // nothing is changed.
  static Result<std::unique_ptr<RecordOperations>> Open(Runtime& runtime, const Home& home,
                                                        const RecordOperationsOptions& options);
  // REQUIRES: no other thread uses it.
  ~RecordOperations();

  // Everything up to here was in the pages when Open returned.
  Position recovered() const { return recovered_; }
  // CheckpointsFound::oldest_kept.
  CheckpointNumber oldest_kept() const { return oldest_kept_; }
  // Takes a checkpoint. `applied`: the position up to which everything is applied, read when the checkpoint begins (rule X6).
  // RESOURCE_EXHAUSTED: no room on the disk; UNAVAILABLE: a page cannot be read. It may be tried again. Blocks; one at a time.
  // `record_kept`: see Checkpointer::Take.
  Status Checkpoint(const std::function<Position()>& applied, const Checkpointer::RecordKept& record_kept = nullptr);
  // A checkpoint, or two, would remove more from the disk than they write, though nothing has changed.
  bool CheckpointGivesSpace() const;
  // Gives back space of segments that are mostly dead, now; their files go after two checkpoints. It is done in the background, too.
  // RESOURCE_EXHAUSTED: no room to do so.
  Status Clean() { return cleaner_->Clean(); }
  // A round of SegmentScrubber; for tests.
  Status Scrub() { return scrubber_->Scrub(); }
  // Everything up to here survives (S2).
  Position stable() const { return checkpointer_->stable(); }

  // A new stream of batches begins: the consolidation timestamp starts at 0 (rule X1).
  void BeginStream();
  // Applies the batch's entries behind `applied`. Updates between two other entries come in any order, and on several threads (apply_helpers): which
  // of a key's updates counts is decided by their versions (X2), and all of them are at or above the low-water before them (X1), so that none
  // can be taken for a duplicate of what was consolidated. Every other entry waits for all before it, and what follows waits for it.
  // CORRUPTION: an entry contradicts what was applied (unknown table); RESOURCE_EXHAUSTED: no more pages. Of the batch some entries are
  // applied then; it may be repeated.
  // REQUIRES: batch.Validate() is OK. From several threads in any order, but for this: a low-water entry comes when everything below it was
  // applied (rule X1), one at a time; the creation of a table before what is for that table.
  Status ApplyBatch(const LogBatch& batch, Position applied);

  // Appends the record to `answer` if there is one. NOT_FOUND: no such table.
  // REQUIRES: a key of 1 to kMaxKeyBytes bytes.
  Status Read(TableId table, std::string_view key, RecordBatch* answer);
  // The same, but does not block: *missing says that the record's page is not in memory; nothing was done then.
  Status TryRead(TableId table, std::string_view key, RecordBatch* answer, bool* missing);

  struct PointRead {
    TableId table;
    std::string_view key;
    RecordBatch* answer = nullptr;
    Status status;         // set, as TryRead's
    bool missing = false;  // set
  };
  // The same for several, which takes less time than one after the other.
  void TryReadSeveral(std::span<PointRead> reads);

  // What is known of a scan of several calls: whoever has met pages that are not in memory has those behind them brought in, too.
  struct ScanAhead {
    uint32_t misses = 0;
  };
  // Appends records of the cursor's stretch to `answer`, until the stretch or the budget is used up or `max_pages` pages were
  // looked at, and moves the cursor behind them. A guard is held over some pages at the most. NOT_FOUND: no such table (any more).
  // `ahead`: of a scan that will go on; null: this call is all of it.
  Status Scan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget, uint64_t max_pages,
              RecordBatch* answer, ScanAhead* ahead = nullptr);
  // The same, but does not block: *missing says that it stopped before a page that is not in memory; then it is not counted, and what it has found
  // is of no use but to who begins again.
  Status TryScan(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget, uint64_t max_pages,
                 RecordBatch* answer, bool* missing);

  // NOT_FOUND: no such table.
  Result<std::vector<std::string>> Partition(TableId table, uint32_t n);
  Status CheckTable(TableId table);
  // Live ones by id, then, of those that were dropped, the one with the highest id.
  std::vector<TableInfo> Tables();

  // Of the disk, for giving space back when it is full.
  uint64_t reserve_bytes() const { return store_->reserve_bytes(); }
  // Of the disk, for writing what was applied since the last checkpoint (X7). Up to `plenty` a coarse bound will do.
  uint64_t unflushed_bytes(uint64_t plenty);
  // Memory is beyond its budget, and nothing more can be swapped out.
  bool memory_exhausted() const { return keeper_->exhausted(); }
  // What counts against the budget: pages, what waits to be freed, and what grows with the number of pages and segments. Not: buffers, which
  // do not grow.
  uint64_t memory_bytes();
  // Names: dc/README.md.
  void AppendCounters(std::vector<CounterValue>* counters);

 private:
  RecordOperations(Runtime& runtime, const RecordOperationsOptions& options, RecoveredPages recovered);

  // What trees stand on.
  BwTreeEnvironment trees();
  Status Start(const Home& home, const CheckpointsFound& found);
  Status ApplyEntry(const LogEntryView& entry);
  // TryScan, not counted.
  // *pages: that it may still look at; counted down.
  Status ScanPages(TableId table, Direction direction, ScanCursor* cursor, ScanBudget* budget, uint64_t* pages,
                   RecordBatch* answer, bool* missing);
  void TryReadAtOnce(std::span<PointRead> reads);
  // All that stand between two entries of other kinds, by whoever has time; the rest, on the calling thread and in their order.
  // `bytes`: of the batch so far, as it is looked at the memory budget now and then.
  Status ApplyRun(std::span<const LogEntryView> updates, std::atomic<size_t>* bytes);
  Status ApplyUpdates(std::span<const LogEntryView> updates, std::atomic<size_t>* bytes);
  // Few enough for one place each.
  Status ApplyGroup(std::span<const LogEntryView> updates);
  // As many of them, from the first on, as come into pages at once. REQUIRES: they are of one table, as many as have places at once.
  Result<size_t> ApplyAtOnce(std::span<const LogEntryView> updates);
  // Of all trees; of many of them, as it was a millisecond ago at most.
  uint64_t TreeBytes();
  // Brings in the leaf that a scan needs now and some of those that it will come to.
  Status LoadForScan(TableId table, Direction direction, const ScanCursor& cursor, size_t pages_ahead);
  Result<bool> Update(const LogEntryView& entry);
  void ApplyLowWater(Timestamp low_water);
  // Tells on_failure, unless the error is none, want of space, or a page that cannot be read.
  void Judge(const Status& status);

  // Of the start.
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
  StructureGate gate_;
  std::atomic<uint64_t> consolidation_timestamp_{0};
  // The domain ends before what dropped trees, which it frees, look at, before the table whose ids it gives back, and before the store that its
  // garbage speaks to; after the live trees.
  const std::unique_ptr<SegmentStore> store_;
  const std::unique_ptr<MappingTable> pages_;
  TableReaper reaper_;  // before the domain, which hands dropped tables to it to its end
  ReclamationDomain domain_;
  TableRegistry tables_;
  DamagedPages damaged_;
  PageLoader loader_;
  LoadPool loads_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<PageKeeper> keeper_;
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

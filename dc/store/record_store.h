// RecordStore: the records of a data component as a whole, from the start to the end of an incarnation. It recovers
// them, takes checkpoints of them, keeps them within the memory budget, cleans and verifies their files, and counts.
// operations() reads and changes them.
//
// Records outlive the process as of the last checkpoint (dc/checkpoint), and may exceed the memory (dc/page_cache).
// Space on disk follows the live bytes (dc/cleaner); damage is searched for in the background (dc/scrubber).
// Thread-safety: all methods may be called from any thread.
// Ownership: owns the trees, the page store, and all background threads; borrows runtime and storage. Errors: a
// Status; a failed disk is reported to on_failure once.
#ifndef DC_STORE_RECORD_STORE_H_
#define DC_STORE_RECORD_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/process_budget.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_memory.h"
#include "dc/checkpoint/checkpoint_lineages.h"
#include "dc/checkpoint/checkpointer.h"
#include "dc/checkpoint/recovery.h"
#include "dc/cleaner/segment_cleaner.h"
#include "dc/page_cache/damaged_pages.h"
#include "dc/page_cache/hot_pages.h"
#include "dc/page_cache/page_evictor.h"
#include "dc/page_cache/page_loader.h"
#include "dc/page_store/segment_store.h"
#include "dc/record_ops/record_operations.h"
#include "dc/scrubber/segment_scrubber.h"
#include "dc/tables/table_trees.h"
#include "protocol/data_component.h"

namespace deut::dc {

struct RecordStoreOptions {
  BwTreeOptions tree;
  SegmentStoreOptions store;
  CleanerOptions cleaner;
  ScrubberOptions scrubber;
  CheckpointLineagesOptions lineages;
  // Limit of memory_bytes(); 0: no limit. Without a value the process's budget sets it; without that there is none.
  std::optional<uint64_t> memory_bytes;
  // The budget of the process that the pages take part in; may be null. It outlives the store.
  ProcessBudget* process_budget = nullptr;
  // Pages that may be merged are searched for at most once in this interval.
  Duration merge_interval = std::chrono::seconds(1);
  // As RecordOperationsOptions::apply_helpers.
  uint32_t apply_helpers = 0;
  // How pages are read into memory.
  PageLoaderOptions loader;
  // The pages in memory are recorded with each checkpoint, and fetched after the next start (page_cache/hot_pages.h).
  bool fetch_hot_pages = false;
  // Called once, on any thread, when the content of the disk can no longer be trusted: a sync or write failed for
  // another reason than lack of space. By default the process ends.
  std::function<void(const Status&)> on_failure = [](const Status& status) { FailStop(status.ToString()); };
  // Limit of the pages of all tables together. Each takes MappingTable::kBytesPerId bytes of address space. With
  // pages of 32 KiB the default is 8 TiB of data.
  uint32_t max_pages = uint32_t{1} << 28;
};

class RecordStore {
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
  static Result<std::unique_ptr<RecordStore>> Open(Runtime& runtime, const Location& location,
                                                   const RecordStoreOptions& options);
  // REQUIRES: no other thread uses the object.
  ~RecordStore();

  // Reads and changes the records.
  RecordOperations& operations() { return *operations_; }
  // Returns the live tables by id, then the dropped table with the highest id.
  std::vector<TableInfo> Tables() { return trees_.List(); }

  // --- Checkpoints.
  // Every update up to this position was in the pages when Open returned.
  Position recovered() const { return found_.position; }
  // As RecoveredCheckpoints::oldest_kept.
  CheckpointNumber oldest_kept() const { return found_.oldest_kept; }
  // Takes a checkpoint. `applied` returns the position up to which everything is applied; it is read when the
  // checkpoint begins (rule X6). `record_kept`: see Checkpointer::Take. RESOURCE_EXHAUSTED: the disk has no room;
  // UNAVAILABLE: a page cannot be read. The caller may retry after both. Blocks; one call at a time.
  Status Checkpoint(const std::function<Position()>& applied, const Checkpointer::RecordKept& record_kept = nullptr);
  // Returns true if one or two checkpoints would remove more from the disk than they write, although nothing has
  // changed.
  bool CheckpointFreesSpace() const;
  // Every update up to this position survives a crash (S2).
  Position stable() const { return checkpointer_->stable(); }

  // --- Files.
  // Frees the space of segments that are mostly dead, now; their files are deleted after two checkpoints. A
  // background thread does the same. RESOURCE_EXHAUSTED: there is no room to do so.
  Status Clean() { return cleaner_->Clean(); }
  // Runs one round of SegmentScrubber; for tests.
  Status Scrub() { return scrubber_->Scrub(); }
  // Bytes of the disk that are reserved for freeing space when the disk is full.
  uint64_t reserve_bytes() const { return trees_.segments().reserve_bytes(); }
  // Bytes of the disk that are needed to write the updates applied since the last checkpoint (X7). Up to `plenty` the
  // result may be a coarse bound.
  uint64_t unflushed_bytes(uint64_t plenty);

  // --- Memory.
  // Returns true if the memory exceeds its budget, and no more pages can be evicted.
  bool memory_exhausted() const { return evictor_->exhausted(); }
  // The bytes that count against the budget: pages, retired memory that is not freed yet, tables that grow with the
  // number of pages and segments, and more than tolerable room in the slabs of pages (page_cache/memory_budget.h).
  // Buffers do not count, because they do not grow.
  uint64_t memory_bytes() { return evictor_->used_bytes(); }

  // The counters' names are explained in dc/README.md.
  void AppendCounters(std::vector<CounterValue>* counters);

 private:
  RecordStore(Runtime& runtime, const RecordStoreOptions& options, RecoveredPages recovered);

  Status Start(const Location& location);
  // The limit of the options, or of the process's budget.
  MemoryBudget PageBudget();
  // Those of memory_bytes() that this object counts itself.
  uint64_t accounted_bytes() { return trees_.memory_bytes() + checkpointer_->capture_bytes(); }
  // Calls on_failure, unless the status is OK, a lack of space, or a page that cannot be read.
  void ReportIfFatal(const Status& status);

  // Declared before all that has pages: when they are freed, no slab stays for the sake of cached nodes.
  struct LastCacheFlush {
    ~LastCacheFlush() { PageMemory::FlushCaches(); }
  };
  // Figures of the recovery in Open.
  struct RecoveryFigures {
    uint64_t checkpoint = 0;
    uint64_t segments = 0;
    uint64_t inner_pages = 0;
    uint64_t milliseconds = 0;
  };

  Runtime& runtime_;
  const RecordStoreOptions options_;
  std::atomic<bool> failed_{false};
  const RecoveredCheckpoints found_;
  RecoveryFigures recovery_;
  LastCacheFlush last_cache_flush_;
  TableTrees trees_;
  DamagedPages damaged_;
  // Each of these uses those before it. The checkpointer also waits for the evictor, and the loader asks it for memory.
  std::unique_ptr<PageLoader> loader_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<PageEvictor> evictor_;
  std::unique_ptr<SegmentCleaner> cleaner_;
  std::unique_ptr<SegmentScrubber> scrubber_;
  std::unique_ptr<HotPages> hot_pages_;  // null: the options say so
  std::unique_ptr<RecordOperations> operations_;
  std::optional<ProcessBudget::Registration> registration_;
};

}  // namespace deut::dc

#endif  // DC_STORE_RECORD_STORE_H_

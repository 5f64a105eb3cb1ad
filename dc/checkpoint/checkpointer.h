// Checkpointer: takes checkpoints of the pages while all other work continues. [LLAMA, PVLDB 6(10), 2013, section
// 4.4; rules X6, S2]
//
// Steps of checkpoint k, on the thread that calls Take:
//   1           P = the applied position (X6: read before anything is written)
//   2 pass      the marks of dirty pages are taken (mapping_table.h). When all guards held then have ended, every dirty
//               page of these is written, level by level from the leaves, from right to left. Then the inner pages that
//               have changed meanwhile, with the pages that they name and that were split
//     capture   the parts of each page that has changed since the last checkpoint of this lineage, and of a range of
//               pages (checkpoint_lineages.h)
//   3 gate      from here to 6 pages are not split, and tables are neither created nor dropped (no thread waits for a
//               split). After a grace period no page is half split. A thread that stops inside its guard only delays
//               the checkpoint
//   4           the marks are taken once more. Inner pages that have changed since 2 are written, after those of their
//               children whose bounds have changed, and roots that have no image yet
//   5 capture   records the parts of each page that has changed since the capture of 2, and the tables. Every page's
//               image has the bounds that its
//               parent's image states, and names the page that follows it on its level as its right sibling. The reasons: no
//               page is half split or half merged (3), and a page that has changed its bounds or sibling is written
//               before its parent (4). Recovery refuses all else (recovery.h)
//   6           the gate is opened
//   7 durable   segments are synced; the checkpoint is written, synced, read back, verified, renamed
//   8           files are removed that neither this checkpoint nor the previous one needs, and dead segments; ids that were freed before 1
//               may be used again
// Why every image in the capture contains all updates up to P:
// - A page with such an update that its image lacks is marked when 2 begins. It was marked before the update was put
//   on it, and so before P was read; and a mark stays until the page was visited.
// - The parent of such a page names it when the pass begins: the thread that split it off has posted its term inside a
//   guard, for which 2 has waited.
// - The pass writes each page that it visits with all its updates at that moment.
// - If the page is split before the pass visits it, the right half has no image, or one that was written since the
//   split. A page without an image is written before the page that names it.
// - If the page is merged away before the pass visits it, its updates are in its left neighbour, whose bounds have
//   changed. Their parent has changed, too, so step 4 writes the neighbour before the parent.
// - Later images only contain more (X1, X2: idempotent).
// Cost. The pass reads the terms of all inner pages, and looks up a bit for each leaf, without a look at the leaf (some
// tenths of a second for a terabyte). All else follows the number of pages that have changed.
// Memory. A page that only got updates since it was evicted, and whose image has no room for another part, has to be
// loaded before it can be written. Such pages are loaded together, at most kMaxLoadedPerBatch before these are written,
// and as transient ones: nobody has read them, so they leave memory first.
// Full disk. If step 2 finds no room but there are dead segments, the checkpoint is taken all the same, to remove
// these (8). It then has the position of the previous checkpoint, for which any later images are valid. It needs room
// for the pages of step 4, which a reserve covers (space_use.h), and for its file. Pages that step 2 has written stay
// written: the next try continues from there.
// Crash. Before the rename in step 7 the previous checkpoint is the newest; after it, this one is.
// The stable position is P of the oldest checkpoint that is kept, so falling back one generation loses nothing (S2).
// Errors. RESOURCE_EXHAUSTED: no space. UNAVAILABLE: a page that must be loaded cannot be read. In both cases the
// checkpoint is given up, or its position does not advance, and the caller retries later. Any other disk error is
// fatal: the daemon must end.
// Thread-safety: all methods from any thread. Ownership: owns the set of checkpoint files and its flusher; borrows
// the rest.
#ifndef DC_CHECKPOINT_CHECKPOINTER_H_
#define DC_CHECKPOINT_CHECKPOINTER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_bits.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/checkpoint/checkpoint_lineages.h"
#include "dc/page_cache/page_loader.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/page_store/segment_store.h"
#include "dc/tables/table_registry.h"

namespace deut::dc {

struct CheckpointEnvironment {
  Runtime& runtime;
  Storage& storage;
  std::string directory;
  DcId dc;
  DcIncarnation incarnation;
  BwTreeEnvironment trees;
  SmoGate& gate;
  TableRegistry& tables;
  SegmentStore& store;
  PageLoader& loader;
  // Waits until pages may be loaded (PageEvictor::WaitForMemory). Called before each batch of loads. REQUIRES: no
  // guard.
  std::function<void()> wait_for_memory;
  CheckpointLineagesOptions lineages = {};
};

// The checkpoints with which this incarnation began.
struct RecoveredCheckpoints {
  CheckpointNumber opened;
  Position position;  // position of `opened`
  // The position that the checkpoint before `opened` also contains, if it exists: a later start may have to fall back
  // to it.
  Position stable;
  // The oldest checkpoint to which a later start may fall back (RecoveryOptions::oldest_required).
  CheckpointNumber oldest_kept = {};
  RecoveredLineages lineages = {};
};

class Checkpointer {
 public:
  static Result<std::unique_ptr<Checkpointer>> Create(const CheckpointEnvironment& environment,
                                                      const RecoveredCheckpoints& found);

  // Number of pages that are loaded before they are written.
  static constexpr size_t kMaxLoadedPerBatch = 16;

  // Makes durable that a checkpoint of this number, or a later one, was completed (RecoveryOptions::oldest_required).
  using RecordKept = std::function<Status(CheckpointNumber oldest_kept)>;
  // Takes a checkpoint now. `applied` returns the position up to which every update is in the trees. `record_kept` is
  // called once the checkpoint is complete, before its positions are reported; if it fails, the stable position does
  // not change. It may be null. One thread at a time; other callers wait.
  Status Take(const std::function<Position()>& applied, const RecordKept& record_kept = nullptr);

  // Damage was found in files of checkpoints. The next two checkpoints need no older file, so that a start can open
  // both, and the damaged files are removed. Else the damaged lineage would go on for dozens of checkpoints, of which
  // none could be opened.
  void ReplaceFiles() { replace_files_.store(true, std::memory_order_relaxed); }

  // The position that survives every crash, even if the newest checkpoint cannot be read (S2).
  Position stable() const;
  uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  // Memory of the running checkpoint's capture, and of the bits for dirty pages and changed images.
  uint64_t capture_bytes() const { return capture_bytes_.load(std::memory_order_relaxed); }

 private:
  class Pass;
  struct Capture;

  Checkpointer(const CheckpointEnvironment& environment, const RecoveredCheckpoints& found,
               std::unique_ptr<CheckpointSet> set, std::unique_ptr<PageFlusher> flusher);

  // Moves the marks of dirty pages to dirty_.
  void TakeMarks() DEUT_REQUIRES(mutex_);
  // The first half of step 2, and the second.
  Status TakeDirtyPages() DEUT_REQUIRES(mutex_);
  Status WriteDirtyPages() DEUT_REQUIRES(mutex_);
  Status WritePages(TableId table) DEUT_REQUIRES(mutex_);
  // Writes the inner pages whose marks were taken, and the root.
  Status WriteStructure(TableId table) DEUT_REQUIRES(mutex_);
  Status WriteLevel(TableId table, uint8_t level) DEUT_REQUIRES(mutex_);
  // Loads some of the leaves with these upper bounds. UNAVAILABLE: one cannot be read.
  Status LoadSome(TableId table, std::span<const std::string> upper_bounds);
  // Waits for the guards held now. RESOURCE_EXHAUSTED: they did not end within kMaxGracePeriod, the longest time
  // without splits.
  Status WaitForGuards();
  // Steps 3 to 6.
  Status CaptureStructure(Capture* capture) DEUT_REQUIRES(mutex_);
  void CaptureTables(Capture* capture);
  void CountCapture() DEUT_REQUIRES(mutex_) {
    capture_bytes_.store(lineages_.memory_bytes() + dirty_.memory_bytes(), std::memory_order_relaxed);
  }
  Status WriteFile(const Capture& capture) DEUT_REQUIRES(mutex_);

  const CheckpointEnvironment environment_;
  Mutex mutex_;
  const std::unique_ptr<CheckpointSet> set_ DEUT_GUARDED_BY(mutex_);
  const std::unique_ptr<PageFlusher> flusher_ DEUT_GUARDED_BY(mutex_);
  CheckpointLineages lineages_ DEUT_GUARDED_BY(mutex_);
  // Pages whose marks were taken, and that may not have been visited since.
  PageBits dirty_ DEUT_GUARDED_BY(mutex_);
  Position newest_ DEUT_GUARDED_BY(mutex_);
  mutable Mutex stable_mutex_;
  Position stable_ DEUT_GUARDED_BY(stable_mutex_);
  std::atomic<bool> replace_files_{false};
  std::atomic<uint64_t> taken_{0};
  std::atomic<uint64_t> capture_bytes_{0};
};

}  // namespace deut::dc

#endif  // DC_CHECKPOINT_CHECKPOINTER_H_

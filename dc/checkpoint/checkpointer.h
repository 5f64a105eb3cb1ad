// Checkpointer: takes checkpoints of the pages while everything goes on. [LLAMA, PVLDB 6(10), 2013, section 4.4; rules X6, S2]
//
// Steps of checkpoint k, on a thread of its own:
//   1 P = the applied position (X6: read before anything is written)
//   2 pass      every page that is dirty is written, level by level from the leaves, from the right to the left
//   3 gate      pages are not split, tables neither created nor dropped from here to 6 (nobody waits for the former); after a grace
//               period none is half split. A thread that stops inside its guard only puts the checkpoint off
//   4           inner pages that have changed since 2 are written, after those of their children whose bounds have changed
//   5 snapshot  which parts each page consists of; the tables. Every leaf's image has the bounds that its parent's image gives it
//   6           the gate is opened
//   7 durable   segments are synced, the checkpoint is written, synced, read back, verified, renamed
//   8           the checkpoint before the previous one is removed, dead segments too; ids freed before 1 may be used again
// Why every image in the snapshot holds all updates up to P: when the pass came to a page, that page was written with all that it had; what
//   was split off it and has no image was written before it, because its image names it; what was split off, has an image, and is not named by
//   its parent yet the pass visits too (BwTree::VisitPages). Later images only hold more (X1, X2: idempotent).
// Full disk: when 2 finds no room, but segments are dead, the checkpoint is taken all the same, to be rid of them (8): with the position of the
//   one before it, for which any later images do. It needs room for what 4 writes, for which a reserve is kept (space_use.h), and for its file.
//   What 2 has written stays written: the next try goes on from there.
// Crash: before the rename in 7 the previous checkpoint is the newest; after it this one.
// The stable position is P of the oldest checkpoint that is kept, so that falling back one generation loses nothing (S2).
// Errors: want of space (RESOURCE_EXHAUSTED), or a page that has to be loaded and cannot be read (UNAVAILABLE): the checkpoint is given up, or its
//   position does not advance, and it is tried again later. Anything else of the disk is fatal: the daemon must end.
// Thread-safety: all methods from any thread. Ownership: of its thread; borrows the rest.
#ifndef DC_CHECKPOINT_CHECKPOINTER_H_
#define DC_CHECKPOINT_CHECKPOINTER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/page_flusher.h"
#include "dc/page_cache/page_loader.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/page_store/segment_store.h"
#include "dc/record_ops/table_registry.h"

namespace deut::dc {

struct CheckpointEnvironment {
  Runtime& runtime;
  Storage& storage;
  std::string directory;
  DcId dc;
  DcIncarnation incarnation;
  BwTreeEnvironment trees;
  StructureGate& gate;
  TableRegistry& tables;
  SegmentStore& store;
  PageLoader& loader;
  // Waits until a page may be brought in (PageKeeper::WaitForRoom). REQUIRES: no guard.
  std::function<void()> wait_for_room;
};

// What checkpoints this life began with.
struct CheckpointsFound {
  CheckpointNumber opened;
  Position position;  // of that one
  // What the one before it holds, too, if it is there: a later start may have to fall back to it.
  Position stable;
  // The oldest that a later start may fall back to (RecoveryOptions::at_least).
  CheckpointNumber oldest_kept = {};
};

class Checkpointer {
 public:
  static Result<std::unique_ptr<Checkpointer>> Create(const CheckpointEnvironment& environment,
                                                      const CheckpointsFound& found);

  // Makes durable that of this number, or a later one, a checkpoint was completed (RecoveryOptions::at_least).
  using RecordKept = std::function<Status(CheckpointNumber oldest_kept)>;
  // Takes one now. `applied`: asks for the position up to which everything is in the trees. `record_kept`: called once it is completed, before
  // its positions are told; if that fails the stable position stays what it was. May be null. One thread at a time; the others wait.
  Status Take(const std::function<Position()>& applied, const RecordKept& record_kept = nullptr);

  // Survives whatever happens, also if the newest checkpoint cannot be read (S2).
  Position stable() const;
  uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  // Of the one that is being taken: what it has taken down of pages.
  uint64_t snapshot_bytes() const { return snapshot_bytes_.load(std::memory_order_relaxed); }

 private:
  class Pass;
  struct Snapshot;

  Checkpointer(const CheckpointEnvironment& environment, const CheckpointsFound& found,
               std::unique_ptr<CheckpointSet> set, std::unique_ptr<PageFlusher> flusher);

  Status WritePages(TableId table) DEUT_REQUIRES(mutex_);
  Status WriteStructure(TableId table) DEUT_REQUIRES(mutex_);
  Status WriteLevel(TableId table, uint8_t level) DEUT_REQUIRES(mutex_);
  // RESOURCE_EXHAUSTED: not within the time for which pages may go without splits.
  Status WaitForGuards();
  void TakeSnapshot(Snapshot* snapshot);
  Status WriteFile(const Snapshot& snapshot) DEUT_REQUIRES(mutex_);

  const CheckpointEnvironment environment_;
  Mutex mutex_;
  const std::unique_ptr<CheckpointSet> set_ DEUT_GUARDED_BY(mutex_);
  const std::unique_ptr<PageFlusher> flusher_ DEUT_GUARDED_BY(mutex_);
  Position newest_ DEUT_GUARDED_BY(mutex_);
  mutable Mutex stable_mutex_;
  Position stable_ DEUT_GUARDED_BY(stable_mutex_);
  std::atomic<uint64_t> taken_{0};
  std::atomic<uint64_t> snapshot_bytes_{0};
};

}  // namespace deut::dc

#endif  // DC_CHECKPOINT_CHECKPOINTER_H_

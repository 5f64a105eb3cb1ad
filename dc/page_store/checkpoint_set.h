// CheckpointSet: the checkpoint files of a data directory. It keeps the newest completed one and the one before it.
// (Rule S2: a stable position may be reported only if the DC still has it after falling back one generation.)
//
// States of a checkpoint: being written (NAME.tmp), completed (NAME, read back and verified), removed.
// - A file is removed only after a newer one is completed and durable under its name. The previously newest one is
//   kept, too. So are the ancestors of both (checkpoint_lineage.h), which need not be checkpoints that could be opened:
//   segments that only they name may be gone.
// - A checkpoint newer than the one that was opened could not be read; it was *passed over*. It stays until the next
//   one is completed, because it may be readable after all. Then its name is removed, durably, before anything that
//   it names may be removed. Otherwise a later start would take it for the one to fall back to.
// - A file is removed only if its first block was understood: it is whole and of this version, or it is unfinished
//   (.tmp) and torn. A damaged file stays, or gets the suffix `.damaged` where its name must go. An undamaged block
//   of another version, DC or checkpoint makes Open refuse.
// Crash: once the first checkpoint was completed, at least one completed checkpoint exists at every moment, and all
// kept files are complete.
// Thread-safety: one thread at a time. Ownership: borrows the storage. Errors: see checkpoint_file.h.
#ifndef DC_PAGE_STORE_CHECKPOINT_SET_H_
#define DC_PAGE_STORE_CHECKPOINT_SET_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_lineage.h"
#include "dc/page_store/checkpoint_number.h"

namespace deut::dc {

// Returns the numbers of the checkpoints in a directory, newest first. Only reading a file tells whether it is valid.
Result<std::vector<CheckpointNumber>> FindCheckpoints(Storage& storage, const std::string& directory);

class CheckpointSet {
 public:
  // `opened`: the checkpoint that this incarnation was opened from, 0 if there was none. It is kept until two newer
  // ones are completed, like its `ancestors`. Open makes its name durable (before this, none of its positions may be
  // reported as stable), and changes nothing else.
  // VERSION_MISMATCH if any checkpoint file there is of another version. CORRUPTION if one belongs to another DC or
  // has another checkpoint's name: it is whole, and would otherwise be removed as one that cannot be read.
  static Result<std::unique_ptr<CheckpointSet>> Open(Storage& storage, std::string directory, DcId dc,
                                                     CheckpointNumber opened, const CheckpointLineage& ancestors = {});

  // The number for the next one: above those of all files of checkpoints here, also unfinished ones.
  CheckpointNumber next() const { return next_; }
  // 0: none.
  CheckpointNumber newest() const { return newest_; }
  // The oldest checkpoint that the next start may read; for SegmentStore::RemoveDeadSegments.
  CheckpointNumber oldest_kept() const { return previous_.value != 0 ? previous_ : newest_; }

  // Finishes `writer` (whose head has the number next()), and then removes all files but this one, the previously
  // newest one, and the ancestors of both. OK: the checkpoint is completed. Old files that could not be removed are
  // removed the next time.
  // `file`, unless it is null: the file as later ones name it. It is set once the checkpoint is completed, even if the
  // names of files that were passed over cannot be removed durably then. In that case the result is an error, and
  // nothing else may be removed: IO_ERROR, or RESOURCE_EXHAUSTED (the next checkpoint tries again).
  Status Complete(std::unique_ptr<CheckpointWriter> writer, CheckpointAncestor* file = nullptr);

 private:
  CheckpointSet(Storage& storage, std::string directory);
  void RemoveOld();
  bool IsKept(CheckpointNumber number) const;
  Status RemovePassedOver();

  Storage& storage_;
  const std::string directory_;
  CheckpointNumber next_;
  CheckpointNumber newest_;
  CheckpointNumber previous_;
  CheckpointLineage newest_ancestors_;
  CheckpointLineage previous_ancestors_;
  std::vector<std::string> passed_over_;      // newer than the checkpoint that was opened
  std::set<std::string> unrecognized_names_;  // names of files that are never removed
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_SET_H_

// CheckpointSet: the checkpoint files of a data directory and which of them are kept: the newest completed one and the one before it
// (rule S2: a stable position may be reported only if falling back one generation still has it).
//
// States of a checkpoint: being written (NAME.tmp), completed (NAME, read back and verified), removed. A file is removed only after a newer one is
//   completed and durable under its name, and the one that was the newest until then is still there.
// A checkpoint that is newer than the one that a life began with could not be read. It stays until the next one is completed, because it may be
//   readable after all; then its name goes, durably, before anything that it names may go: else it would be taken for the one to fall back to.
// A file is removed only if its first block was understood: it is whole and of this version, or it is unfinished (.tmp) and torn.
//   A damaged one stays, or gets the suffix `.damaged` where its name must go. An undamaged block of another version, DC or checkpoint makes Open
//   refuse.
// Crash: at every moment one completed checkpoint at least is there, once the first was; and all the files kept are complete.
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
#include "dc/page_store/checkpoint_number.h"

namespace deut::dc {

// Numbers of the checkpoints in a directory, newest first; whether they are right, reading tells.
Result<std::vector<CheckpointNumber>> FindCheckpoints(Storage& storage, const std::string& directory);

class CheckpointSet {
 public:
  // `opened`: the checkpoint that this life began with, 0 if there was none; it is kept until two newer ones are completed. Makes its name
  // durable (before this, nothing of it may be said to be stable), and changes nothing else. VERSION_MISMATCH if any checkpoint file there is of
  // another version; CORRUPTION if one is another DC's, or has another one's name: it is whole, and would be removed as one that cannot be read.
  static Result<std::unique_ptr<CheckpointSet>> Open(Storage& storage, std::string directory, DcId dc,
                                                     CheckpointNumber opened);

  // The number for the next one; above all that are or were being written here.
  CheckpointNumber next() const { return next_; }
  // 0: none.
  CheckpointNumber newest() const { return newest_; }
  // The oldest that may be read at the next start; for SegmentStore::RemoveDead.
  CheckpointNumber oldest_kept() const { return previous_.value != 0 ? previous_ : newest_; }

  // Finishes `writer` (whose head has the number next()), and then removes all files but this one and the one that was newest. OK says that the
  // checkpoint is completed; files that could not be removed are removed the next time. Not so those that were passed over: if their names cannot be
  // made to go, nothing may be removed (IO_ERROR).
  Status Complete(std::unique_ptr<CheckpointWriter> writer);

 private:
  CheckpointSet(Storage& storage, std::string directory);
  void RemoveOld();
  Status RemovePassedOver();

  Storage& storage_;
  const std::string directory_;
  CheckpointNumber next_;
  CheckpointNumber newest_;
  CheckpointNumber previous_;
  std::vector<std::string> passed_over_;  // newer than what this life began with
  std::set<std::string> not_understood_;  // names of files that are never removed
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_CHECKPOINT_SET_H_

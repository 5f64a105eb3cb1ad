// LogFolder: the redo log's directory at a start. It holds the lock, and makes the files ready for this start's first
// block.
//
// Steps of Prepare. Each may be repeated after a step that found no space.
//   1 write the blocks again that no later block calls durable (D2; RewriteUnprovenBlocks)
//   2 remove the files behind the chain, the newest first, so that a crash leaves no gap in the numbers. Damaged ones
//     that are not empty are renamed, without the zeros at their end (V)
//   3 create this start's first segment, on a full disk in the space of the reserve (X7)
// Before Prepare no file is changed. Prepare keeps the lock file, which is removed with a lock that was only looked at.
// Thread-safety: one thread. Ownership: owns the lock; the storage outlives it.
// Errors: RESOURCE_EXHAUSTED: there is no space for the first segment, and Prepare may be called again. CORRUPTION and
// IO_ERROR name file and offset.
#ifndef TC_REDO_LOG_LOG_FOLDER_H_
#define TC_REDO_LOG_LOG_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "tc/log_format/log_record.h"
#include "tc/redo_log/recovery.h"
#include "tc/redo_log/segment_set.h"

namespace deut::tc {

class LogFolder {
 public:
  // `lock`: the lock of `directory`. `chain`: the result of recovery there; its list of segments is not used.
  LogFolder(Storage& storage, std::string directory, std::unique_ptr<FileLock> lock, const RecoveredChain& chain);

  // `segments` creates the first segment. REQUIRES: no other thread uses `segments` yet.
  Status Prepare(SegmentSet& segments);

  // There was no log.
  bool empty() const { return empty_; }
  // The end of the log of earlier starts.
  const Cut& cut() const { return cut_; }

 private:
  Storage& storage_;
  const std::string directory_;
  const std::unique_ptr<FileLock> lock_;
  const bool empty_;
  const Cut cut_;
  const std::vector<UnprovenBlock> unproven_;
  const std::vector<uint64_t> stale_;
  const std::vector<DamagedSegment> damaged_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_FOLDER_H_

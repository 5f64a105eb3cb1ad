#include "tc/redo_log/log_folder.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/testing/test_points.h"
#include "tc/log_format/block_format.h"

namespace deut::tc {
namespace {

// Truncates a file to its first `bytes`, so that the rest becomes free disk space.
Status GiveBack(Storage& storage, const std::string& path, uint64_t bytes) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage.Open(path, OpenOptions{.writable = true}));
  DEUT_RETURN_IF_ERROR(file->Truncate(bytes));
  return file->Sync();
}

// Renames a file whose content cannot be determined, because the name of its segment is needed. Before that, cuts off
// the zeros behind its first `bytes`: a loss of power during a start tears the header of the new segment, and on a full
// disk the next start needs that file's space.
Status KeepDamaged(Storage& storage, const std::string& path, uint64_t bytes) {
  if (DEUT_STEP("X7.give_back_zeros")) DEUT_RETURN_IF_ERROR(GiveBack(storage, path, bytes));
  for (int copy = 1;; ++copy) {
    const std::string kept = copy == 1 ? Concat(path, kDamagedSuffix) : Concat(path, kDamagedSuffix, ".", copy);
    DEUT_ASSIGN_OR_RETURN(const bool taken, storage.Exists(kept));
    if (taken) continue;
    LogWarning(
        path,
        ": it lies behind the end of the redo log, its first block is damaged, and it is not empty; it is kept as ",
        kept);
    return storage.Rename(path, kept);
  }
}

// Removes the files behind the chain, the newest first, so that a crash leaves no gap in the numbers. Files that are
// `damaged` are renamed instead.
Status RemoveStale(Storage& storage, const std::string& directory, const std::vector<uint64_t>& stale,
                   const std::vector<DamagedSegment>& damaged) {
  for (auto number = stale.rbegin(); number != stale.rend(); ++number) {
    const std::string path = Concat(directory, "/", SegmentName(*number));
    DEUT_ASSIGN_OR_RETURN(const bool exists, storage.Exists(path));
    if (!exists) continue;
    const auto kept = std::ranges::find(damaged, *number, &DamagedSegment::number);
    const bool keep = kept != damaged.end() && DEUT_STEP("V.keep_damaged_segments");
    DEUT_RETURN_IF_ERROR(keep ? KeepDamaged(storage, path, kept->bytes) : storage.Remove(path));
    DEUT_RETURN_IF_ERROR(storage.SyncDirectory(directory));
  }
  return Status::Ok();
}

// Creates this start's first segment. A full disk may have ended the process before, and must not prevent this start,
// because only a TC that runs can free segments. On a full disk the segment therefore takes the space of the reserve.
Status CreateFirstSegment(SegmentSet& segments, Storage& storage, const std::string& directory, bool new_log,
                          const Cut& cut) {
  DEUT_CHECK(segments.spare_count() == 0);
  Status created = segments.CreateSpare();
  if (created != ErrorCode::kResourceExhausted || new_log) return created;
  if (DEUT_STEP("X7.start_in_reserve")) {
    // The space behind the chain in its last segment is never used again. On a full disk, that space was the reserve.
    DEUT_RETURN_IF_ERROR(GiveBack(storage, Concat(directory, "/", SegmentName(cut.segment)), cut.offset));
  }
  if (segments.CreateShortSpare().ok()) return Status::Ok();
  return DEUT_ERROR(kResourceExhausted, created.message(),
                    "; the transaction component starts when there is space for a segment of its log");
}

}  // namespace

LogFolder::LogFolder(Storage& storage, std::string directory, std::unique_ptr<FileLock> lock,
                     const RecoveredChain& chain)
    : storage_(storage),
      directory_(std::move(directory)),
      lock_(std::move(lock)),
      empty_(chain.empty),
      cut_(chain.end),
      unproven_(chain.unproven),
      stale_(chain.stale),
      damaged_(chain.damaged) {}

Status LogFolder::Prepare(SegmentSet& segments) {
  DEUT_CHECK(std::ranges::is_sorted(stale_));
  // No file of the chain is removed, however much of it the redo start still needs.
  DEUT_CHECK(stale_.empty() || cut_.segment < stale_.front());
  lock_->RemoveWhenReleased(false);  // from here on the folder is this log's
  DEUT_RETURN_IF_ERROR(RewriteUnprovenBlocks(storage_, directory_, unproven_));
  DEUT_RETURN_IF_ERROR(RemoveStale(storage_, directory_, stale_, damaged_));
  return CreateFirstSegment(segments, storage_, directory_, empty_, cut_);
}

}  // namespace deut::tc

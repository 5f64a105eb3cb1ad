#include "dc/scrubber/checkpoint_scrub.h"

#include <algorithm>
#include <vector>

#include "common/testing/test_points.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_set.h"

namespace deut::dc {
namespace {

// A start opens the newest checkpoint or the one before it.
constexpr size_t kGenerations = 2;

// The checkpoints that a start would try, the newest first. None, if the folder cannot be listed.
std::vector<CheckpointNumber> CheckpointsOfAStart(const CheckpointFolder& folder) {
  Result<std::vector<CheckpointNumber>> found = FindCheckpoints(*folder.storage, folder.directory);
  if (!found.ok()) return {};
  found->resize(std::min(found->size(), kGenerations));
  return *std::move(found);
}

}  // namespace

Status ScrubCheckpoints(const CheckpointFolder& folder, absl::FunctionRef<Status(uint64_t bytes)> pace,
                        absl::FunctionRef<void(CheckpointNumber number, const Status& damage)> damaged) {
  if (folder.storage == nullptr) return Status::Ok();
  for (const CheckpointNumber number : CheckpointsOfAStart(folder)) {
    Status ended;
    CheckpointReadOptions options;
    options.on_read = [&](const std::string& path, uint64_t bytes) -> Status {
      if (ended = pace(bytes); !ended.ok()) return ended;
      // A file that was removed meanwhile takes room on the disk until this thread closes it.
      DEUT_ASSIGN_OR_RETURN(const bool exists, folder.storage->Exists(path));
      return exists ? Status::Ok() : DEUT_ERROR(kNotFound, path, ": was removed");
    };
    DEUT_POINT("scrub.before_checkpoint");
    const Status read = ReadCheckpoint(*folder.storage, folder.directory, number, folder.dc, nullptr, options).status();
    if (!ended.ok()) return ended;
    // A shortage of file descriptors or memory says nothing about the disk.
    if (read.ok() || read == ErrorCode::kResourceExhausted) continue;
    // The files of a checkpoint are removed only when two newer ones are there, so an older one may have lost some.
    const std::vector<CheckpointNumber> now = CheckpointsOfAStart(folder);
    if (std::ranges::find(now, number) != now.end()) damaged(number, read);
  }
  return Status::Ok();
}

}  // namespace deut::dc

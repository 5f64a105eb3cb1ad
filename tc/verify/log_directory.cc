#include "tc/verify/log_directory.h"

#include <algorithm>
#include <utility>

#include "common/base/concat.h"
#include "common/io/folder_owner.h"
#include "tc/log_format/block_format.h"

namespace deut::tc {
namespace {

constexpr std::string_view kLockName = "LOCK";
// Default folder of spilled runs; emptied at each start.
constexpr std::string_view kSpillName = "spill";
// Folder in which an embedded store keeps its transaction component's directory.
constexpr std::string_view kEmbeddedName = "tc";

}  // namespace

Result<LogDirectory> LogDirectory::Open(Storage& storage, const std::string& directory) {
  LogDirectory opened;
  DEUT_ASSIGN_OR_RETURN(std::vector<std::string> names, storage.List(directory));
  const bool lockable = std::ranges::find(names, kLockName) != names.end();
  if (lockable) {
    auto lock = storage.Lock(Concat(directory, "/", kLockName));
    if (lock.status() == ErrorCode::kUnavailable) {
      return DEUT_ERROR(kUnavailable, lock.status().message(), "; stop the transaction component first");
    }
    DEUT_RETURN_IF_ERROR(lock.status());
    opened.lock = std::move(*lock);
    // Listed again: under the lock the directory does not change any more.
    DEUT_ASSIGN_OR_RETURN(names, storage.List(directory));
  }
  for (const std::string& name : names) {
    uint64_t number = 0;
    if (ParseSegmentName(name, &number)) {
      opened.segments.push_back(number);
    } else if (name != kLockName && name != kSpillName && !IsFolderOwnerName(name)) {
      opened.foreign_paths.push_back(Concat(directory, "/", name));
    }
  }
  std::ranges::sort(opened.segments);
  if (!lockable && opened.segments.empty()) {
    const bool embedded = std::ranges::find(names, kEmbeddedName) != names.end();
    return DEUT_ERROR(kInvalidArgument, directory, ": there is neither \"", kLockName,
                      "\" nor a segment of a redo log: this is not the directory of a transaction component",
                      embedded ? Concat("; that of an embedded store is ", directory, "/", kEmbeddedName) : "");
  }
  return opened;
}

}  // namespace deut::tc

// The files of a component's folder by kind, and the changes of one file. A file may be missing, cut short,
// overwritten, of another version, or from another copy or another cluster.
// Thread-safety: pure functions. REQUIRES for all functions that change files: the component does not run.
#ifndef INTEGRATION_STALE_STALE_FILES_H_
#define INTEGRATION_STALE_STALE_FILES_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "integration/stale/stale_world.h"

namespace deut::stale {

enum class FileKind {
  kOwner,
  // Kinds of the DC's files.
  kState,
  kNewestCheckpoint,
  kOldestCheckpoint,
  kFirstBaseSegment,
  kLastBaseSegment,
  kFirstDeltaSegment,
  kLastDeltaSegment,
  // Kinds of the TC's files.
  kOldestLog,
  kMiddleLog,
  kNewestLog,
  kSpareLog,
};

enum class FileChange {
  kMissing,
  kTruncated,     // its second half is gone
  kZeroed,        // its first block is zeros
  kOtherVersion,  // whole, but of a version that this program does not know
  kOlder,         // the file of the same kind from an older copy of the folder
  kForeign,       // the file of the same kind of another cluster
};

std::vector<FileKind> FileKindsOf(Component component);
const char* NameOf(FileKind kind);
const char* NameOf(FileChange change);

// Returns nothing if the folder has no such file.
std::optional<std::filesystem::path> FindFile(const std::string& folder, FileKind kind);

// `source` is the folder from which an older or foreign file comes. Returns false if there is no such file, here or
// in `source`; then nothing was changed.
bool ChangeFile(const std::string& folder, FileKind kind, FileChange change, const std::string& source);

}  // namespace deut::stale

#endif  // INTEGRATION_STALE_STALE_FILES_H_

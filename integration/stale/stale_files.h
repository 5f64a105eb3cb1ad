// The files of a component's folder by what they are, and what can happen to one of them: it is missing, cut short, overwritten, of another
// version, or comes from another copy or another cluster.
// Thread-safety: functions. REQUIRES of all that change: the component does not run.
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
  // Of the DC.
  kState,
  kNewestCheckpoint,
  kOldestCheckpoint,
  kFirstBaseSegment,
  kLastBaseSegment,
  kFirstDeltaSegment,
  kLastDeltaSegment,
  // Of the TC.
  kOldestLog,
  kMiddleLog,
  kNewestLog,
  kSpareLog,
};

enum class FileChange {
  kMissing,
  kTruncated,     // its second half is gone
  kZeroed,        // its first block is zeros
  kOtherVersion,  // whole, and of a version that this program does not know
  kOlder,         // the file of the same kind from an older copy of the folder
  kForeign,       // the file of the same kind of another cluster
};

std::vector<FileKind> FileKindsOf(Component component);
const char* NameOf(FileKind kind);
const char* NameOf(FileChange change);

// Nothing if the folder has no such file.
std::optional<std::filesystem::path> FindFile(const std::string& folder, FileKind kind);

// `source`: the folder from which an older or foreign file comes. False: there is no such file, here or there, so nothing was changed.
bool ChangeFile(const std::string& folder, FileKind kind, FileChange change, const std::string& source);

}  // namespace deut::stale

#endif  // INTEGRATION_STALE_STALE_FILES_H_

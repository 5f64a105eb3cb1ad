// LogDirectory: a transaction component's log directory, held by its lock and read as it lies on disk. It changes
// nothing, except that the lock file gets the number of this process, as with every holder. Where there is no lock
// file (a copy), none is made.
// Thread-safety: one thread. Ownership: holds the lock until it ends.
// Errors of Open: UNAVAILABLE: another process uses the directory. NOT_FOUND, INVALID_ARGUMENT: it is no log
// directory. Other errors come from the storage.
#ifndef TC_VERIFY_LOG_DIRECTORY_H_
#define TC_VERIFY_LOG_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/storage.h"

namespace deut::tc {

struct LogDirectory {
  static Result<LogDirectory> Open(Storage& storage, const std::string& directory);

  std::unique_ptr<FileLock> lock;          // null: there is no lock file
  std::vector<uint64_t> segments;          // numbers of the segments' files, ascending
  std::vector<std::string> foreign_paths;  // paths of entries that no program of this store makes
};

}  // namespace deut::tc

#endif  // TC_VERIFY_LOG_DIRECTORY_H_

// DataDirectory: a data component's directory, held by its lock and looked at as it lies on disk. Changes nothing, but that the lock file
// gets the number of this process, as from everybody who holds it.
// Thread-safety: one thread. Ownership: borrows the storage; holds the lock until it ends.
// Errors of Open: UNAVAILABLE: somebody uses it; NOT_FOUND, INVALID_ARGUMENT: it is no such directory; what the storage answers.
#ifndef DC_VERIFY_DATA_DIRECTORY_H_
#define DC_VERIFY_DATA_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/checkpoint_number.h"
#include "dc/page_store/segment_format.h"
#include "dc/server/state_file.h"

namespace deut::dc {

// A file of segments as its name says.
struct SegmentFile {
  SegmentKind kind = SegmentKind::kBase;
  uint64_t number = 0;
  std::string path;
};

class DataDirectory {
 public:
  static Result<std::unique_ptr<DataDirectory>> Open(Storage& storage, const std::string& directory);

  Storage& storage() const { return storage_; }
  // Where segments and checkpoints are.
  const std::string& pages() const { return pages_; }
  // Whose it is: as dc_state says, or, if that cannot be read, as the first header of a segment says that can.
  std::optional<DcId> dc() const { return dc_; }
  const Result<DcState>& state() const { return state_; }
  // All that are there, the newest first. More than two: left of a crash.
  const std::vector<CheckpointNumber>& checkpoints() const { return checkpoints_; }
  // By number.
  const std::vector<SegmentFile>& segments() const { return segments_; }
  // Other files, by path: half-written ones that a crash left, and what nobody here has made.
  const std::vector<std::string>& left_over() const { return left_over_; }
  const std::vector<std::string>& strange() const { return strange_; }

 private:
  DataDirectory(Storage& storage, const std::string& directory);
  Status Look(const std::string& directory);
  Status LookAtPages();
  void FindOwner();

  Storage& storage_;
  const std::string pages_;
  std::unique_ptr<FileLock> lock_;
  Result<DcState> state_;
  std::optional<DcId> dc_;
  std::vector<CheckpointNumber> checkpoints_;
  std::vector<SegmentFile> segments_;
  std::vector<std::string> left_over_;
  std::vector<std::string> strange_;
};

}  // namespace deut::dc

#endif  // DC_VERIFY_DATA_DIRECTORY_H_

// DataDirectory: a data component's directory, held by its lock and read as it lies on disk. It changes nothing,
// except that the lock file gets the number of this process, as from every holder.
// Thread-safety: one thread. Ownership: borrows the storage; holds the lock until it ends. Errors of Open.
// UNAVAILABLE: another process uses the directory. NOT_FOUND, INVALID_ARGUMENT: it is no such directory. Otherwise
// the storage's error.
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

// A segment file, as its name describes it.
struct SegmentFile {
  SegmentKind kind = SegmentKind::kBase;
  uint64_t number = 0;
  std::string path;
};

class DataDirectory {
 public:
  static Result<std::unique_ptr<DataDirectory>> Open(Storage& storage, const std::string& directory);

  Storage& storage() const { return storage_; }
  // The directory of segments and checkpoints.
  const std::string& pages() const { return pages_; }
  // The owner: as dc_state states, or, if that cannot be read, as the first readable segment header states.
  std::optional<DcId> dc() const { return dc_; }
  const Result<DcState>& state() const { return state_; }
  // All existing checkpoints, the newest first. If there are more than two, a crash has left the others.
  const std::vector<CheckpointNumber>& checkpoints() const { return checkpoints_; }
  // The segments, by number.
  const std::vector<SegmentFile>& segments() const { return segments_; }
  // Whether there is a list of the pages in memory (page_store/hot_page_list.h).
  bool has_hot_pages() const { return has_hot_pages_; }
  // Other files, by path. left_over(): incomplete files that a crash left. foreign_files(): files that no data
  // component has written.
  const std::vector<std::string>& left_over() const { return left_over_; }
  const std::vector<std::string>& foreign_files() const { return foreign_files_; }

 private:
  DataDirectory(Storage& storage, const std::string& directory);
  Status Scan(const std::string& directory);
  Status ScanPages();
  void FindOwner();

  Storage& storage_;
  const std::string pages_;
  std::unique_ptr<FileLock> lock_;
  Result<DcState> state_;
  std::optional<DcId> dc_;
  std::vector<CheckpointNumber> checkpoints_;
  std::vector<SegmentFile> segments_;
  bool has_hot_pages_ = false;
  std::vector<std::string> left_over_;
  std::vector<std::string> foreign_files_;
};

}  // namespace deut::dc

#endif  // DC_VERIFY_DATA_DIRECTORY_H_

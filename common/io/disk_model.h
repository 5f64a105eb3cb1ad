// DiskModel: the names of a disk in memory, both as they are now and as they are durable. Its files are ModelFiles.
// A create, rename or remove is pending until a sync of its directory. At a crash each pending change happened or did
// not. A change that builds on a name whose change did not happen did not happen either, so a rename never loses a
// file.
// Directories are durable at once. Paths are compared as text after normalization: "a//b/" is "a/b". "" and "/"
// always exist.
// Thread-safety: none (its owner's mutex).
#ifndef COMMON_IO_DISK_MODEL_H_
#define COMMON_IO_DISK_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/model_file.h"
#include "common/runtime/random.h"

namespace deut {

class DiskModel {
 public:
  explicit DiskModel(bool models_crashes) : models_crashes_(models_crashes) {}
  // The copy has files of its own.
  DiskModel(const DiskModel& other);
  DiskModel& operator=(const DiskModel&) = delete;

  Result<std::shared_ptr<ModelFile>> Open(const std::string& path, bool create, bool exclusive);
  Status CreateDirectory(const std::string& path);
  Result<std::vector<std::string>> List(const std::string& path) const;
  Status Rename(const std::string& from, const std::string& to);
  Status Remove(const std::string& path);
  // `covers` = false only checks the path and makes nothing durable.
  Status SyncDirectory(const std::string& path, bool covers);
  bool Exists(const std::string& path) const;

  // Free space. Every file takes its size, rounded up to blocks; a removed file gives its space back at once.
  uint64_t free_bytes() const { return free_bytes_; }
  void set_free_bytes(uint64_t bytes) { free_bytes_ = bytes; }
  // Free space plus the space that files take.
  uint64_t capacity_bytes() const { return free_bytes_ + SpaceOfFiles(); }
  // Takes the space that is needed to grow `file` to `bytes`. False if there is not enough.
  bool AllocateSpace(const ModelFile& file, uint64_t bytes);
  void FreeSpace(uint64_t old_size, uint64_t new_size);

  void Crash(Random* random);

 private:
  // A null pointer stands for a directory.
  using Names = std::map<std::string, std::shared_ptr<ModelFile>>;
  struct Change {
    enum class Kind : uint8_t { kCreate, kRename, kRemove } kind;
    std::string path, target;
    std::shared_ptr<ModelFile> file;
  };

  Status CheckParent(const std::string& path) const;
  static void Apply(const Change& change, Names* names);
  uint64_t SpaceOfFiles() const;

  const bool models_crashes_;
  Names now_, durable_;
  std::vector<Change> pending_;
  uint64_t free_bytes_ = uint64_t{1} << 50;
};

}  // namespace deut

#endif  // COMMON_IO_DISK_MODEL_H_

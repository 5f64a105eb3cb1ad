// SpilledRun: an immutable sorted run of versions in a file (rule S9), found by an index of its blocks that stays in memory: of each block its offset
// and a shortest key between it and the one before.
//
// The file is this life's alone: it is not synced, and goes with the run.
// Errors: as those of the file, and CORRUPTION; messages name file and offset.
// Thread-safety: a run by any thread; a builder by one. Ownership: shared by lists and readers; who drops the last reference removes the file.
#ifndef TC_SPILL_SPILLED_RUN_H_
#define TC_SPILL_SPILLED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "tc/spill/spill_block.h"
#include "tc/spill/spilled_version.h"

namespace deut::tc {

class SpilledRun {
 public:
  // What a run holds of commits.
  struct Span {
    Timestamp first;  // the timestamp of its first commit
    Position last;    // all its updates are at or before it
  };

  class Builder {
   public:
    // About so many bytes go into a block.
    static constexpr size_t kBlockBytes = size_t{16} << 10;

    // Makes the file. ALREADY_EXISTS if there is one.
    static Result<Builder> Create(Storage& storage, const std::string& path);
    Builder(Builder&&) = default;

    // REQUIRES: behind the last one in the order of runs, or the same version again, which is left out. After an error nothing more.
    Status Add(const SpilledVersion& version);
    // REQUIRES: not empty.
    Result<std::shared_ptr<const SpilledRun>> Finish(Span span);
    bool empty() const { return run_->versions_ == 0; }

   private:
    explicit Builder(std::unique_ptr<SpilledRun> run) : run_(std::move(run)) {}
    Status EndBlock();
    Status Write();

    std::unique_ptr<SpilledRun> run_;
    SpillBlockBuilder block_;
    std::string unwritten_;  // whole blocks
    std::string last_key_;   // of the last version added, with its table
    Version last_version_;
    uint64_t written_bytes_ = 0;
  };

  ~SpilledRun();
  SpilledRun(const SpilledRun&) = delete;
  SpilledRun& operator=(const SpilledRun&) = delete;

  size_t blocks() const { return offsets_.size(); }
  uint64_t versions() const { return versions_; }
  const Span& span() const { return span_; }
  // Of the file, and of memory.
  uint64_t file_bytes() const { return file_bytes_; }
  size_t memory_bytes() const;

  // The first block that may have versions of the key or of a later one.
  size_t FirstBlock(TableId table, std::string_view key) const;
  Result<std::shared_ptr<const SpillBlock>> Read(size_t block) const;

 private:
  SpilledRun(Storage& storage, std::unique_ptr<File> file) : storage_(storage), file_(std::move(file)) {}

  Storage& storage_;
  std::unique_ptr<File> file_;
  std::vector<uint64_t> offsets_;
  std::string separators_;  // one behind the other
  std::vector<uint64_t> separator_ends_;
  uint64_t file_bytes_ = 0;
  uint64_t versions_ = 0;
  Span span_;

  std::string_view separator(size_t block) const;
};

}  // namespace deut::tc

#endif  // TC_SPILL_SPILLED_RUN_H_

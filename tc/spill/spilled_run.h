// SpilledRun: an immutable sorted run of versions in a file (rule S9). An index of its blocks stays in memory: the offset of each block, and a
// shortest key that separates it from the block before. So does a filter of its keys, if the builder was told to make one.
//
// The file belongs to this process alone: it is not synced, and is removed with the run.
// Errors: those of the file, and CORRUPTION; messages name file and offset.
// Thread-safety: a run by any thread; a builder by one. Ownership: shared by lists and readers; dropping the last reference removes the file.
#ifndef TC_SPILL_SPILLED_RUN_H_
#define TC_SPILL_SPILLED_RUN_H_

#include <atomic>
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
#include "tc/spill/spill_filter.h"
#include "tc/spill/spilled_version.h"

namespace deut::tc {

class SpilledRun {
 public:
  // The commits of which a run holds versions.
  struct CommitSpan {
    Timestamp first;        // the timestamp of its first commit
    Lsn first_commit = {};  // LSN of its first commit
    Position last;          // all its updates are at or before it
  };

  class Builder {
   public:
    // Size at which a block is ended; the last version may exceed it.
    static constexpr size_t kBlockBytes = size_t{16} << 10;

    struct Options {
      uint64_t filter_keys = 0;  // most keys that the run may have; 0: no filter
      uint32_t level = 0;
      std::atomic<uint64_t>* written_bytes = nullptr;  // counts the bytes written to the file; may be null
    };
    // Creates the file. ALREADY_EXISTS if there is one.
    static Result<Builder> Create(Storage& storage, const std::string& path, const Options& options);
    Builder(Builder&&) = default;

    // REQUIRES: `version` is behind the last one in the order of runs, or equal to it: then it is ignored. After an error the builder is unusable.
    Status Add(const SpilledVersion& version);
    // Writes the rest and returns the run. REQUIRES: not empty.
    Result<std::shared_ptr<const SpilledRun>> Finish(CommitSpan span);
    bool empty() const { return run_->versions_ == 0; }
    size_t filter_bytes() const { return run_->filter_bytes(); }

   private:
    Builder(std::unique_ptr<SpilledRun> run, std::atomic<uint64_t>* counted)
        : run_(std::move(run)), counted_(counted) {}
    Status EndBlock();
    Status Write();

    std::unique_ptr<SpilledRun> run_;
    std::atomic<uint64_t>* counted_;
    SpillBlockBuilder block_;
    std::string unwritten_;  // whole blocks
    std::string last_key_;   // key of the last version added, prefixed by its table
    Version last_version_;
    uint64_t written_bytes_ = 0;
  };

  ~SpilledRun();
  SpilledRun(const SpilledRun&) = delete;
  SpilledRun& operator=(const SpilledRun&) = delete;

  size_t blocks() const { return offsets_.size(); }
  uint64_t versions() const { return versions_; }
  const CommitSpan& span() const { return span_; }
  // Number of merges that its versions have gone through (spill_levels.h).
  uint32_t level() const { return level_; }
  // The earliest and the latest timestamp of its versions.
  Timestamp oldest() const { return oldest_; }
  Timestamp newest() const { return newest_; }
  // Bytes of the file, and of memory, of which the filter is a part.
  uint64_t file_bytes() const { return file_bytes_; }
  size_t memory_bytes() const;
  size_t filter_bytes() const { return filter_.memory_bytes(); }

  // False if the run has no version of the key with this SpillFilter::Hash.
  bool MayHave(uint64_t key_hash) const { return filter_.Admits(key_hash); }
  // The first block that may have versions of the key or of a later one.
  size_t FirstBlock(TableId table, std::string_view key) const;
  Result<std::shared_ptr<const SpillBlock>> Read(size_t block) const;
  // True once a block was read that is damaged.
  bool damaged() const { return damaged_.load(std::memory_order_relaxed); }

 private:
  SpilledRun(Storage& storage, std::unique_ptr<File> file, const Builder::Options& options)
      : storage_(storage),
        file_(std::move(file)),
        filter_(options.filter_keys == 0 ? SpillFilter() : SpillFilter(options.filter_keys)),
        level_(options.level) {}

  Storage& storage_;
  std::unique_ptr<File> file_;
  SpillFilter filter_;
  const uint32_t level_;
  std::vector<uint64_t> offsets_;
  std::string separators_;  // one behind the other
  std::vector<uint64_t> separator_ends_;
  uint64_t file_bytes_ = 0;
  uint64_t versions_ = 0;
  CommitSpan span_;
  Timestamp oldest_ = kMaxTimestamp, newest_;
  mutable std::atomic<bool> damaged_{false};

  std::string_view separator(size_t block) const;
};

}  // namespace deut::tc

#endif  // TC_SPILL_SPILLED_RUN_H_

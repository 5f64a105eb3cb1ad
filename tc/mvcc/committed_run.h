// CommittedRun: one immutable run of CommittedRuns: keys in ascending order, each once.
//
// Laid out for binary search: all keys of a run share a prefix; the eight bytes behind it stand in an array of their own (as big-endian numbers,
// padded with zeros), and whole keys are compared only where these are equal.
// Thread-safety: a built run by any thread; a builder by one.
#ifndef TC_MVCC_COMMITTED_RUN_H_
#define TC_MVCC_COMMITTED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"

namespace deut::tc {

class CommittedRun {
 public:
  struct Update {
    std::string_view key;
    Timestamp timestamp;
    Lsn commit;
  };
  // A run's keys take at most so many bytes.
  static constexpr size_t kMaxKeyBytes = size_t{1} << 30;

  class Builder {
   public:
    void Reserve(size_t entries, size_t key_bytes);
    // REQUIRES: not before the last key. The same key again adds to its entry.
    void Append(std::string_view key, Timestamp first_timestamp, Lsn last_commit);
    // All updates in the run are at or before `last`.
    std::shared_ptr<const CommittedRun> Finish(Position last);
    bool empty() const { return run_->first_timestamps_.empty(); }

   private:
    std::unique_ptr<CommittedRun> run_{new CommittedRun};
  };

  size_t size() const { return first_timestamps_.size(); }
  std::string_view key(size_t i) const { return std::string_view(keys_).substr(ends_[i], ends_[i + 1] - ends_[i]); }
  // The earliest of the key's updates.
  Timestamp first_timestamp(size_t i) const { return Timestamp{first_timestamps_[i]}; }
  // The latest of the key's updates.
  Lsn last_commit(size_t i) const { return Lsn{last_commits_[i]}; }
  Position last() const { return last_; }
  size_t key_bytes() const { return keys_.size(); }
  size_t bytes() const;

  // The first entry whose key is not less than `key`; size() if there is none.
  size_t LowerBound(std::string_view key) const;

 private:
  CommittedRun() : ends_{0} {}
  uint64_t HeadOf(std::string_view key) const;

  std::string keys_;
  std::vector<uint32_t> ends_;  // one more than entries
  std::vector<uint64_t> first_timestamps_;
  std::vector<uint64_t> last_commits_;
  std::vector<uint64_t> heads_;
  size_t prefix_bytes_ = 0;
  Position last_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_COMMITTED_RUN_H_

// CommittedRun: one immutable run of CommittedRuns: keys in ascending order, each once.
//
// Laid out for binary search: all keys of a run share a prefix; the eight bytes behind it stand in an array of their own (as big-endian numbers,
// padded with zeros), and whole keys are compared only where these are equal. Of these each sixteenth stands in a smaller array, and of that
// each sixteenth in another: what a search in a large run begins with stays in the processor's cache. What is said of an entry stands in one
// place, for the same reason.
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
    bool removal = false;
  };
  // A run's keys take at most so many bytes.
  static constexpr size_t kMaxKeyBytes = size_t{1} << 30;

  class Builder {
   public:
    void Reserve(size_t entries, size_t key_bytes);
    // REQUIRES: not before the last key. The same key again adds to its entry.
    void Append(std::string_view key, Timestamp first_timestamp, Lsn last_commit, bool removed = false);
    // All updates in the run are at or before `last`.
    std::shared_ptr<const CommittedRun> Finish(Position last);
    bool empty() const { return run_->entries_.empty(); }

   private:
    std::unique_ptr<CommittedRun> run_{new CommittedRun};
  };

  size_t size() const { return entries_.size(); }
  std::string_view key(size_t i) const {
    const size_t begin = i == 0 ? 0 : entries_[i - 1].end;
    return std::string_view(keys_).substr(begin, entries_[i].end - begin);
  }
  // The earliest of the key's updates.
  Timestamp first_timestamp(size_t i) const { return Timestamp{entries_[i].first_timestamp}; }
  // The latest of the key's updates.
  Lsn last_commit(size_t i) const { return Lsn{entries_[i].last_commit}; }
  // Some of the key's updates are removals.
  bool removed(size_t i) const { return entries_[i].removed; }
  Position last() const { return last_; }
  size_t key_bytes() const { return keys_.size(); }
  size_t bytes() const;
  // What all keys begin with.
  std::string_view prefix() const { return std::string_view(keys_).substr(0, prefix_bytes_); }

  // The eight bytes of a key behind so many, as a number that is in the order of the keys where these agree before.
  static uint64_t HeadOf(std::string_view key, size_t behind);

  // The first entry whose key is not less than `key`; size() if there is none.
  size_t LowerBound(std::string_view key) const { return LowerBoundIn(BlockOf(key), key); }
  // The same in two steps, for who looks in several runs and will not wait for the memory of each: BlockOf has what LowerBoundIn looks at first
  // fetched.
  size_t BlockOf(std::string_view key) const;
  size_t LowerBoundIn(size_t block, std::string_view key) const;
  // What is said of this entry will be wanted; and, after that, its key.
  void PrefetchEntry(size_t i) const {
    if (i < size()) __builtin_prefetch(&entries_[i - (i == 0 ? 0 : 1)]);
  }
  void PrefetchKey(size_t i) const {
    if (i < size()) __builtin_prefetch(key(i).data());
  }

 private:
  struct Entry {
    uint64_t first_timestamp;
    uint64_t last_commit;
    uint32_t end;  // of its key, in keys_
    bool removed;
  };
  static constexpr size_t kBlock = 16;
  // The last of these that is below, else the first of them: what is not below begins in its block, or with the next.
  static size_t LastBelow(const std::vector<uint64_t>& firsts, size_t begin, size_t end, uint64_t head);

  static constexpr size_t kBefore = SIZE_MAX, kBehind = SIZE_MAX - 1;  // of all blocks

  CommittedRun() : prefix_bytes_(0) {}

  std::string keys_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> heads_;
  std::vector<uint64_t> tops_;    // heads_ of each block's first
  std::vector<uint64_t> crowns_;  // tops_ of each block's first
  size_t prefix_bytes_;
  Position last_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_COMMITTED_RUN_H_

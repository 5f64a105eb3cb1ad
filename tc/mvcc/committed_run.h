// CommittedRun: one immutable run of CommittedRuns: keys in ascending order, each once.
//
// Laid out for binary search. All keys of a run share a prefix, which may be empty. The eight bytes of a key behind the
// prefix are its *head*. They are read as a big-endian number, padded with zeros, and the heads have an array of their
// own. A search compares whole keys only where heads are equal. Every 16th head stands in a smaller array, and every
// 16th of those in another. So the first steps of a search in a large run stay in the processor's cache. All other data
// of an entry stands together, for the same reason.
// Thread-safety: a built run by any thread; a builder by one.
// Ownership: shared by the lists that contain it; key views are valid while the run lives.
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
  // The users of Builder add no key to a run that has this many bytes of keys. So a run may exceed it by one key.
  // Append checks only the limit of 32 bits.
  static constexpr size_t kMaxKeyBytes = size_t{1} << 30;

  class Builder {
   public:
    void Reserve(size_t entries, size_t key_bytes);
    // REQUIRES: `key` is not before the last one appended. An equal key is combined with that entry.
    void Append(std::string_view key, Timestamp first_timestamp, Lsn last_commit, bool removed = false);
    // REQUIRES: all updates in the run are at or before `last`.
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
  // Timestamp of the earliest of the key's updates in the run.
  Timestamp first_timestamp(size_t i) const { return Timestamp{entries_[i].first_timestamp}; }
  // Commit LSN of the latest of the key's updates in the run.
  Lsn last_commit(size_t i) const { return Lsn{entries_[i].last_commit}; }
  // Some of the key's updates are removals.
  bool removed(size_t i) const { return entries_[i].removed; }
  Position last() const { return last_; }
  size_t key_bytes() const { return keys_.size(); }
  size_t bytes() const;
  // The bytes with which all keys of the run begin.
  std::string_view prefix() const { return std::string_view(keys_).substr(0, prefix_bytes_); }

  // The eight bytes of a key behind the first `behind` bytes, as a number that sorts like keys that agree in those first bytes.
  static uint64_t HeadOf(std::string_view key, size_t behind);

  // The first entry whose key is not less than `key`; size() if there is none.
  size_t LowerBound(std::string_view key) const { return LowerBoundIn(BlockOf(key), key); }
  // LowerBound in two steps, for a caller that searches several runs and must not wait for memory in each. BlockOf prefetches the heads that
  // LowerBoundIn reads first.
  size_t BlockOf(std::string_view key) const;
  size_t LowerBoundIn(size_t block, std::string_view key) const;
  // Prefetch the data of entry `i`; and, once that is in the cache, its key.
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
    uint32_t end;  // end of its key in keys_
    bool removed;
  };
  static constexpr size_t kBlock = 16;
  // Index of the last of firsts[begin, end) that is less than `head`, else `begin`. The lower bound of `head` is in that block, or begins the next.
  static size_t LastBelow(const std::vector<uint64_t>& firsts, size_t begin, size_t end, uint64_t head);

  static constexpr size_t kBefore = SIZE_MAX, kBehind = SIZE_MAX - 1;  // before, behind all blocks

  CommittedRun() : prefix_bytes_(0) {}

  std::string keys_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> heads_;
  std::vector<uint64_t> heads_by_16_;   // the first of heads_ in each block of kBlock
  std::vector<uint64_t> heads_by_256_;  // the first of heads_by_16_ in each block of kBlock
  size_t prefix_bytes_;
  Position last_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_COMMITTED_RUN_H_

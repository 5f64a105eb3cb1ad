// Segment: one file of the redo log that is or was written to, with its LSN range and a sparse index from LSNs to
// blocks.
// States: spare (no LSN) -> open (first_lsn known; the log thread adds blocks) -> ended (end_lsn known) -> removed or
// recycled (SegmentSet).
// Thread-safety: AddBlock and End by one thread at a time (recovery, then the thread with the writer role); the rest
// by any thread. Ownership: owns the file. Readers keep a segment alive by shared_ptr, also after its file has been
// removed.
#ifndef TC_REDO_LOG_SEGMENT_H_
#define TC_REDO_LOG_SEGMENT_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/io/storage.h"
#include "tc/log_format/block_format.h"

namespace deut::tc {

class Segment {
 public:
  // `created_by_this_process`: this process created it, so no write of an earlier process can still be in flight to it.
  Segment(uint64_t number, std::unique_ptr<File> file, uint64_t bytes, bool created_by_this_process)
      : number_(number), file_(std::move(file)), bytes_(bytes), created_by_this_process_(created_by_this_process) {}

  uint64_t number() const { return number_; }
  File& file() const { return *file_; }
  uint64_t bytes() const { return bytes_; }
  bool created_by_this_process() const { return created_by_this_process_; }

  Lsn first_lsn() const { return first_lsn_; }
  // One past the last record it holds, once that is known. Before that, the largest LSN.
  Lsn end_lsn() const { return Lsn(end_lsn_.load(std::memory_order_acquire)); }

  // REQUIRES: no other thread knows the segment yet.
  void Begin(Lsn first_lsn) {
    DEUT_CHECK(index_ == nullptr);  // a file gets a new Segment when it is used again
    first_lsn_ = first_lsn;
    index_ = std::make_unique<Entry[]>(kIndexEntries + 1);
    index_[0] = Entry{first_lsn, kSegmentHeaderBytes};
    indexed_.store(1, std::memory_order_release);
  }

  // A durable block with first LSN `lsn` stands at `offset`. Blocks come in order.
  void AddBlock(Lsn lsn, uint64_t offset) {
    const size_t count = indexed_.load(std::memory_order_relaxed);
    if (offset < index_[count - 1].offset + bytes_ / kIndexEntries + 1) return;
    DEUT_DCHECK(count <= kIndexEntries);
    DEUT_DCHECK(index_[count - 1].lsn <= lsn);
    index_[count] = Entry{lsn, offset};
    indexed_.store(count + 1, std::memory_order_release);
  }

  void End(Lsn end_lsn) {
    DEUT_CHECK(first_lsn_ <= end_lsn);
    end_lsn_.store(end_lsn.value, std::memory_order_release);
  }

  // Where a search for `lsn`, which lies in [first_lsn, end_lsn), begins: a block at or before it, and that block's
  // first LSN.
  std::pair<Lsn, uint64_t> Seek(Lsn lsn) const {
    const Entry* const first = index_.get();
    const Entry* const end = first + indexed_.load(std::memory_order_acquire);
    const Entry* const after = std::upper_bound(first + 1, end, lsn, [](Lsn l, const Entry& e) { return l < e.lsn; });
    return {after[-1].lsn, after[-1].offset};
  }

 private:
  struct Entry {
    Lsn lsn;
    uint64_t offset = 0;
  };
  // Entries are more than bytes_ / kIndexEntries apart, so there are at most kIndexEntries + 1, of 32 KiB. In a segment
  // of 128 MiB they are about 64 KiB apart. So a search begins at most that far before the block, and at the block
  // itself if those before it are as large.
  static constexpr size_t kIndexEntries = 2048;

  const uint64_t number_;
  const std::unique_ptr<File> file_;
  const uint64_t bytes_;
  const bool created_by_this_process_;
  Lsn first_lsn_;
  std::atomic<uint64_t> end_lsn_{UINT64_MAX};
  std::unique_ptr<Entry[]> index_;
  std::atomic<size_t> indexed_{0};
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_SEGMENT_H_

// UnflushedUpdates: counts the updates that are in memory but in no checkpoint yet, and bounds the room that they
// will need on the disk (rule X7). The DC promises its free space less this room: updates that were applied still
// have to be written.
// Count. The updates of a batch are counted after they are in their pages, and before the batch is acknowledged. A
// checkpoint reads both counters before it reads the first page. If the checkpoint succeeds, these values become the
// new base. So an update that the checkpoint may have missed never counts as written. An update that the checkpoint
// has written, but that was counted later, counts until the next checkpoint.
// Counter-example without it: a disk has 100 MiB free, and 90 MiB of changed pages are in memory. The DC reports 100
// MiB, and the TC admits 90 MiB more. Then the checkpoint finds no room for half of the accepted updates.
// Bound. An update changes one leaf, and splits at most that leaf. So it needs at most a leaf, an index page and its
// own bytes. All updates together need at most the bytes of the pages in memory, because a changed page stays in
// memory until it is written. One case is not in the bound: the base of a page that was changed without being loaded,
// and whose image has no room for another part. Such pages are few, and the reserve covers them.
// Thread-safety: all methods may be called from any thread; one checkpoint at a time. Ownership: none.
#ifndef DC_RECORD_OPS_UNFLUSHED_UPDATES_H_
#define DC_RECORD_OPS_UNFLUSHED_UPDATES_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "common/testing/test_points.h"

namespace deut::dc {

class UnflushedUpdates {
 public:
  struct Count {
    uint64_t updates = 0;
    uint64_t bytes = 0;  // bytes of the updates in the log
  };

  // Lives while a batch of `bytes` is applied. Its destructor counts the updates passed to AddUpdates, also after an
  // error: some of them are in their pages then.
  class Batch {
   public:
    Batch(UnflushedUpdates& unflushed, uint64_t bytes) : unflushed_(unflushed), bytes_(bytes) {}
    ~Batch() {
      if (updates_ == 0) return;
      unflushed_.updates_.fetch_add(updates_, std::memory_order_relaxed);
      unflushed_.bytes_.fetch_add(bytes_, std::memory_order_relaxed);
    }
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

    void AddUpdates(uint64_t updates) { updates_ += updates; }

   private:
    UnflushedUpdates& unflushed_;
    const uint64_t bytes_;
    uint64_t updates_ = 0;
  };

  // BeginCheckpoint is called before a checkpoint reads the first page. EndCheckpoint is called when the checkpoint
  // has succeeded, with the result of BeginCheckpoint.
  Count BeginCheckpoint() const {
    return {updates_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed)};
  }
  void EndCheckpoint(const Count& begun) {
    flushed_updates_.store(begun.updates, std::memory_order_relaxed);
    flushed_bytes_.store(begun.bytes, std::memory_order_relaxed);
  }

  // Returns the room that the updates need on the disk, in bytes of whole segments. For each update it is at most
  // `page_bytes` plus the update's own bytes. In total it is at most the result of `pages_in_memory`. That function
  // is called only if the first bound exceeds `plenty`: it costs more than a few loads, and every acknowledgement
  // calls BytesNeeded. The result includes one begun segment each for base and delta parts.
  template <typename PagesInMemory>
  uint64_t BytesNeeded(uint64_t page_bytes, uint64_t segment_bytes, uint64_t plenty,
                       PagesInMemory&& pages_in_memory) const {
    if (DEUT_OMITTED("X7.unflushed")) return 0;
    const uint64_t updates = Since(updates_, flushed_updates_), bytes = Since(bytes_, flushed_bytes_);
    if (updates == 0) return 0;
    uint64_t room = updates * page_bytes + bytes;
    if (room > plenty) room = std::min<uint64_t>(room, pages_in_memory());
    return (room / segment_bytes + 1 + kSegmentsBegun) * segment_bytes;
  }

 private:
  static constexpr uint64_t kSegmentsBegun = 2;

  static uint64_t Since(const std::atomic<uint64_t>& counted, const std::atomic<uint64_t>& flushed) {
    const uint64_t before = flushed.load(std::memory_order_relaxed), now = counted.load(std::memory_order_relaxed);
    return now > before ? now - before : 0;
  }

  std::atomic<uint64_t> updates_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> flushed_updates_{0};
  std::atomic<uint64_t> flushed_bytes_{0};
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_UNFLUSHED_UPDATES_H_

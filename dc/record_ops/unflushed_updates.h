// UnflushedUpdates: how many updates the pages in memory hold that no checkpoint holds yet, and how much room on the disk they will take (rule
// X7). The data component promises what is free less this: updates that were applied still have to be written.
// Count. The updates of a batch are counted after they are in their pages, and before the batch is acknowledged. A checkpoint takes both figures
//   before it looks at the first page. It makes them the new base if it comes to its end with an advanced position. So an update that the
//   checkpoint may have missed is never taken for written. An update that it has written, but that was counted later, counts until the next one.
// Counter-example without it: 100 MiB are free on a disk, and 90 MiB of changed pages are in memory. The transaction component is told of
//   100 MiB and lets 90 MiB more in; the checkpoint finds no room for half of what was accepted.
// Bound. An update changes one leaf, and splits at most that: it takes at most a leaf, an index page and its own bytes. All of them together
//   take at most what the pages in memory take, as a changed page stays there until it is written. Not in the bound is the base of a page that
//   was changed without being loaded, and whose image has no room for one more part. These are few, and the reserve is for them.
// Thread-safety: all methods from any thread; checkpoints one at a time.
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
    uint64_t bytes = 0;  // as they are in the log
  };

  // While a batch of `bytes` is applied. Counts what it saw when it ends, also after an error: some of them are in their pages then.
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

    void Saw(uint64_t updates) { updates_ += updates; }

   private:
    UnflushedUpdates& unflushed_;
    const uint64_t bytes_;
    uint64_t updates_ = 0;
  };

  // Before a checkpoint looks at pages; and when it has come to its end, with what the former answered.
  Count BeginCheckpoint() const {
    return {updates_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed)};
  }
  void EndCheckpoint(const Count& begun) {
    flushed_updates_.store(begun.updates, std::memory_order_relaxed);
    flushed_bytes_.store(begun.bytes, std::memory_order_relaxed);
  }

  // The room that they take on the disk: at most `page_bytes` and its own bytes for each, and at most that of all pages in memory, which
  // `pages_in_memory` answers. It is asked only if the former is more than `plenty`: it costs more than a few loads, and each acknowledgement asks.
  // In whole segments: of leaves' bases and deltas, and one of each that has been begun.
  template <typename PagesInMemory>
  uint64_t Room(uint64_t page_bytes, uint64_t segment_bytes, uint64_t plenty, PagesInMemory&& pages_in_memory) const {
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

// KnownPages: the page ids about which the files of a checkpoint that were read so far have said something. The files
// are read from the newest to the oldest, so an older one counts only for ids that are not known. Internal to the page
// store. Memory: 512 bytes for each 4,096 ids of which one was added, and 8 bytes for each 4,096 ids.
// Thread-safety: Add from any thread; AddRange alone.
#ifndef DC_PAGE_STORE_KNOWN_PAGES_H_
#define DC_PAGE_STORE_KNOWN_PAGES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "dc/page_store/checkpoint_lineage.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

class KnownPages {
 public:
  // For ids below `end`.
  explicit KnownPages(PageId end) : chunks_(end.value / kChunkIds + 1) {}
  ~KnownPages() {
    for (const std::atomic<Chunk*>& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }
  KnownPages(const KnownPages&) = delete;
  KnownPages& operator=(const KnownPages&) = delete;

  // False: the id was known.
  bool Add(PageId page) {
    for (const PageRange& range : ranges_) {
      if (range.first <= page && page < range.end) return false;
    }
    std::atomic<Chunk*>& place = chunks_[page.value / kChunkIds];
    Chunk* chunk = place.load(std::memory_order_acquire);
    if (chunk == nullptr) {
      Chunk* const made = new Chunk();
      // The loser takes the chunk of the winner, which the exchange has put into `chunk`.
      if (place.compare_exchange_strong(chunk, made, std::memory_order_acq_rel)) {
        chunk = made;
      } else {
        delete made;
      }
    }
    const uint64_t bit = uint64_t{1} << (page.value % 64);
    return ((*chunk)[page.value % kChunkIds / 64].fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }

  // All ids of the range are known from now on. Ranges that touch become one, so there are few.
  void AddRange(PageRange range) {
    std::erase_if(ranges_, [&](const PageRange& each) {
      if (each.end < range.first || range.end < each.first) return false;
      range.first = each.first < range.first ? each.first : range.first;
      range.end = each.end > range.end ? each.end : range.end;
      return true;
    });
    ranges_.push_back(range);
  }

 private:
  static constexpr uint32_t kChunkIds = 4096;
  using Chunk = std::array<std::atomic<uint64_t>, kChunkIds / 64>;

  std::vector<std::atomic<Chunk*>> chunks_;
  std::vector<PageRange> ranges_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_KNOWN_PAGES_H_

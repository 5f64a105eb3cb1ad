// SegmentTable: a latch-free map from segment number to Segment. Internal to the page store.
//
// Structure: an immutable, sorted directory of chunks of 256 numbers. A chunk is an array of slots; a slot holds null
//   or an Entry, which shares the segment.
// Steps. Find: under a guard, directory (load), chunk by binary search, slot (load), copy of the shared pointer.
//   Add: slot null -> Entry (store). If its chunk does not exist, a new directory with it replaces the old one
//   (store), which is retired.
//   Remove: slot Entry -> null (store), Entry retired. An empty chunk is removed by a new directory; both chunk and
//   old directory are retired.
// One thread at a time calls Add and Remove, so none of their stores is lost. A thread that found an Entry may use it
// until its guard ends, even if the Entry was removed meanwhile.
// Thread-safety: Find, With, ForEach, Snapshot from any thread; Add and Remove by one at a time. Ownership: owns the
// entries; the domain outlives it. Memory: 2 KiB per chunk in use.
#ifndef DC_PAGE_STORE_SEGMENT_TABLE_H_
#define DC_PAGE_STORE_SEGMENT_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/sync/reclamation.h"
#include "dc/page_store/segment.h"

namespace deut::dc {

class SegmentTable {
 public:
  explicit SegmentTable(ReclamationDomain& domain);
  ~SegmentTable();
  SegmentTable(const SegmentTable&) = delete;
  SegmentTable& operator=(const SegmentTable&) = delete;

  // REQUIRES: the table has no segment with this number.
  void Add(std::shared_ptr<Segment> segment);
  // False if there was no such segment.
  bool Remove(uint64_t number);

  size_t size() const { return size_.load(std::memory_order_relaxed); }
  // Null if there is none.
  std::shared_ptr<Segment> Find(uint64_t number) const;
  // Calls `use(Segment&)` under a guard, so `use` must be short; false if there is no such segment.
  template <typename Use>
  bool With(uint64_t number, Use&& use) const {
    const ReclamationDomain::Guard guard(domain_);
    const Entry* entry = FindEntry(number);
    if (entry == nullptr) return false;
    use(*entry->segment);
    return true;
  }
  // Calls `use(const std::shared_ptr<Segment>&)` for each segment, ascending, under one guard. It may miss segments
  // that are added or removed meanwhile.
  template <typename Use>
  void ForEach(Use&& use) const {
    const ReclamationDomain::Guard guard(domain_);
    for (const auto& [index, chunk] : *directory_.load()) {
      for (const std::atomic<Entry*>& slot : chunk->slots) {
        if (const Entry* entry = slot.load()) use(entry->segment);
      }
    }
  }
  std::vector<std::shared_ptr<Segment>> Snapshot() const;

 private:
  static constexpr uint64_t kChunkSlots = 256;

  struct Entry {
    const std::shared_ptr<Segment> segment;
  };
  struct Chunk {
    std::array<std::atomic<Entry*>, kChunkSlots> slots{};
    size_t used = 0;  // only the thread that changes the table uses it
  };
  using Directory = std::vector<std::pair<uint64_t, Chunk*>>;

  static Chunk* FindChunk(const Directory& directory, uint64_t index);
  // REQUIRES: a guard is held.
  const Entry* FindEntry(uint64_t number) const;
  // REQUIRES: a guard is held.
  void Replace(const Directory* next);

  ReclamationDomain& domain_;
  std::atomic<const Directory*> directory_;
  std::atomic<size_t> size_{0};
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_TABLE_H_

// SegmentTable: segment number -> Segment, found without a latch. Internal to the page store.
//
// Structure: an immutable directory, sorted, of chunks of 256 numbers; a chunk is an array of slots; a slot holds null or an Entry, which
//   shares the segment.
// Steps. Find: under a guard, directory (load), chunk by binary search, slot (load), copy of the shared pointer.
//   Add: slot null -> Entry (store); if its chunk is not there, a new directory with it takes the old one's place (store), which is retired.
//   Remove: slot Entry -> null (store), Entry retired; an empty chunk goes with a new directory, both retired.
// Add and Remove are called by one thread at a time, so none of their stores is lost. Whoever finds an Entry may use it until its
// guard ends, though it was removed meanwhile.
// Thread-safety: Find, With, ForEach, Snapshot from any thread; Add and Remove by one at a time. Ownership: owns the entries; the domain
// outlives it. Memory: 2 KiB for a chunk in use.
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

  // REQUIRES: no segment with its number is there.
  void Add(std::shared_ptr<Segment> segment);
  // False if it was not there.
  bool Remove(uint64_t number);

  size_t size() const { return size_.load(std::memory_order_relaxed); }
  // Null if there is none.
  std::shared_ptr<Segment> Find(uint64_t number) const;
  // Calls `use(Segment&)` under a guard, for moments; false if there is none.
  template <typename Use>
  bool With(uint64_t number, Use&& use) const {
    const ReclamationDomain::Guard guard(domain_);
    const Entry* entry = FindEntry(number);
    if (entry == nullptr) return false;
    use(*entry->segment);
    return true;
  }
  // Calls `use(const std::shared_ptr<Segment>&)` for each, ascending, under one guard. Those added or removed meanwhile may be seen or not.
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
    size_t used = 0;  // by those who change the table
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

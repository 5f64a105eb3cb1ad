// SlabTables: the addresses of a slab heap (slab_heap.h), and what the heap knows about each slab and each span. All of
// it lies outside the slabs, so that memory of a slab that is returned to the system takes nothing with it.
// Thread-safety: the tables are plain memory; slab_heap.h and slab_pool.h say which mutex guards which part. Ownership:
// owns the addresses and the tables. Errors: Create returns null.
#ifndef COMMON_SYNC_SLAB_TABLES_H_
#define COMMON_SYNC_SLAB_TABLES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace deut {

class SlabTables {
 public:
  static constexpr size_t kSlabBytes = size_t{2} << 20;
  // A span begins at a unit of its slab.
  static constexpr size_t kUnitBytes = size_t{64} << 10;
  static constexpr size_t kUnitsPerSlab = kSlabBytes / kUnitBytes;
  static constexpr std::array<size_t, 3> kSpanBytes = {size_t{64} << 10, size_t{128} << 10, size_t{512} << 10};

  // The state of a span, kept for its first unit.
  struct Span {
    void* free = nullptr;  // freed blocks, linked through their first words
    Span* next = nullptr;
    Span* previous = nullptr;
    std::atomic<uint16_t> used{0};  // blocks in use or in caches; 0 also in units that begin no span
    uint16_t begun = 0;             // blocks that have ever been used; those behind them are free, too
    uint8_t bin = 0;                // the list that it is in
  };
  struct Slab {
    Slab* next = nullptr;
    Slab* previous = nullptr;
    uint32_t free_spans = 0;  // a bit for each
    std::atomic<uint8_t> used_spans{0};
    std::atomic<bool> draining{false};
    uint8_t span_kind = 0;
  };

  // `reserved_bytes`: a multiple of kSlabBytes. Returns null if the system does not give the addresses.
  static std::unique_ptr<SlabTables> Create(size_t reserved_bytes);
  // Gives all slabs back to the system, also those with blocks in use.
  ~SlabTables();
  SlabTables(const SlabTables&) = delete;
  SlabTables& operator=(const SlabTables&) = delete;

  // Makes slabs readable and writable, asks for huge pages if that is wanted, and touches their entries in the tables,
  // so that nobody touches them first inside a mutex. Returns false if the system refuses.
  // REQUIRES: nobody uses the slabs yet.
  bool Open(size_t first_slab, size_t slabs, bool huge_pages);
  // Returns the memory of a slab to the system; its addresses stay. Returns false if the system refuses (locked
  // memory): then the slab keeps its memory and its content.
  bool ReturnMemory(const Slab& slab);

  bool Owns(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(base_) < reserved_bytes_;
  }
  size_t slabs() const { return reserved_bytes_ / kSlabBytes; }
  Slab& slab(size_t index) { return slabs_[index]; }
  const Slab& slab(size_t index) const { return slabs_[index]; }
  Span& span(size_t unit) { return spans_[unit]; }
  const Span& span(size_t unit) const { return spans_[unit]; }
  // The size class of the span that covers a unit. Written before the span has a block, constant while it has one.
  std::atomic<uint8_t>& unit_class(size_t unit) { return unit_class_[unit]; }
  const std::atomic<uint8_t>& unit_class(size_t unit) const { return unit_class_[unit]; }

  // Place of a block from the beginning of the addresses. REQUIRES: Owns(block).
  size_t OffsetOf(const void* block) const { return static_cast<size_t>(static_cast<const char*>(block) - base_); }
  size_t UnitOf(const Span* span) const { return static_cast<size_t>(span - spans_); }
  size_t IndexOf(const Slab* slab) const { return static_cast<size_t>(slab - slabs_); }
  const Slab& SlabOfSpan(const Span* span) const { return slabs_[UnitOf(span) / kUnitsPerSlab]; }
  const Slab& SlabOfBlock(const void* block) const { return slabs_[OffsetOf(block) / kSlabBytes]; }
  char* BlocksOf(const Span* span) const { return base_ + UnitOf(span) * kUnitBytes; }

 private:
  SlabTables(char* base, size_t reserved_bytes, void* tables, size_t table_bytes);

  char* const base_;
  const size_t reserved_bytes_;
  void* const tables_;
  const size_t table_bytes_;
  Span* const spans_;                       // for each unit
  Slab* const slabs_;                       // for each slab
  std::atomic<uint8_t>* const unit_class_;  // for each unit
};

}  // namespace deut

#endif  // COMMON_SYNC_SLAB_TABLES_H_

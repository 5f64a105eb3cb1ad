#include "common/sync/slab_tables.h"

#include <sys/mman.h>

#include <new>
#include <type_traits>

#include "common/testing/test_points.h"

namespace deut {
namespace {

void* Map(size_t bytes, int protection) {
  void* const memory = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

std::unique_ptr<SlabTables> SlabTables::Create(size_t reserved_bytes) {
  // Their memory is given back to the system without destructors.
  static_assert(std::is_trivially_destructible_v<Span> && std::is_trivially_destructible_v<Slab>);
  const size_t units = reserved_bytes / kUnitBytes;
  const size_t table_bytes =
      units * (sizeof(Span) + sizeof(std::atomic<uint8_t>)) + reserved_bytes / kSlabBytes * sizeof(Slab);
  void* const tables = Map(table_bytes, PROT_READ | PROT_WRITE);
  if (tables == nullptr) return nullptr;
  auto* const all = static_cast<char*>(Map(reserved_bytes + kSlabBytes, PROT_NONE));
  if (all == nullptr) {
    ::munmap(tables, table_bytes);
    return nullptr;
  }
  // Slabs are aligned to their size.
  const size_t before = (kSlabBytes - reinterpret_cast<uintptr_t>(all) % kSlabBytes) % kSlabBytes;
  if (before != 0) ::munmap(all, before);
  ::munmap(all + before + reserved_bytes, kSlabBytes - before);
  return std::unique_ptr<SlabTables>(new SlabTables(all + before, reserved_bytes, tables, table_bytes));
}

SlabTables::SlabTables(char* base, size_t reserved_bytes, void* tables, size_t table_bytes)
    : base_(base),
      reserved_bytes_(reserved_bytes),
      tables_(tables),
      table_bytes_(table_bytes),
      spans_(static_cast<Span*>(tables)),
      slabs_(reinterpret_cast<Slab*>(spans_ + reserved_bytes / kUnitBytes)),
      unit_class_(reinterpret_cast<std::atomic<uint8_t>*>(slabs_ + reserved_bytes / kSlabBytes)) {}

SlabTables::~SlabTables() {
  ::munmap(base_, reserved_bytes_);
  ::munmap(tables_, table_bytes_);
}

bool SlabTables::Open(size_t first_slab, size_t slabs, bool huge_pages) {
  char* const memory = base_ + first_slab * kSlabBytes;
  if (DEUT_CAS_FAILS("slab_tables.open") || ::mprotect(memory, slabs * kSlabBytes, PROT_READ | PROT_WRITE) != 0)
    return false;
  // If the system refuses, the slabs consist of small pages.
  if (huge_pages) (void)::madvise(memory, slabs * kSlabBytes, MADV_HUGEPAGE);
  for (size_t slab = first_slab; slab < first_slab + slabs; ++slab) {
    new (&slabs_[slab]) Slab;
    for (size_t unit = slab * kUnitsPerSlab; unit < (slab + 1) * kUnitsPerSlab; ++unit) {
      new (&spans_[unit]) Span;
      unit_class_[unit].store(0, std::memory_order_relaxed);
    }
  }
  return true;
}

bool SlabTables::ReturnMemory(const Slab& slab) {
  // The advice to use huge pages lasts.
  return !DEUT_CAS_FAILS("slab_tables.return") &&
         ::madvise(base_ + IndexOf(&slab) * kSlabBytes, kSlabBytes, MADV_DONTNEED) == 0;
}

}  // namespace deut

#include "dc/bwtree/mapping_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

size_t TableBytes(uint64_t capacity) { return (capacity + 1) * sizeof(std::atomic<uint64_t>); }

struct FreedId {
  MappingTable* table;
  PageId id;
};

}  // namespace

Result<std::unique_ptr<MappingTable>> MappingTable::Create(uint32_t capacity) {
  if (capacity == 0) return DEUT_ERROR(kInvalidArgument, "mapping table: the capacity must be at least 1 page");
  // Untouched pages of the mapping read as zero, which is the empty word.
  void* memory =
      ::mmap(nullptr, TableBytes(capacity), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return DEUT_ERROR(kResourceExhausted, "mapping table: cannot reserve ", TableBytes(capacity),
                      " bytes of address space for ", capacity, " pages: ", std::strerror(errno));
  }
  return std::unique_ptr<MappingTable>(new MappingTable(static_cast<std::atomic<uint64_t>*>(memory), capacity));
}

MappingTable::~MappingTable() { DEUT_CHECK(::munmap(slots_, TableBytes(capacity_)) == 0); }

PageId MappingTable::PopFree() {
  for (;;) {
    uint32_t top = free_top_.load(std::memory_order_acquire);
    if (top == 0) return kNoPage;
    // If another thread pops `top` meanwhile the word is no longer a free word; then the compare-and-swap fails.
    const PageId next = PageWord(slots_[top].load(std::memory_order_acquire)).next_free();
    DEUT_POINT("mapping_table.pop.before_cas");
    if (!DEUT_CAS_FAILS("mapping_table.pop.cas") &&
        free_top_.compare_exchange_strong(top, next.value, std::memory_order_acq_rel)) {
      free_count_.fetch_sub(1, std::memory_order_relaxed);
      return PageId(top);
    }
  }
}

PageId MappingTable::Allocate(const Node* head) {
  PageId id = PopFree();
  if (id == kNoPage) {
    // The counter may run past the capacity by one for each thread that finds the table full at the same time.
    if (ever_used_.load(std::memory_order_relaxed) >= capacity_) return kNoPage;
    const uint64_t number = ever_used_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number > capacity_) {
      ever_used_.fetch_sub(1, std::memory_order_relaxed);
      return kNoPage;
    }
    id = PageId(static_cast<uint32_t>(number));
  }
  slots_[id.value].store(PageWord::Memory(head).bits(), std::memory_order_release);
  return id;
}

void MappingTable::Free(PageId id, ReclamationDomain& domain) {
  domain.Retire(
      new FreedId{this, id},
      [](void* object) {
        const std::unique_ptr<FreedId> freed(static_cast<FreedId*>(object));
        freed->table->FreeUnseen(freed->id);
      },
      sizeof(FreedId));
}

void MappingTable::FreeUnseen(PageId id) {
  DEUT_DCHECK(id != kNoPage);
  free_count_.fetch_add(1, std::memory_order_relaxed);
  uint32_t top = free_top_.load(std::memory_order_relaxed);
  do {
    slots_[id.value].store(PageWord::Free(PageId(top)).bits(), std::memory_order_release);
    DEUT_POINT("mapping_table.push.before_cas");
  } while (DEUT_CAS_FAILS("mapping_table.push.cas") ||
           !free_top_.compare_exchange_strong(top, id.value, std::memory_order_acq_rel));
}

uint64_t MappingTable::used() const {
  const uint64_t free = free_count_.load(std::memory_order_relaxed);
  const uint64_t ever = std::min(ever_used_.load(std::memory_order_relaxed), capacity_);
  return ever > free ? ever - free : 0;
}

}  // namespace deut::dc

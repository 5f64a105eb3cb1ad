#include "dc/bwtree/page_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// A stack's word with another first place.
constexpr uint64_t Changed(uint64_t word, uint32_t first) { return ((word >> 32) + 1) << 32 | first; }

// What a place's number can express.
constexpr uint64_t kMostPlaces = uint64_t{1} << 32;

void* Reserve(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

std::unique_ptr<PageArena> PageArena::Create(size_t bytes) {
  bytes = std::min(RoundUp(bytes, kBlockBytes), kMostPlaces * kUnitBytes);
  const size_t links_bytes = bytes / kSystemPageBytes * sizeof(std::atomic<uint32_t>);
  // The first block is never used, so it may be cut to have the others where huge pages can be.
  char* const memory = static_cast<char*>(Reserve(bytes + kBlockBytes));
  if (memory == nullptr) return nullptr;
  void* const links = Reserve(links_bytes);
  if (links == nullptr) {
    munmap(memory, bytes + kBlockBytes);
    return nullptr;
  }
  char* const aligned = memory + (kBlockBytes - reinterpret_cast<uintptr_t>(memory) % kBlockBytes) % kBlockBytes;
  if (aligned != memory) munmap(memory, static_cast<size_t>(aligned - memory));
  const size_t rest = static_cast<size_t>(memory + kBlockBytes - aligned);
  if (rest != 0) munmap(aligned + bytes, rest);
  return std::unique_ptr<PageArena>(new PageArena(aligned, bytes, static_cast<std::atomic<uint32_t>*>(links)));
}

PageArena::~PageArena() {
  munmap(memory_, bytes_);
  munmap(links_, bytes_ / kSystemPageBytes * sizeof(std::atomic<uint32_t>));
}

size_t PageArena::ClassOf(size_t bytes) {
  // The doubling that `bytes` ends, and the step in it; a size that is a class's belongs to that class.
  const size_t last = bytes - 1;
  const auto doubling = static_cast<size_t>(std::bit_width(last / kLeastBytes)) - 1;
  return doubling * kSteps + (last - (kLeastBytes << doubling)) / (kLeastBytes / kSteps << doubling);
}

size_t PageArena::BytesOf(size_t size_class) {
  const size_t doubling = size_class / kSteps;
  // A line more than that: else the first lines of all pages would compete for the same few places of the caches.
  return (kLeastBytes << doubling) + (size_class % kSteps + 1) * (kLeastBytes / kSteps << doubling) + kUnitBytes;
}

void* PageArena::Allocate(size_t bytes) {
  if (bytes <= kLeastBytes || bytes > kMostBytes) return nullptr;
  const size_t size_class = ClassOf(bytes);
  uint32_t place = Pop(&classes_[size_class].free);
  if (place == 0) place = Pop(&classes_[size_class].bare);
  if (place == 0) place = NewBlock(size_class);
  return place == 0 ? nullptr : memory_of(place);
}

void PageArena::Free(void* place, size_t bytes) {
  DEUT_DCHECK(Owns(place));
  const auto number = static_cast<uint32_t>(static_cast<size_t>(static_cast<char*>(place) - memory_) / kUnitBytes);
  Push(&classes_[ClassOf(bytes)].free, number, number);
}

uint32_t PageArena::Pop(Stack* stack) {
  uint64_t seen = stack->load(std::memory_order_acquire);
  for (;;) {
    const auto place = static_cast<uint32_t>(seen);
    if (place == 0) return 0;
    // If the place is popped meanwhile this is some number, and the compare-and-swap fails.
    const uint32_t next = link(place).load(std::memory_order_relaxed);
    DEUT_POINT("page_arena.pop.before_cas");
    if (!DEUT_CAS_FAILS("page_arena.pop.cas") &&
        stack->compare_exchange_weak(seen, Changed(seen, next), std::memory_order_acq_rel, std::memory_order_acquire)) {
      return place;
    }
  }
}

void PageArena::Push(Stack* stack, uint32_t first, uint32_t last) {
  uint64_t seen = stack->load(std::memory_order_relaxed);
  for (;;) {
    link(last).store(static_cast<uint32_t>(seen), std::memory_order_relaxed);
    DEUT_POINT("page_arena.push.before_cas");
    if (!DEUT_CAS_FAILS("page_arena.push.cas") &&
        stack->compare_exchange_weak(seen, Changed(seen, first), std::memory_order_acq_rel,
                                     std::memory_order_relaxed)) {
      return;
    }
  }
}

uint32_t PageArena::NewBlock(size_t size_class) {
  const uint64_t block = used_blocks_.fetch_add(1, std::memory_order_relaxed);
  if ((block + 1) * kBlockBytes > bytes_) {
    used_blocks_.fetch_sub(1, std::memory_order_relaxed);
    return 0;
  }
  if (classes_[size_class].blocks.fetch_add(1, std::memory_order_relaxed) >= kSmallBlocks) {
    // A wish: nothing depends on it.
    (void)madvise(memory_ + block * kBlockBytes, kBlockBytes, MADV_HUGEPAGE);
  }
  const size_t bytes = BytesOf(size_class);
  const auto step = static_cast<uint32_t>(bytes / kUnitBytes);
  const auto first = static_cast<uint32_t>(block * (kBlockBytes / kUnitBytes));
  const auto count = static_cast<uint32_t>(kBlockBytes / bytes);
  for (uint32_t i = 1; i + 1 < count; ++i)
    link(first + i * step).store(first + (i + 1) * step, std::memory_order_relaxed);
  Push(&classes_[size_class].free, first + step, first + (count - 1) * step);
  return first;
}

size_t PageArena::ReturnFree() {
  size_t given = 0;
  for (size_t size_class = 0; size_class < kClasses; ++size_class) {
    while (const uint32_t place = Pop(&classes_[size_class].free)) {
      const size_t at = uint64_t{place} * kUnitBytes;
      const size_t from = RoundUp(at, kSystemPageBytes);
      const size_t to = (at + BytesOf(size_class)) / kSystemPageBytes * kSystemPageBytes;
      (void)madvise(memory_ + at / kBlockBytes * kBlockBytes, kBlockBytes, MADV_NOHUGEPAGE);
      (void)madvise(memory_ + from, to - from, MADV_DONTNEED);
      given += to - from;
      Push(&classes_[size_class].bare, place, place);
    }
  }
  return given;
}

namespace {

// Never freed: pages may outlive everything else.
PageArena* ProcessArena() {
#if defined(__has_feature) && (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
  return nullptr;
#else
  static PageArena* const arena = [] {
    // A class keeps the address space that it once had: so more than there is memory.
    const auto pages = static_cast<size_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L));
    return PageArena::Create(2 * pages * static_cast<size_t>(sysconf(_SC_PAGESIZE))).release();
  }();
  return arena;
#endif
}

std::atomic<bool> heap_only{false};

}  // namespace

void TakePagesFromTheHeap() { heap_only.store(true, std::memory_order_relaxed); }

void* AllocatePage(size_t bytes) {
  PageArena* const arena = heap_only.load(std::memory_order_relaxed) ? nullptr : ProcessArena();
  void* const place = arena == nullptr ? nullptr : arena->Allocate(bytes);
  return place == nullptr ? ::operator new(bytes) : place;
}

void FreePage(void* page, size_t bytes) {
  PageArena* const arena = ProcessArena();
  if (arena != nullptr && arena->Owns(page)) {
    arena->Free(page, bytes);
  } else {
    ::operator delete(page);
  }
}

void ReturnFreePages() {
  if (PageArena* const arena = ProcessArena(); arena != nullptr) (void)arena->ReturnFree();
}

}  // namespace deut::dc

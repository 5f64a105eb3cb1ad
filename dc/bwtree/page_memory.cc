#include "dc/bwtree/page_memory.h"

#include <unistd.h>

#include <algorithm>
#include <new>

#include "common/runtime/huge_pages.h"
#include "common/sync/slab_heap.h"

namespace deut::dc {
namespace {

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool kEnabled = false;
#else
constexpr bool kEnabled = true;
#endif

// Twice the memory of the machine: what is lost in thinly used slabs is addresses, too.
size_t ReservedBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  constexpr size_t kLeast = size_t{1} << 30;
  return pages <= 0 || page_bytes <= 0
             ? kLeast
             : std::max(kLeast, 2 * static_cast<size_t>(pages) * static_cast<size_t>(page_bytes));
}

// Null: the system gives no addresses. Never destroyed, because static objects may free nodes while they are
// destroyed.
SlabHeap* Heap() {
  static SlabHeap* const heap = [] {
    SlabHeap::Options options;
    options.reserved_bytes = ReservedBytes();
    options.huge_pages = HugePagesWanted();
    return SlabHeap::Create(options).release();
  }();
  return heap;
}

constinit thread_local SlabHeap::Cache cache = {};
constinit thread_local bool ended = false;

// Its destructor frees the blocks in the thread's cache when the thread ends. Destructors that run later use no cache.
struct ThreadExitHook {
  ~ThreadExitHook() {
    ended = true;
    Heap()->Flush(&cache);
  }
  // The first call constructs this thread-local object.
  void Arm() {}
};
thread_local ThreadExitHook thread_exit_hook;

constinit thread_local bool armed = false;

SlabHeap::Cache* OwnCache() {
  if (!armed) [[unlikely]] {
    if (ended) return nullptr;
    thread_exit_hook.Arm();
    armed = true;
  }
  return ended ? nullptr : &cache;
}

}  // namespace

void* PageMemory::Allocate(size_t bytes) {
  if (kEnabled && bytes <= SlabHeap::max_bytes()) {
    SlabHeap* const heap = Heap();
    if (heap != nullptr) [[likely]] {
      void* const memory = heap->Allocate(bytes, OwnCache());
      if (memory != nullptr) [[likely]]
        return memory;
    }
  }
  return ::operator new(bytes);
}

void PageMemory::Free(void* memory) {
  if (kEnabled) {
    SlabHeap* const heap = Heap();
    if (heap != nullptr && heap->Owns(memory)) [[likely]]
      return heap->Free(memory, OwnCache());
  }
  ::operator delete(memory);
}

PageMemory::Figures PageMemory::figures() {
  if (!kEnabled || Heap() == nullptr) return {};
  const SlabHeap::Figures of_heap = Heap()->figures();
  return {of_heap.slab_bytes, of_heap.used_bytes};
}

uint64_t PageMemory::FreeBytes() { return !kEnabled || Heap() == nullptr ? 0 : Heap()->ApproximateFreeBytes(); }

uint64_t PageMemory::LostRoomOf(uint64_t bytes) {
  if (!kEnabled || Heap() == nullptr) return 0;
  // Blocks are 3 % larger than nodes, on average.
  const uint64_t rest_of_blocks = bytes / 32;
  // All nodes lie in these used bytes, except large ones.
  const uint64_t used = std::max(Heap()->ApproximateUsedBytes(), bytes);
  const uint64_t lost = Heap()->ApproximateLostBytes();
  const double share = used == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(used);
  return std::min(rest_of_blocks + static_cast<uint64_t>(static_cast<double>(lost) * share), bytes / 8);
}

}  // namespace deut::dc

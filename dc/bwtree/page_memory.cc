#include "dc/bwtree/page_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "common/observe/log.h"
#include "common/runtime/huge_pages.h"
#include "common/sync/slab_caches.h"
#include "common/sync/slab_drain.h"
#include "common/sync/slab_heap.h"

namespace deut::dc {
namespace {

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(hwaddress_sanitizer)
constexpr bool kEnabled = false;
#else
constexpr bool kEnabled = true;
#endif

constexpr size_t kLeastReserved = size_t{1} << 30;

// Twice the memory of the machine, because room that is lost in thinly used slabs is addresses, too. At most half the
// addresses that the process may have: the rest is for the program's heap, threads and files.
size_t WantedAddresses() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  size_t wanted =
      pages <= 0 || page_bytes <= 0 ? kLeastReserved : 2 * static_cast<size_t>(pages) * static_cast<size_t>(page_bytes);
  wanted = std::max(wanted, kLeastReserved);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    wanted = std::min<size_t>(wanted, limit.rlim_cur / 2);
  return wanted;
}

struct Memory {
  SlabHeap& slabs;
  SlabCaches caches;
};

// Null: the system gives no addresses. Never destroyed, because static objects may free nodes while they are
// destroyed.
Memory* Slabs() {
  static Memory* const memory = []() -> Memory* {
    SlabHeap::Options options;
    options.huge_pages = HugePagesWanted();
    for (size_t bytes = WantedAddresses(); bytes >= kLeastReserved; bytes /= 2) {
      options.reserved_bytes = bytes;
      SlabHeap* const heap = SlabHeap::Create(options).release();
      if (heap != nullptr) return new Memory{*heap, SlabCaches(*heap)};
    }
    LogWarning("pages lie in the program's heap: the system gives no addresses for slabs (ulimit -v)");
    return nullptr;
  }();
  return memory;
}

// The thread's cache; null before its first use, and after its end.
constinit thread_local SlabCaches::Member* cache = nullptr;
constinit thread_local bool ended = false;

// Its destructor frees the blocks in the thread's cache when the thread ends. Destructors that run later use no cache.
struct ThreadExitHook {
  ~ThreadExitHook() {
    ended = true;
    SlabCaches::Member* const left = std::exchange(cache, nullptr);
    if (left != nullptr) Slabs()->caches.Leave(left);
  }
  // The first call constructs this thread-local object.
  void Arm() {}
};
thread_local ThreadExitHook thread_exit_hook;

__attribute__((noinline)) SlabCaches::Member* NewCache(Memory& memory) {
  if (ended) return nullptr;
  thread_exit_hook.Arm();
  return cache = memory.caches.Join();
}

SlabCaches::Member* OwnCache(Memory& memory) { return cache != nullptr ? cache : NewCache(memory); }

void ReportShortage() {
  static std::atomic<bool> reported{false};
  if (!reported.exchange(true, std::memory_order_relaxed))
    LogWarning("some pages lie in the program's heap: the system gives no more memory for slabs");
}

}  // namespace

void* PageMemory::Allocate(size_t bytes) {
  if (kEnabled && bytes <= SlabHeap::max_bytes()) {
    Memory* const memory = Slabs();
    if (memory != nullptr) [[likely]] {
      void* const block = memory->caches.Allocate(bytes, OwnCache(*memory));
      if (block != nullptr) [[likely]]
        return block;
      ReportShortage();
    }
  }
  return ::operator new(bytes);
}

void PageMemory::Free(void* memory) {
  if (kEnabled) {
    Memory* const slabs = Slabs();
    if (slabs != nullptr && slabs->slabs.Owns(memory)) [[likely]]
      return slabs->caches.Free(memory, OwnCache(*slabs));
  }
  ::operator delete(memory);
}

size_t PageMemory::BytesOf(size_t bytes) {
  return kEnabled && bytes <= SlabHeap::max_bytes() ? SlabHeap::BlockBytes(bytes) : bytes;
}

PageMemory::Figures PageMemory::figures() {
  if (!kEnabled || Slabs() == nullptr) return {};
  const SlabHeap::Figures of_heap = Slabs()->slabs.figures();
  return {of_heap.slab_bytes, of_heap.used_bytes};
}

uint64_t PageMemory::FreeBytes() { return !kEnabled || Slabs() == nullptr ? 0 : Slabs()->slabs.free_bytes(); }

uint64_t PageMemory::FreeBytesOf(uint64_t nodes) {
  const uint64_t free = FreeBytes();
  if (free == 0 || nodes == 0) return 0;
  // A share that is too small would let the room exceed the budget, so no cached block may count as a node of others.
  // Large nodes lie elsewhere, so there may also be more bytes of nodes than of blocks.
  const uint64_t not_of_others = nodes + Slabs()->caches.max_bytes();
  const uint64_t used = Slabs()->slabs.used_bytes();
  if (used <= not_of_others) return free;
  const auto own = static_cast<double>(nodes);
  return static_cast<uint64_t>(static_cast<double>(free) * (own / (own + static_cast<double>(used - not_of_others))));
}

void PageMemory::FlushIdleCaches() {
  if (kEnabled && Slabs() != nullptr) Slabs()->caches.FlushIdle();
}

void PageMemory::FlushCaches() {
  if (kEnabled && Slabs() != nullptr) Slabs()->caches.FlushAll();
}

PageMemory::Drain::Drain(uint64_t bytes)
    : drain_(kEnabled && Slabs() != nullptr ? std::make_unique<SlabDrain>(Slabs()->slabs, bytes) : nullptr) {}
PageMemory::Drain::~Drain() = default;

bool PageMemory::IsDraining(const void* memory) {
  return kEnabled && Slabs() != nullptr && Slabs()->slabs.Owns(memory) && Slabs()->slabs.IsDraining(memory);
}

}  // namespace deut::dc

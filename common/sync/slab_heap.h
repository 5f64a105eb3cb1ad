// SlabHeap: memory for objects of up to 64 KiB that come and go in all sizes, above all the pages of the data
// component, in slabs of 2 MiB. A slab is backed by one huge page of the system, and is returned to it as a whole or
// not at all, so huge pages stay whole.
// A general heap does not do that: it returns free memory in pieces of 4 KiB, each of which breaks a huge page up.
// jemalloc 5.3 besides rounds sizes between 16 and 32 KiB up to one of four and adds 4 KiB, a quarter on average; no
// setting or extent hook changes that. Its own allocator of huge pages (hpa) also returns them in parts.
// (The ideas: Bonwick, "The slab allocator", USENIX 1994; spans and caches of threads as in TCMalloc; Hunter et al.,
// "Beyond malloc efficiency to fleet efficiency", OSDI 2021: emptier huge pages are left to drain.)
//
// Shape. The heap reserves one range of addresses and divides it into slabs (slab_tables.h). A slab is divided into
//   spans of one size, 64, 128 or 512 KiB (slab_pool.h). A span is divided into blocks of one size class, nearly
//   without a rest.
//   Neighbouring size classes differ by 32 bytes or by 3 to 12 %. So a block is at most an eighth larger than was asked
//   for (blocks of less than 288 bytes: 32 bytes), and 3 % on average.
//   An odd number of cache lines lies between the beginnings of large blocks. Otherwise the headers of all pages would
//   compete for a few sets of the processor's cache.
//   All that the heap knows about slabs and spans lies outside them.
//
// States of a block. in use --Free--> cached --flush--> free --refill, Allocate--> cached or in use. Only blocks up to
//   Cache::kMaxBytes are cached. A cached block is linked into the list of a Cache, a free one into the list of its
//   span (through its own first word), or it has never been used and lies behind the span's used blocks.
// States of a span. none --NewSpan--> partial <--> full; partial --last block freed--> none. The class's mutex guards
//   it. Partial spans lie in four lists by occupancy. Blocks are taken from one span until it is full, and then from
//   one of the fullest list, of those compared the one in the fullest slab. So emptier spans and slabs drain. A cached
//   block counts as used, so a span without used blocks is in no thread's reach.
//   Spans of draining slabs (slab_drain.h) lie in a list of their own. Blocks are taken from them only when the system
//   gives no more memory. A span moves to that list, and back, when it is next looked at; nothing waits for that.
// Order of the mutexes: a class's, then the pool's. No call of the system is made under them, and no memory of a slab
//   or of the tables is touched for the first time: a page fault takes up to some milliseconds. So a refill links its
//   blocks after it has released the mutex, Free writes to its block before it takes the mutex, and the thread that
//   grows the heap holds neither. (A system that swaps may still fault on the link of a free block.)
// Winner and loser of each race.
//   - Two threads that allocate or free in one class at a time: the mutex of the class orders them.
//   - The free of a span's last block, against an allocation from that span: both hold the class's mutex. If the
//     allocation is first, the span has a used block and stays. Otherwise the span is in no list any more.
//   - The return of a slab's memory, against an allocation in it: see slab_pool.h.
// Waiting: as any heap, this one is not latch-free. A thread that stops inside a mutex, which it holds for some ten
//   nanoseconds, blocks the threads that need the same class. Blocks of up to Cache::kMaxBytes take the mutex once for
//   half a cache. Larger ones take it each time: to fill such a block takes a hundred times as long.
// Thread-safety: all methods from any thread; a Cache belongs to one thread at a time. Ownership: the caller that
//   allocated a block owns it. The heap owns its addresses.
// Errors: Allocate returns null when the reserved addresses or the memory of the system are used up, so that the
//   caller can ask another heap. After a refusal, the system is not asked at each allocation (slab_pool.h).
// Limits: blocks are aligned to 32 bytes. A block in use keeps its slab, and nothing moves blocks together by itself.
//   So memory is lost where blocks in use are spread thinly over slabs: `slab_bytes` less `used_bytes`. An owner that
//   can move its blocks gets that memory back with a SlabDrain.
//   A child that was forked while other threads ran must not use the heap: a mutex may be held there for ever.
#ifndef COMMON_SYNC_SLAB_HEAP_H_
#define COMMON_SYNC_SLAB_HEAP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/sync/slab_pool.h"
#include "common/sync/slab_tables.h"

namespace deut {

class SlabHeap {
 public:
  static constexpr size_t kSlabBytes = SlabTables::kSlabBytes;
  static constexpr size_t kGrowBytes = SlabPool::kSlabsPerGrowth * kSlabBytes;

  static constexpr size_t kClassCount = 93;  // of the size classes

  // Free blocks that one thread keeps for itself. Its initial state is all zeros, so it may be a constinit
  // thread-local object.
  class Cache {
   public:
    static constexpr size_t kMaxBytes = 2048;  // larger blocks are not cached
    static constexpr size_t kClassCount = 33;  // of the classes up to it
    // At most this number of blocks of a class, and at most about kMaxClassBytes, but at least eight blocks.
    static constexpr uint32_t kMaxBlocks = 32;
    static constexpr uint32_t kMaxClassBytes = 16 << 10;

   private:
    friend class SlabHeap;
    struct List {
      void* first = nullptr;
      uint32_t count = 0;
    };
    std::array<List, kClassCount> lists_;
  };

  struct Options {
    size_t reserved_bytes = size_t{64} << 30;  // addresses; rounded up to kGrowBytes
    bool huge_pages = false;                   // ask the system for huge pages
  };

  struct Figures {
    uint64_t slab_bytes = 0;  // bytes of slabs that may have memory of the system, spares included
    uint64_t used_bytes = 0;  // bytes of blocks in use or in caches
  };

  // Returns null if the system does not give the addresses.
  static std::unique_ptr<SlabHeap> Create(const Options& options);
  // The destructor gives all slabs back to the system, also those with blocks in use.
  SlabHeap(const SlabHeap&) = delete;
  SlabHeap& operator=(const SlabHeap&) = delete;

  // The greatest size of a block.
  static size_t max_bytes();
  // Bytes of the block that Allocate(bytes) returns. REQUIRES: bytes <= max_bytes().
  static size_t BlockBytes(size_t bytes);

  // `cache`: the calling thread's; null: none. Returns null if there is no memory. REQUIRES: bytes <= max_bytes().
  void* Allocate(size_t bytes, Cache* cache);
  // REQUIRES: `block` is from this heap.
  void Free(void* block, Cache* cache);
  // Frees all blocks of the cache.
  void Flush(Cache* cache);
  // Tells whether an address lies in this heap.
  bool Owns(const void* block) const { return tables_->Owns(block); }
  // Tells whether the block lies in a slab that is being emptied. REQUIRES: Owns(block).
  bool IsDraining(const void* block) const {
    return tables_->SlabOfBlock(block).draining.load(std::memory_order_relaxed);
  }

  // Exact while no other thread allocates or frees.
  Figures figures() const;
  // Bytes of blocks in use or in caches. One load, and exact.
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  // Bytes of slabs that are in no such block. Exact while no other thread allocates or frees.
  uint64_t free_bytes() const;
  // The greatest number of bytes of the blocks in one cache.
  static size_t max_cached_bytes();

 private:
  friend class SlabDrain;
  using Span = SlabTables::Span;
  using Slab = SlabTables::Slab;
  static constexpr uint8_t kBins = 4;           // lists by occupancy
  static constexpr uint8_t kDrainBin = kBins;   // list of spans in draining slabs
  static constexpr uint8_t kNoBin = kBins + 1;  // the span is full, or in no use
  static constexpr int kCompared = 8;
  static constexpr int kMaxMoved = 64;

  struct alignas(128) ClassState {
    Mutex mutex{RealRuntime()};
    std::array<Span*, kBins + 1> bins DEUT_GUARDED_BY(mutex) = {};
    Span* current DEUT_GUARDED_BY(mutex) = nullptr;  // the span of the next block, until it is full; null: none chosen
  };

  SlabHeap(const Options& options, std::unique_ptr<SlabTables> tables);

  Span* SpanOf(const void* block, size_t size_class) const;
  size_t ClassOfBlock(const void* block) const;
  bool Drains(const Span* span) const { return tables_->SlabOfSpan(span).draining.load(std::memory_order_relaxed); }

  // Takes at least one block, if there is memory, and at most all that `blocks` has room for. Returns their number.
  size_t TakeBlocks(size_t size_class, std::span<void*> blocks);
  // `any`: also from a draining slab. Returns null if there is no block, until the pool has grown.
  void* TakeBlock(size_t size_class, bool any, ClassState& state) DEUT_REQUIRES(state.mutex);
  Span* FullestSpan(ClassState& state) const DEUT_REQUIRES(state.mutex);
  // Returns slabs (linked by `next`) whose memory the caller returns to the system once it holds no mutex; or null.
  Slab* PutBlock(void* block, size_t size_class, ClassState& state) DEUT_REQUIRES(state.mutex);
  static void UnlinkSpan(Span* span, ClassState& state) DEUT_REQUIRES(state.mutex);
  static void LinkSpan(Span* span, uint8_t bin, ClassState& state) DEUT_REQUIRES(state.mutex);
  void Rebin(Span* span, size_t size_class, ClassState& state) DEUT_REQUIRES(state.mutex);
  Span* NewSpan(size_t size_class);
  void* Refill(size_t size_class, Cache* cache);
  void FlushAllBut(uint32_t kept, size_t size_class, Cache* cache);

  // For SlabDrain: the slabs with the fewest bytes in use, at most `count`. The figures may be old.
  std::vector<uint32_t> ThinnestSlabs(size_t count) const;
  uint64_t UsedBytesOf(size_t slab) const;

  const std::unique_ptr<SlabTables> tables_;
  SlabPool pool_;
  alignas(128) std::atomic<uint64_t> used_bytes_{0};
  std::array<ClassState, kClassCount> classes_;
};

}  // namespace deut

#endif  // COMMON_SYNC_SLAB_HEAP_H_

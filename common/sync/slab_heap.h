// SlabHeap: memory for objects of up to 64 KiB that come and go in all sizes, above all the pages of the data
// component, in slabs of 2 MiB. A slab is backed by one huge page of the system, and is returned to it as a whole or
// not at all, so huge pages stay whole.
// A general heap does not do that: it returns free memory in pieces of 4 KiB, each of which breaks a huge page up.
// jemalloc 5.3 besides rounds sizes between 16 and 32 KiB up to one of four and adds 4 KiB, a quarter on average; no
// setting or extent hook changes that. Its own allocator of huge pages (hpa) also returns them in parts.
// (The ideas: Bonwick, "The slab allocator", USENIX 1994; spans and caches of threads as in TCMalloc; Hunter et al.,
// "Beyond malloc efficiency to fleet efficiency", OSDI 2021: emptier huge pages are left to drain.)
//
// Shape. The heap reserves one range of addresses and divides it into slabs. A slab is divided into spans of one
//   size, 64, 128 or 512 KiB. A span is divided into blocks of one size class, nearly without a rest.
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
// States of a slab. The pool's mutex guards it.
//   untouched --first use--> partial <--> full         has spans of one size; lists by the exact number of spans
//   partial --last span freed--> spare                 keeps its memory; its next spans may have another size
//   spare --more spares than wanted--> leaving         in no list; the thread that made it so returns the memory
//   leaving --memory returned--> returned              addresses without memory; the system gives zeros at first use
//   returned or spare --NewSpan--> partial             spares first, then returned ones, then untouched ones
// Order of the mutexes: a class's, then the pool's. No call of the system is made under them, except when the heap
//   grows (kGrowBytes at once). Memory is returned outside both.
// Winner and loser of each race.
//   - Two threads that allocate or free in one class at a time: the mutex of the class orders them.
//   - The free of a span's last block, against an allocation from that span: both hold the class's mutex. If the
//     allocation is first, the span has a used block and stays. Otherwise the span is in no list any more.
//   - The return of a slab's memory, against an allocation in it: the returning thread takes the slab out of the
//     spares under the pool's mutex first (`pool.slab_out_first`). So the allocating thread takes another slab. A slab
//     that was listed meanwhile would lose what the other thread writes.
// Waiting: as any heap, this one is not latch-free. A thread that stops inside a mutex, which it holds for some ten
//   nanoseconds, blocks the threads that need the same class. Blocks of up to Cache::kMaxBytes take the mutex once for
//   half a cache. Larger ones take it each time: to fill such a block takes a hundred times as long.
// Thread-safety: all methods from any thread; a Cache belongs to one thread at a time. Ownership: the caller that
//   allocated a block owns it. The heap owns its addresses.
// Errors: Allocate returns null when the reserved addresses or the memory of the system are used up, so that the
//   caller can ask another heap.
// Limits: blocks are aligned to 32 bytes. A block in use keeps its slab, and nothing moves blocks together. So memory is
//   lost where blocks in use are spread thinly over slabs: `slab_bytes` less `used_bytes` and `spare_bytes`.
#ifndef COMMON_SYNC_SLAB_HEAP_H_
#define COMMON_SYNC_SLAB_HEAP_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

class SlabHeap {
 public:
  static constexpr size_t kSlabBytes = size_t{2} << 20;
  static constexpr size_t kGrowBytes = 16 * kSlabBytes;

  // Sizes and places, computed at compile time.
  struct SizeClass {
    uint32_t block_bytes = 0;
    uint32_t span_kind = 0;
    uint32_t blocks = 0;  // of a span
  };
  static constexpr size_t kMaxClasses = 160;

  // Free blocks that one thread keeps for itself. Its initial state is all zeros, so it may be a constinit
  // thread-local object.
  class Cache {
   public:
    static constexpr size_t kMaxBytes = 2048;  // larger blocks are not cached
    // At most this number of blocks of a class, and at most about kMaxClassBytes, but at least eight blocks.
    static constexpr uint32_t kMaxBlocks = 32;
    static constexpr uint32_t kMaxClassBytes = 16 << 10;

   private:
    friend class SlabHeap;
    struct List {
      void* first = nullptr;
      uint32_t count = 0;
    };
    std::array<List, 64> lists_;
  };

  struct Options {
    size_t reserved_bytes = size_t{64} << 30;  // addresses; rounded up to kGrowBytes
    bool huge_pages = false;                   // ask the system for huge pages
    // Empty slabs that keep their memory: at least `min_spares`, and one for each `slabs_per_spare` slabs in use.
    uint32_t min_spares = 4;
    uint32_t slabs_per_spare = 32;
  };

  struct Figures {
    uint64_t slab_bytes = 0;      // bytes of slabs that may have memory of the system, spares included
    uint64_t spare_bytes = 0;     // bytes of empty slabs among them
    uint64_t used_bytes = 0;      // bytes of blocks in use or in caches
    uint64_t slabs_returned = 0;  // slabs whose memory was returned so far
  };

  // Returns null if the system does not give the addresses.
  static std::unique_ptr<SlabHeap> Create(const Options& options);
  // Gives all slabs back to the system, also those with blocks in use.
  ~SlabHeap();
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
  bool Owns(const void* block) const {
    return reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(base_) < reserved_bytes_;
  }

  // Exact while no other thread allocates or frees. Takes about a microsecond.
  Figures figures() const;
  // Each takes at most three loads. They differ from exact figures by at most kCountedStep for each size class.
  uint64_t ApproximateUsedBytes() const;
  // Bytes of the slabs that are in no block in use.
  uint64_t ApproximateFreeBytes() const;
  // Those of the free bytes that new blocks do not fill: the free bytes when the heap last needed more memory,
  // averaged over a few times. Blocks that are freed do not raise it, because others come in their place.
  uint64_t ApproximateLostBytes() const;
  static constexpr int64_t kCountedStep = 32 << 10;

 private:
  static constexpr size_t kUnitBytes = size_t{64} << 10;
  static constexpr size_t kUnitsPerSlab = kSlabBytes / kUnitBytes;
  static constexpr size_t kSpanKinds = 3;
  static constexpr uint8_t kBins = 4;
  static constexpr uint8_t kNoBin = kBins;
  static constexpr int kCompared = 8;

  // The state of a span, kept for its first unit.
  struct Span {
    void* free = nullptr;  // freed blocks, linked through their first words
    Span* next = nullptr;
    Span* previous = nullptr;
    uint16_t used = 0;     // blocks in use or in caches
    uint16_t begun = 0;    // blocks that have ever been used; those behind them are free, too
    uint8_t bin = kNoBin;  // the list that it is in; kNoBin: it is full, or in no use
  };
  struct Slab {
    Slab* next = nullptr;
    Slab* previous = nullptr;
    uint32_t free_spans = 0;             // a bit for each
    std::atomic<uint8_t> used_spans{0};  // written under the pool's mutex
    uint8_t span_kind = 0;
  };
  struct alignas(128) ClassState {
    Mutex mutex{RealRuntime()};
    std::array<Span*, kBins> bins DEUT_GUARDED_BY(mutex) = {};
    Span* current DEUT_GUARDED_BY(mutex) = nullptr;  // the span of the next block, until it is full; null: none chosen
    std::atomic<int64_t> used_bytes{0};              // written under the mutex
    int64_t counted_bytes DEUT_GUARDED_BY(mutex) = 0;  // of them, those that are in used_bytes_ of the heap
  };
  struct Tables;

  SlabHeap(const Options& options, char* base, size_t reserved_bytes, void* tables, size_t table_bytes);

  char* BlocksOf(const Span* span) const;
  Span* SpanOf(const void* block, size_t size_class) const;
  size_t ClassOfBlock(const void* block) const;

  Span* FullestSpan(const ClassState& state) const DEUT_REQUIRES(state.mutex);
  void* TakeBlock(size_t size_class, ClassState& state) DEUT_REQUIRES(state.mutex);
  // Returns slabs (linked by `next`) whose memory the caller returns to the system once it holds no mutex; or null.
  Slab* PutBlock(void* block, size_t size_class, ClassState& state) DEUT_REQUIRES(state.mutex);
  void UnlinkSpan(Span* span, ClassState& state) DEUT_REQUIRES(state.mutex);
  void Rebin(Span* span, size_t size_class, ClassState& state) DEUT_REQUIRES(state.mutex);
  void CountUsed(int64_t bytes, ClassState& state) DEUT_REQUIRES(state.mutex);
  void* Refill(size_t size_class, Cache* cache);
  void FlushAllBut(uint32_t kept, size_t size_class, Cache* cache);

  Span* NewSpan(size_t size_class) DEUT_EXCLUDES(pool_mutex_);
  Slab* FreeSpan(Span* span, size_t size_class) DEUT_EXCLUDES(pool_mutex_);
  // Returns null if there is no memory.
  Slab* NewSlab(uint8_t span_kind) DEUT_REQUIRES(pool_mutex_);
  bool Grow() DEUT_REQUIRES(pool_mutex_);
  void ListSlab(Slab* slab) DEUT_REQUIRES(pool_mutex_);
  void UnlistSlab(Slab* slab) DEUT_REQUIRES(pool_mutex_);
  char* MemoryOf(const Slab* slab) const;
  void ReturnMemory(Slab* leaving) DEUT_EXCLUDES(pool_mutex_);

  const Options options_;
  char* const base_;
  const size_t reserved_bytes_;
  void* const tables_;
  const size_t table_bytes_;
  Span* const spans_;          // for each unit
  Slab* const slabs_;          // for each slab
  uint8_t* const unit_class_;  // for each unit; written before the span has a block, constant while it has one

  alignas(128) std::atomic<int64_t> used_bytes_{0};  // see kCountedStep
  std::atomic<uint64_t> slab_bytes_{0};
  std::atomic<uint64_t> free_at_growth_{0};  // written under pool_mutex_

  alignas(128) Mutex pool_mutex_{RealRuntime()};
  // Slabs with free spans, by span kind and number of used spans less one; and a bit for each list that is not empty.
  std::array<std::array<Slab*, kUnitsPerSlab>, kSpanKinds> partial_ DEUT_GUARDED_BY(pool_mutex_) = {};
  std::array<uint32_t, kSpanKinds> partial_lists_ DEUT_GUARDED_BY(pool_mutex_) = {};
  Slab* spares_ DEUT_GUARDED_BY(pool_mutex_) = nullptr;
  Slab* returned_ DEUT_GUARDED_BY(pool_mutex_) = nullptr;
  size_t slabs_in_use_ DEUT_GUARDED_BY(pool_mutex_) = 0;
  std::atomic<size_t> spare_count_{0};                  // written under pool_mutex_
  std::atomic<uint64_t> returned_count_{0};             // likewise
  size_t untouched_ DEUT_GUARDED_BY(pool_mutex_) = 0;   // index of the first slab that was never used
  size_t accessible_ DEUT_GUARDED_BY(pool_mutex_) = 0;  // slabs below this index may be read and written

  std::array<ClassState, kMaxClasses> classes_;
};

}  // namespace deut

#endif  // COMMON_SYNC_SLAB_HEAP_H_

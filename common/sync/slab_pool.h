// SlabPool: the slabs of a slab heap (slab_heap.h): which of them have memory, which have free spans, and which are
// being emptied.
//
// States of a slab. The pool's mutex guards it.
//   untouched --first use--> partial <--> full         has spans of one size; lists by the exact number of spans
//   partial --last span freed--> spare                 keeps its memory; its next spans may have another size
//   spare --more spares than wanted--> leaving         in no list; the thread that made it so returns the memory
//   leaving --memory returned--> returned              addresses without memory; the system gives zeros at first use
//   leaving --the system refuses--> spare              locked memory: the slab still has it
//   returned or spare --TakeSpan--> partial            spares first, then returned ones, then untouched ones
// Draining. A partial or full slab may besides be draining (BeginDrain). Then it is in no list, so TakeSpan takes no
//   span of it. When its last span is freed, it leaves, and is never a spare. EndDrain puts the others back.
// Calls of the system are made outside the mutex: by Grow, which the caller calls when TakeSpan finds no slab, and by
//   ReturnMemory. Threads that need another slab wait for the one that grows the heap; no others do.
// Winner and loser of the return of a slab's memory, against an allocation in it: the returning thread takes the slab
//   out of the spares under the mutex first (`pool.slab_out_first`). So the allocating thread takes another slab. A
//   slab that was listed meanwhile would lose what the other thread writes.
// A refused growth. The system may refuse memory for a long time, and each refused call takes the lock of the address
//   space. So the next kUnaskedGrowths calls of Grow fail without asking. Slabs that are freed meanwhile are used.
// Thread-safety: all methods from any thread. Ownership: borrows the tables. Errors: TakeSpan and Grow say so.
#ifndef COMMON_SYNC_SLAB_POOL_H_
#define COMMON_SYNC_SLAB_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/sync/slab_tables.h"

namespace deut {

class SlabPool {
 public:
  using Slab = SlabTables::Slab;
  static constexpr size_t kSlabsPerGrowth = 16;
  static constexpr uint32_t kUnaskedGrowths = 1024;
  static constexpr size_t kNoUnit = SIZE_MAX;

  // One empty slab keeps its memory for each kSlabsPerSpare slabs in use, and at least one.
  static constexpr size_t kSlabsPerSpare = 64;

  // `huge_pages`: ask the system for huge pages.
  SlabPool(bool huge_pages, SlabTables& tables) : huge_pages_(huge_pages), tables_(tables) {}
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  // Takes a span, and returns its first unit. kNoUnit: the caller calls Grow outside its mutexes, and tries again.
  size_t TakeSpan(uint8_t span_kind) DEUT_EXCLUDES(mutex_);
  // Returns slabs (linked by `next`) that the caller hands to ReturnMemory once it holds no mutex; or null.
  Slab* PutSpan(uint8_t span_kind, size_t unit) DEUT_EXCLUDES(mutex_);
  void ReturnMemory(Slab* leaving) DEUT_EXCLUDES(mutex_);
  // Returns true if there may be a slab without spans now; false if there is no memory, or no addresses.
  bool Grow() DEUT_EXCLUDES(mutex_);

  // Marks slabs as draining, and returns those that were marked: the others are empty by now, or another drain has
  // marked them.
  std::vector<uint32_t> BeginDrain(std::span<const uint32_t> slabs) DEUT_EXCLUDES(mutex_);
  // Takes the marks back from the slabs that BeginDrain returned, except from those that were emptied. (A slab that
  // was emptied, used again and marked by another drain loses that mark, and is then not emptied.)
  void EndDrain(std::span<const uint32_t> slabs) DEUT_EXCLUDES(mutex_);

  // Slabs below this index were in use at some time.
  size_t touched() const DEUT_EXCLUDES(mutex_);
  // Exact: bytes of slabs that may have memory of the system, spares included.
  uint64_t slab_bytes() const { return slab_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kSpanKinds = SlabTables::kSpanBytes.size();

  // Returns null if no slab without spans may be used.
  Slab* TakeSlab(uint8_t span_kind) DEUT_REQUIRES(mutex_);
  void AddSpare(Slab* slab) DEUT_REQUIRES(mutex_);
  Slab* TakeSpare() DEUT_REQUIRES(mutex_);
  // REQUIRES for both: the slab has used spans when it is listed; its figures have not changed since.
  void ListSlab(Slab* slab) DEUT_REQUIRES(mutex_);
  void UnlistSlab(Slab* slab) DEUT_REQUIRES(mutex_);
  static bool IsListed(const Slab& slab) {
    return slab.free_spans != 0 && !slab.draining.load(std::memory_order_relaxed);
  }

  const bool huge_pages_;
  SlabTables& tables_;
  std::atomic<uint64_t> slab_bytes_{0};

  Mutex grow_mutex_{RealRuntime()};                            // before mutex_
  uint32_t unasked_growths_ DEUT_GUARDED_BY(grow_mutex_) = 0;  // calls of Grow that still fail without asking

  alignas(128) mutable Mutex mutex_{RealRuntime()};
  // Slabs with free spans, by span kind and number of used spans less one; and a bit for each list that is not empty.
  std::array<std::array<Slab*, SlabTables::kUnitsPerSlab>, kSpanKinds> partial_ DEUT_GUARDED_BY(mutex_) = {};
  std::array<uint32_t, kSpanKinds> partial_lists_ DEUT_GUARDED_BY(mutex_) = {};
  Slab* spares_ DEUT_GUARDED_BY(mutex_) = nullptr;
  size_t spare_count_ DEUT_GUARDED_BY(mutex_) = 0;
  Slab* returned_ DEUT_GUARDED_BY(mutex_) = nullptr;
  size_t slabs_in_use_ DEUT_GUARDED_BY(mutex_) = 0;
  size_t untouched_ DEUT_GUARDED_BY(mutex_) = 0;   // index of the first slab that was never used
  size_t accessible_ DEUT_GUARDED_BY(mutex_) = 0;  // slabs below this index may be read and written
};

}  // namespace deut

#endif  // COMMON_SYNC_SLAB_POOL_H_

// SlabCaches: the caches of all threads that use one SlabHeap (slab_heap.h). Another thread can flush a thread's cache
// while its owner does not use it. Otherwise the blocks that idle threads keep would hold back slabs: each block 2 MiB.
//
// States of a member. free <--Enter, Exit--> in use (by its owner); free --claim--> claimed (by the flushing thread)
//   --release--> free. An owner that finds its cache claimed does without a cache for that call; nobody waits.
// The race of Enter and claim. Each side stores its own word first (`uses_`, `claimed_`), and then loads the other's
//   (`pool.cache_looks_first`). The owner has no fence in between, because it would cost as much as the allocation. In
//   its place the flushing thread makes all threads of the process pass one, between its store and its load
//   (membarrier(2)). So at least one of both sees the other, and leaves the cache alone.
// What one side writes into the cache, the other one sees: each releases its word when it is done, and acquires the
//   other's before it touches the cache.
// Where the system refuses membarrier, the caches of other threads are never flushed.
// Thread-safety: Allocate and Free by the member's thread; the others from any thread. Ownership: borrows the heap;
//   owns the members. Errors: as those of SlabHeap.
#ifndef COMMON_SYNC_SLAB_CACHES_H_
#define COMMON_SYNC_SLAB_CACHES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/sync/slab_heap.h"
#include "common/testing/test_points.h"

namespace deut {

class SlabCaches {
 public:
  // The cache of one thread.
  class alignas(128) Member {
    friend class SlabCaches;
    SlabHeap::Cache cache_;
    std::atomic<uint32_t> uses_{0};  // odd: in use. Written by the owner
    std::atomic<bool> claimed_{false};
    // Guarded by the mutex of SlabCaches.
    bool wanted_ = false;  // this flush is to flush it
    uint32_t seen_ = 0;    // `uses_` when FlushIdle last looked
    Member* next_ = nullptr;
    Member* previous_ = nullptr;
  };

  explicit SlabCaches(SlabHeap& heap);
  SlabCaches(const SlabCaches&) = delete;
  SlabCaches& operator=(const SlabCaches&) = delete;

  // Returns a cache for the calling thread. A thread that ends without Leave leaves it behind; FlushIdle then frees its
  // blocks.
  Member* Join() DEUT_EXCLUDES(mutex_);
  // Frees the cache with its blocks. The calling thread does not use it any more.
  void Leave(Member* member) DEUT_EXCLUDES(mutex_);

  // As the methods of SlabHeap. `member`: the calling thread's; null: none.
  void* Allocate(size_t bytes, Member* member) {
    if (member == nullptr || !Enter(member)) return heap_.Allocate(bytes, nullptr);
    void* const block = heap_.Allocate(bytes, &member->cache_);
    Exit(member);
    return block;
  }
  void Free(void* block, Member* member) {
    if (member == nullptr || !Enter(member)) return heap_.Free(block, nullptr);
    heap_.Free(block, &member->cache_);
    Exit(member);
  }

  // No more bytes than this are in blocks that lie in caches.
  size_t max_bytes() const { return count_.load(std::memory_order_relaxed) * SlabHeap::max_cached_bytes(); }

  // Frees the blocks in the caches that their owners have not used since the last call.
  void FlushIdle() DEUT_EXCLUDES(mutex_) { FlushSome(/*idle_only=*/true); }
  // Frees the blocks in all caches that are not in use at this moment.
  void FlushAll() DEUT_EXCLUDES(mutex_) { FlushSome(/*idle_only=*/false); }

 private:
  // Returns false if the cache is claimed.
  static bool Enter(Member* member) {
    member->uses_.store(member->uses_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the processor's fence is the flushing thread's
    if (!member->claimed_.load(std::memory_order_acquire) || DEUT_OMITTED("pool.cache_looks_first")) [[likely]]
      return true;
    Exit(member);
    return false;
  }
  static void Exit(Member* member) {
    member->uses_.store(member->uses_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void FlushSome(bool idle_only) DEUT_EXCLUDES(mutex_);

  SlabHeap& heap_;
  const bool can_flush_others_;
  std::atomic<size_t> count_{0};  // of the members
  Mutex mutex_{RealRuntime()};
  Member* members_ DEUT_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace deut

#endif  // COMMON_SYNC_SLAB_CACHES_H_

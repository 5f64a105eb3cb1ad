// SlabCaches: the caches of all threads that use one SlabHeap (slab_heap.h). Another thread can flush a thread's cache
// while its owner does not use it. Otherwise the blocks that idle threads keep would hold back slabs: each block 2 MiB.
//
// Each cache has a lock. The owner holds it while it allocates or frees one block; another thread holds it while it
//   flushes the cache. Nobody waits for it: an owner that finds it taken goes around its cache, and a flush skips the
//   caches whose lock is taken.
// Winner and loser of the race for a lock. The one that changes it from free to taken uses the cache, the other one
//   leaves it alone (`pool.cache_locked`). To give it back is a release, to take it an acquire, so each sees what the
//   other has written into the cache.
// Cost: the lock lies beside its cache, and others touch it only to flush. So it is uncontended: one exchange, without
//   a miss.
// Thread-safety: Allocate and Free by the member's thread; the others from any thread. Ownership: borrows the heap;
//   owns the members. Errors: as those of SlabHeap.
#ifndef COMMON_SYNC_SLAB_CACHES_H_
#define COMMON_SYNC_SLAB_CACHES_H_

#include <atomic>
#include <cstddef>

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
    std::atomic<bool> locked_{false};
    bool used_ = false;  // since FlushIdle last looked. Guarded by the lock, as the cache
    SlabHeap::Cache cache_;
    // Guarded by the mutex of SlabCaches.
    Member* next_ = nullptr;
    Member* previous_ = nullptr;
  };

  explicit SlabCaches(SlabHeap& heap) : heap_(heap) {}
  SlabCaches(const SlabCaches&) = delete;
  SlabCaches& operator=(const SlabCaches&) = delete;

  // Returns a cache for the calling thread. A thread that ends without Leave leaves it behind; FlushIdle then frees its
  // blocks.
  Member* Join() DEUT_EXCLUDES(mutex_);
  // Frees the cache with its blocks. The calling thread does not use it any more.
  void Leave(Member* member) DEUT_EXCLUDES(mutex_);

  // As the methods of SlabHeap. `member`: the calling thread's; null: none.
  void* Allocate(size_t bytes, Member* member) {
    if (member == nullptr || !Lock(member)) return heap_.Allocate(bytes, nullptr);
    void* const block = heap_.Allocate(bytes, &member->cache_);
    Unlock(member);
    return block;
  }
  void Free(void* block, Member* member) {
    if (member == nullptr || !Lock(member)) return heap_.Free(block, nullptr);
    heap_.Free(block, &member->cache_);
    Unlock(member);
  }

  // No more bytes than this are in blocks that lie in caches.
  size_t max_bytes() const { return count_.load(std::memory_order_relaxed) * SlabHeap::max_cached_bytes(); }

  // Frees the blocks in the caches that their owners have not used since the last call.
  void FlushIdle() DEUT_EXCLUDES(mutex_) { FlushSome(/*idle_only=*/true); }
  // Frees the blocks in all caches that are not in use at this moment.
  void FlushAll() DEUT_EXCLUDES(mutex_) { FlushSome(/*idle_only=*/false); }

 private:
  // For the owner. Returns false if the cache is being flushed.
  static bool Lock(Member* member) {
    if (member->locked_.exchange(true, std::memory_order_acquire) && DEUT_STEP("pool.cache_locked")) [[unlikely]]
      return false;
    member->used_ = true;
    return true;
  }
  static void Unlock(Member* member) { member->locked_.store(false, std::memory_order_release); }
  void FlushSome(bool idle_only) DEUT_EXCLUDES(mutex_);

  SlabHeap& heap_;
  std::atomic<size_t> count_{0};  // of the members
  Mutex mutex_{RealRuntime()};
  Member* members_ DEUT_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace deut

#endif  // COMMON_SYNC_SLAB_CACHES_H_

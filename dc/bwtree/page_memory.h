// PageMemory: the memory of the nodes of pages: bases, deltas, and the room behind deltas. It is one SlabHeap
// (common/sync/slab_heap.h) for the process, as there is one heap for the process, and with a cache for each thread.
// So nodes lie in whole huge pages, where the program's heap has huge pages (common/runtime/huge_pages.h).
// Nodes of more than 64 KiB come from the program's heap. So do all nodes when the system gives the slabs no addresses
// or no memory; the log says so once. In a sanitizer build every node is an allocation of its own, so that a use after
// free is noticed.
// Accounting. A component counts the bytes of its nodes as blocks (BytesOf), which is exact. The free bytes of the
// slabs are exact, too, but belong to the process: each component counts the share that its nodes have of all nodes
// (FreeBytesOf). With one component that is all of it. With several, the shares add up to all of it or more, and each
// component lowers its own by evicting or moving its pages.
// Blocks in the threads' caches are no nodes. How many there are is not known, so as many as fit count as cached. A
// component beside others whose nodes together are fewer than that therefore counts all free bytes.
// Several data components in one process share the slabs. When they have ended, a spare slab stays.
// Thread-safety: any thread, also while it ends. Ownership: the caller that allocated memory owns it. Errors: as those
// of operator new, when the program's heap has no memory either.
#ifndef DC_BWTREE_PAGE_MEMORY_H_
#define DC_BWTREE_PAGE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace deut {
class SlabDrain;
}

namespace deut::dc {

class PageMemory {
 public:
  // The memory is aligned to kAlignment bytes or more.
  static constexpr size_t kAlignment = 16;
  static void* Allocate(size_t bytes);
  static void Free(void* memory);
  // The bytes that an allocation of `bytes` bytes takes: those of its block.
  static size_t BytesOf(size_t bytes);

  struct Figures {
    uint64_t slab_bytes = 0;  // bytes of slabs, which are resident
    uint64_t used_bytes = 0;  // bytes of them in nodes, and in the threads' caches
  };
  // Returns the exact figures of the process; zeros in a sanitizer build.
  static Figures figures();

  // Bytes of the slabs that are in no node and no cache.
  static uint64_t FreeBytes();
  // The share of FreeBytes() that counts for nodes of `nodes` bytes: none of it for none.
  static uint64_t FreeBytesOf(uint64_t nodes);

  // Frees the nodes that threads keep in their caches: those of threads that have used no node since the last call, or
  // of all threads that use none at this moment.
  static void FlushIdleCaches();
  static void FlushCaches();

  // While it lives, thinly used slabs of `bytes` bytes are being emptied (slab_drain.h).
  class Drain {
   public:
    explicit Drain(uint64_t bytes);
    ~Drain();
    Drain(const Drain&) = delete;
    Drain& operator=(const Drain&) = delete;

   private:
    const std::unique_ptr<SlabDrain> drain_;
  };
  // Tells whether this memory keeps a slab from being emptied.
  static bool IsDraining(const void* memory);
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_MEMORY_H_

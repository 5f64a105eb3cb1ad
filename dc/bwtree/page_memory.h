// PageMemory: the memory of the nodes of pages: bases, deltas, and the room behind deltas. It is one SlabHeap
// (common/sync/slab_heap.h) for the process, as there is one heap for the process, and with a cache for each thread.
// So nodes lie in whole huge pages, where the program's heap has huge pages (common/runtime/huge_pages.h).
// Nodes of more than 64 KiB come from the program's heap. So do all nodes when the system gives the slabs no addresses
// or no memory. In a sanitizer build every node is an allocation of its own, so that a use after free is noticed.
// Several data components in one process share the slabs; nothing of a component stays behind when it ends.
// Thread-safety: any thread, also while it ends. Ownership: the caller that allocated memory owns it. Errors: as those
// of operator new, when the program's heap has no memory either.
#ifndef DC_BWTREE_PAGE_MEMORY_H_
#define DC_BWTREE_PAGE_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace deut::dc {

class PageMemory {
 public:
  // The memory is aligned to 16 bytes or more.
  static void* Allocate(size_t bytes);
  static void Free(void* memory);

  struct Figures {
    uint64_t slab_bytes = 0;  // bytes of slabs, which are resident
    uint64_t used_bytes = 0;  // bytes of them in nodes, and in the threads' caches
  };
  // Of the process, exactly. Zeros in a sanitizer build.
  static Figures figures();

  // Bytes of the slabs that are in no node and no cache, approximately.
  static uint64_t FreeBytes();
  // Resident bytes that `bytes` bytes of nodes take in addition, for a component's memory budget: the rest of their
  // blocks, and a share of the room in slabs that new nodes do not fill (SlabHeap::ApproximateLostBytes). At most an
  // eighth of `bytes`.
  // Room that evicted pages leave does not count: the pages that are loaded next fill it. If it counted, evicting
  // would lower the counted bytes only after an eighth of all pages.
  static uint64_t LostRoomOf(uint64_t bytes);
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_MEMORY_H_

// SlabDrain: while it lives, some thinly used slabs of a SlabHeap are being emptied, so that their memory can return to
// the system. The heap gives no more blocks from them. The owner of the blocks moves its blocks out of them: it
// allocates new ones, and frees those for which SlabHeap::IsDraining is true.
// Work: the thinnest slabs are chosen, so at most as many bytes are moved as the slabs have on average, for each slab:
//   to get back M bytes, at most M * used / slab_bytes. A moved block may need a new span, if no span of its class has
//   room: at most one for each class.
// Several drains at a time: a slab is emptied by the one that has marked it first.
// Thread-safety: one thread; others may use the heap meanwhile. Ownership: borrows the heap. Errors: none.
#ifndef COMMON_SYNC_SLAB_DRAIN_H_
#define COMMON_SYNC_SLAB_DRAIN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/sync/slab_heap.h"

namespace deut {

class SlabDrain {
 public:
  // `bytes`: the memory of the slabs that are to be emptied. Takes about 0.1 ms for each GiB of slabs.
  SlabDrain(SlabHeap& heap, uint64_t bytes)
      : heap_(heap),
        slabs_(heap.pool_.BeginDrain(
            heap.ThinnestSlabs(static_cast<size_t>((bytes + SlabHeap::kSlabBytes - 1) / SlabHeap::kSlabBytes)))) {}
  ~SlabDrain() { heap_.pool_.EndDrain(slabs_); }
  SlabDrain(const SlabDrain&) = delete;
  SlabDrain& operator=(const SlabDrain&) = delete;

 private:
  SlabHeap& heap_;
  const std::vector<uint32_t> slabs_;
};

}  // namespace deut

#endif  // COMMON_SYNC_SLAB_DRAIN_H_

// BlockPool: memory for small objects that one thread allocates and another frees, over and over. The writers
// allocate versions, postings and transaction records; the collector frees them.
// The heap keeps only a few blocks of a size with the thread that freed them. The rest go back and forth through
// chunks and lists that threads share. That costs either thread more than everything else it does to the object.
// (The idea: Bonwick and Adams, "Magazines and Vmem", USENIX 2001.)
//
// Shape. A thread has two magazines for each size class; it takes blocks from them and puts freed blocks into them.
//   Full magazines that it does not need go to the class's depot, and come back from there. Each block is a separate
//   allocation of the heap, and is returned to the heap when the depot holds enough.
// A thread's magazines are its own. Threads share only the stacks of the depots (magazine_stack.h).
// There is one pool for the process, as there is one heap. Nobody owns the blocks in it.
// In a sanitizer build every allocation and every free goes to the heap, so that a use after free is noticed.
// Thread-safety: any thread, also while it ends. Ownership: the caller that allocated a block owns it.
// Limits: a thread keeps at most 2 * Magazine::kBlocks blocks of a class, a depot about kDepotBytes.
#ifndef COMMON_SYNC_BLOCK_POOL_H_
#define COMMON_SYNC_BLOCK_POOL_H_

#include <cstddef>

namespace deut {

class BlockPool {
 public:
  static constexpr size_t kClassBytes = 32;
  static constexpr size_t kMaxBytes = 640;  // larger blocks come from the heap
  static constexpr size_t kDepotBytes = size_t{4} << 20;

  static void* Allocate(size_t bytes);
  // REQUIRES: `block` is from Allocate(bytes).
  static void Free(void* block, size_t bytes);

  // Approximate number of full magazines in the depot of the class to which this size belongs.
  static size_t DepotMagazines(size_t bytes);
  // Approximate bytes of the blocks in all depots: at most kMaxBytes / kClassBytes times kDepotBytes.
  static size_t DepotBytes();
  // False in a sanitizer build.
  static bool enabled();
};

// Base of classes whose objects are allocated from the pool, each by itself.
class PoolAllocated {
 public:
  static void* operator new(size_t bytes) { return BlockPool::Allocate(bytes); }
  static void operator delete(void* object, size_t bytes) { BlockPool::Free(object, bytes); }
};

}  // namespace deut

#endif  // COMMON_SYNC_BLOCK_POOL_H_

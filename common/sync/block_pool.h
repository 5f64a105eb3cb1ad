// BlockPool: memory for small objects that one thread makes and another frees, over and over: versions, postings and records of transactions are made
// by who writes, and freed by the collector. The heap keeps but a few of a size where they were freed; the rest goes back and forth through
// chunks and lists that threads share, which costs either side more than all else that it does to the object.
// (The idea: Bonwick and Adams, "Magazines and Vmem", USENIX 2001.)
//
// Shape. A thread has two magazines for each class of sizes, and takes blocks from them and puts blocks into them. Full magazines that it has no use
//   for go to the class's depot, and come from there. A block is a piece of the heap's by itself, given back when the depot has enough.
// A thread's magazines are its own; all that threads share are the stacks of the depots (magazine_stack.h).
// One pool for the process, as there is one heap: what is in it is nobody's.
// Built for a sanitizer every block is the heap's each time, so that use after free is seen.
// Thread-safety: any thread, also while it ends. Ownership: a block is whose who has allocated it.
// Limits: a thread keeps at most 2 * Magazine::kBlocks blocks of a class, a depot about kDepotBytes.
#ifndef COMMON_SYNC_BLOCK_POOL_H_
#define COMMON_SYNC_BLOCK_POOL_H_

#include <cstddef>

namespace deut {

class BlockPool {
 public:
  static constexpr size_t kClassBytes = 32;
  static constexpr size_t kMaxBytes = 640;  // larger ones are the heap's
  static constexpr size_t kDepotBytes = size_t{4} << 20;

  static void* Allocate(size_t bytes);
  // REQUIRES: it is from Allocate(bytes).
  static void Free(void* block, size_t bytes);

  // Full magazines in the depot of the class that this size belongs to, about.
  static size_t DepotMagazines(size_t bytes);
  // Bytes of the blocks in all depots, about: at most kMaxBytes / kClassBytes times kDepotBytes.
  static size_t DepotBytes();
  // False: built for a sanitizer.
  static bool enabled();
};

// Base of classes whose objects, each by itself, have memory of the pool.
class FromPool {
 public:
  static void* operator new(size_t bytes) { return BlockPool::Allocate(bytes); }
  static void operator delete(void* object, size_t bytes) { BlockPool::Free(object, bytes); }
};

}  // namespace deut

#endif  // COMMON_SYNC_BLOCK_POOL_H_

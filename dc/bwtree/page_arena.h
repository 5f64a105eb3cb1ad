// PageArena: memory of base pages. A large tree's leaves take gigabytes and are looked at at random; with the machine's small pages nearly every
// look costs a walk through page tables besides the cache miss. So leaves lie in blocks of 2 MiB for which the kernel is asked for huge pages. And a
// page is allocated and freed once for every few updates, so this is a stack of free places for each size, without a lock.
//
// A block has places of one class: sizes of 4 to 64 KiB, sixteen classes to each doubling (about 3 % are lost to rounding up). A place goes
//   never used --Allocate--> used            blocks are handed out in order (fetch-and-add); whoever gets one for an allocation keeps its first
//                                            place and pushes the others
//   used       --Free------> free            pushed (compare-and-swap of the class's top, release)
//   free       --Allocate--> used            popped (compare-and-swap of the class's top, acquire)
//   free       --ReturnFree--> bare          popped, and pushed on another stack, without memory behind it. Of its block the kernel makes no huge
//                                            pages any more
//   bare       --Allocate--> used            if there is no free one
// Losers of a compare-and-swap look again; every failure is another's success. No ABA: a top carries a count of all changes of it.
// The first blocks of each class are of small pages, so that little data takes little memory.
// Limits: the address space that was reserved. Nothing is given back to other classes: what a class has had at its peak stays its address space.
// Thread-safety: all methods from any thread, latch-free. Ownership: of the address space; places end before it.
#ifndef DC_BWTREE_PAGE_ARENA_H_
#define DC_BWTREE_PAGE_ARENA_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace deut::dc {

class PageArena {
 public:
  static constexpr size_t kLeastBytes = 4 << 10;
  static constexpr size_t kMostBytes = 64 << 10;
  static constexpr size_t kBlockBytes = 2 << 20;

  // Reserves address space; null if the system refuses it.
  static std::unique_ptr<PageArena> Create(size_t bytes);
  ~PageArena();
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  // Null: no place, or of another size than those above.
  void* Allocate(size_t bytes);
  // `bytes` as it was allocated. REQUIRES: Owns(place).
  void Free(void* place, size_t bytes);
  bool Owns(const void* place) const {
    return reinterpret_cast<uintptr_t>(place) - reinterpret_cast<uintptr_t>(memory_) < bytes_;
  }
  // Gives the memory of free places back to the system. Answers how much, about.
  size_t ReturnFree();

  // Bytes of a place for so many.
  static size_t PlaceBytes(size_t bytes) { return BytesOf(ClassOf(bytes)); }

 private:
  static constexpr size_t kSteps = 16;  // classes of a doubling
  static constexpr size_t kClasses = 4 * kSteps;
  // A place's number is its offset in units of this; no two places begin in the same page of the machine.
  static constexpr size_t kUnitBytes = 64;
  static constexpr size_t kSystemPageBytes = 4096;
  static constexpr uint64_t kSmallBlocks = 4;  // of each class

  // A stack of places: the number of the first (0: none), and how often that has changed.
  using Stack = std::atomic<uint64_t>;
  struct Class {
    Stack free{0};
    Stack bare{0};
    std::atomic<uint64_t> blocks{0};
  };

  PageArena(char* memory, size_t bytes, std::atomic<uint32_t>* links) : memory_(memory), bytes_(bytes), links_(links) {}

  static size_t ClassOf(size_t bytes);
  static size_t BytesOf(size_t size_class);
  std::atomic<uint32_t>& link(uint32_t place) const { return links_[uint64_t{place} * kUnitBytes / kSystemPageBytes]; }
  char* memory_of(uint32_t place) const { return memory_ + uint64_t{place} * kUnitBytes; }
  // 0: none.
  uint32_t Pop(Stack* stack);
  // Places that are linked from `first` to `last`.
  void Push(Stack* stack, uint32_t first, uint32_t last);
  // The first place of a new block, whose others are free now; 0: there is no more address space.
  uint32_t NewBlock(size_t size_class);

  char* const memory_;
  const size_t bytes_;
  std::atomic<uint32_t>* const links_;
  std::atomic<uint64_t> used_blocks_{1};  // no place has the number 0
  std::array<Class, kClasses> classes_;
};

// Memory of a base page: of the process's arena, or from the heap if that has no place for it. (Builds with sanitizers take the heap always, so
// that they see each page by itself.)
void* AllocatePage(size_t bytes);
// From now on pages of this process come from the heap. For a component with a memory budget: there pages of all sizes come and go, and what each
// size has left free in its huge pages adds up (8 GiB of records under 512 MiB: more than 755 MiB resident, 696 with the heap alone).
void TakePagesFromTheHeap();
void FreePage(void* page, size_t bytes);
// Gives what pages have left free back to the system.
void ReturnFreePages();

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_ARENA_H_

// MappingTable: page id -> the page, the only place that knows where a page is. Replacing the word of an id by compare-and-swap
// is how every change of a page becomes visible (Levandoski, Lomet, Sengupta: "The Bw-Tree", ICDE 2013, sections II and III).
//
// States of an id, and who moves it on (all steps are single atomic operations on one word):
//   never used --Allocate--> live     the counter of used ids goes up, then the word is stored
//   live       --Replace--> live      compare-and-swap old head -> new head. The winner owns what it unlinked and retires it;
//                                     the loser still owns what it wanted to install
//   live       --Free--> retired      the word stays until no guard can see the id
//   retired    --reclamation--> free  the id is pushed onto the list of free ids (compare-and-swap of its top)
//   free       --Allocate--> live     popped from the list (compare-and-swap of its top), then the word is stored
// Why the pop has no ABA: an id comes back to the list only through the reclamation domain. A thread that has read the top and
//   its successor inside a guard therefore finds the same id at the top only if it never left the list meanwhile.
// Memory order: Replace and Allocate release the contents of the node, Load acquires them. Nothing here needs a store-load order.
// Thread-safety: all methods from any thread, latch-free. Load, Replace, Allocate and Free need a reclamation guard.
// Ownership: of the address space and the ids; never of the nodes. The domain given to Free must end before the table.
// Limits: `capacity` ids, reserved as address space at once, backed by memory as they are used. Allocate answers kNoPage
//   when all are live; callers turn that into RESOURCE_EXHAUSTED.
#ifndef DC_BWTREE_MAPPING_TABLE_H_
#define DC_BWTREE_MAPPING_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "common/sync/reclamation.h"
#include "dc/bwtree/page_word.h"

namespace deut::dc {

class MappingTable {
 public:
  // RESOURCE_EXHAUSTED if the system refuses the address space (8 bytes for each id).
  static Result<std::unique_ptr<MappingTable>> Create(uint32_t capacity);
  ~MappingTable();
  MappingTable(const MappingTable&) = delete;
  MappingTable& operator=(const MappingTable&) = delete;

  // The head of the page's chain. REQUIRES: `id` is live.
  const Node* Load(PageId id) const { return PageWord(slots_[id.value].load(std::memory_order_acquire)).head(); }

  // Replaces `expected` by `desired`. False: somebody else was first and nothing changed.
  [[nodiscard]] bool Replace(PageId id, const Node* expected, const Node* desired) {
    uint64_t word = PageWord::Memory(expected).bits();
    return slots_[id.value].compare_exchange_strong(word, PageWord::Memory(desired).bits(), std::memory_order_acq_rel,
                                                    std::memory_order_relaxed);
  }

  // A live id whose page is `head`; kNoPage at the limit.
  PageId Allocate(const Node* head);
  // Gives the id back once no guard can see it. REQUIRES: nothing reachable names the id.
  void Free(PageId id, ReclamationDomain& domain);
  // The same at once. REQUIRES: no thread can see the id (as in a deleter of the domain).
  void FreeUnseen(PageId id);

  // Ids that are live or on their way to the free list.
  uint64_t used() const;
  uint64_t capacity() const { return capacity_; }

 private:
  MappingTable(std::atomic<uint64_t>* slots, uint32_t capacity) : slots_(slots), capacity_(capacity) {}

  PageId PopFree();

  std::atomic<uint64_t>* const slots_;
  const uint64_t capacity_;  // ids 1 .. capacity_; id 0 names no page
  alignas(64) std::atomic<uint64_t> ever_used_{0};
  alignas(64) std::atomic<uint32_t> free_top_{0};
  std::atomic<uint64_t> free_count_{0};
};

}  // namespace deut::dc

#endif  // DC_BWTREE_MAPPING_TABLE_H_

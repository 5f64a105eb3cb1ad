// PageWord: the mapping table's entry for one page, a typed 64-bit word.
//
//   low bits   meaning                                          rest of the word
//   0 (all)    empty: the id was never allocated                0
//   00         memory: the head of the page's chain             address of a Node (8-byte aligned)
//   01         free: the id waits to be allocated again         the next free id in bits 32..63 (0 = none)
//   11         storage: nothing of the page is in memory        the PageAddress of the newest part of its image, 62 bits
//
// No PageAddress is ever used twice. So a page that was loaded, changed, written and evicted again has a different
// word, and a compare-and-swap that expects the earlier word fails (no ABA).
//
// Only the mapping table builds and decodes PageWords; the layers above it name pages by PageId.
// Thread-safety: a value. Ownership: none; the word borrows the node.
#ifndef DC_BWTREE_PAGE_WORD_H_
#define DC_BWTREE_PAGE_WORD_H_

#include <cstdint>

#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

struct Node;

constexpr PageId kNoPage{0};
// The right neighbour of a page whose image was not read. Never an id of the mapping table.
constexpr PageId kUnknownPage{UINT32_MAX};

class PageWord {
 public:
  constexpr PageWord() = default;
  constexpr explicit PageWord(uint64_t bits) : bits_(bits) {}

  static PageWord Memory(const Node* head) { return PageWord(reinterpret_cast<uint64_t>(head)); }
  static constexpr PageWord Free(PageId next) { return PageWord((uint64_t{next.value} << 32) | kFreeTag); }

  static constexpr PageWord Storage(PageAddress newest) { return PageWord((newest.raw() << 2) | kStorageTag); }

  constexpr uint64_t bits() const { return bits_; }
  constexpr bool on_storage() const { return (bits_ & kTagMask) == kStorageTag; }
  constexpr bool is_free() const { return (bits_ & kTagMask) == kFreeTag; }
  // False also for ids that are free, or were never allocated.
  constexpr bool in_memory() const { return bits_ != 0 && (bits_ & kTagMask) == 0; }
  // Null if the page is on storage. REQUIRES: the word is a live id's.
  const Node* head() const { return on_storage() ? nullptr : reinterpret_cast<const Node*>(bits_); }
  // REQUIRES: on_storage().
  constexpr PageAddress address() const { return PageAddress::FromRaw(bits_ >> 2); }
  friend constexpr bool operator==(PageWord, PageWord) = default;
  // For a word that is not free, the result is a number without meaning.
  constexpr PageId next_free() const { return PageId(static_cast<uint32_t>(bits_ >> 32)); }

 private:
  static constexpr uint64_t kTagMask = 3;
  static constexpr uint64_t kFreeTag = 1;
  static constexpr uint64_t kStorageTag = 3;
  uint64_t bits_ = 0;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_WORD_H_

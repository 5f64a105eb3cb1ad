// PageId: the lasting name of a page. PageWord: what the mapping table holds for it, one typed 64-bit word.
//
//   low bits   meaning                                          rest of the word
//   0 (all)    empty: the id was never given out                0
//   000        memory: the head of the page's chain             address of a Node (8-byte aligned)
//   001        free: the id waits to be given out again         the next free id in bits 32..63 (0 = none)
//   011        storage: where the page lies on storage          kept free for the page store; nothing makes such words yet
//
// Only the mapping table makes and takes apart PageWords; what stands above it names pages by PageId.
#ifndef DC_BWTREE_PAGE_WORD_H_
#define DC_BWTREE_PAGE_WORD_H_

#include <cstdint>

#include "common/base/ids.h"

namespace deut::dc {

struct Node;

using PageId = StrongNumber<struct PageIdTag, uint32_t>;
constexpr PageId kNoPage{0};

class PageWord {
 public:
  constexpr PageWord() = default;
  constexpr explicit PageWord(uint64_t bits) : bits_(bits) {}

  static PageWord Memory(const Node* head) { return PageWord(reinterpret_cast<uint64_t>(head)); }
  static constexpr PageWord Free(PageId next) { return PageWord((uint64_t{next.value} << 32) | kFreeTag); }

  constexpr uint64_t bits() const { return bits_; }
  constexpr bool in_memory() const { return bits_ != 0 && (bits_ & kTagMask) == 0; }
  // REQUIRES: in_memory().
  const Node* head() const { return reinterpret_cast<const Node*>(bits_); }
  // Of a word that is not free: some number without meaning.
  constexpr PageId next_free() const { return PageId(static_cast<uint32_t>(bits_ >> 32)); }

 private:
  static constexpr uint64_t kTagMask = 7;
  static constexpr uint64_t kFreeTag = 1;
  uint64_t bits_ = 0;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_WORD_H_

// PageBits: a set of page ids, a bit for each. Thread-safety: one thread at a time. Ownership: a value.
#ifndef DC_BWTREE_PAGE_BITS_H_
#define DC_BWTREE_PAGE_BITS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dc/bwtree/mapping_table.h"
#include "dc/bwtree/page_word.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

class PageBits {
 public:
  static constexpr uint64_t kIdsOfWord = MappingTable::kMarksPerWord;

  // Adds the ids from kIdsOfWord * word on whose bits are set in `bits`.
  void AddWord(uint64_t word, uint64_t bits) {
    if (words_.size() <= word) words_.resize(word + 1);
    words_[word] |= bits;
  }
  bool Contains(PageId id) const { return (Word(id.value / kIdsOfWord) >> (id.value % kIdsOfWord) & 1) != 0; }
  uint64_t Word(uint64_t word) const { return word < words_.size() ? words_[word] : 0; }
  uint64_t Count() const {
    uint64_t count = 0;
    for (const uint64_t word : words_) count += static_cast<uint64_t>(std::popcount(word));
    return count;
  }
  void Clear() { std::ranges::fill(words_, 0); }
  size_t memory_bytes() const { return words_.capacity() * sizeof(uint64_t); }

 private:
  std::vector<uint64_t> words_;
};

// Returns the pages that are in memory, each as of some moment of the call. It reads the words of all ids in their
// order, and no page: in a large store this takes a fraction of the time of a walk.
inline PageBits PagesInMemory(const MappingTable& pages) {
  PageBits in_memory;
  const uint64_t last = pages.last_id();
  for (uint64_t first = 0; first <= last; first += PageBits::kIdsOfWord) {
    uint64_t bits = 0;
    for (uint64_t i = 0; i < PageBits::kIdsOfWord && first + i <= last; ++i) {
      const PageWord word = pages.LoadWord(PageId(static_cast<uint32_t>(first + i)));
      bits |= uint64_t{word.in_memory() ? 1u : 0u} << i;
    }
    if (bits != 0) in_memory.AddWord(first / PageBits::kIdsOfWord, bits);
  }
  return in_memory;
}

}  // namespace deut::dc

#endif  // DC_BWTREE_PAGE_BITS_H_

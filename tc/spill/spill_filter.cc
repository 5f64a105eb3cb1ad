#include "tc/spill/spill_filter.h"

#include "common/base/check.h"
#include "common/coding/siphash.h"

namespace deut::tc {
namespace {

constexpr uint64_t kHashKey = 0x9ae16a3b2f90404f;
// Odd factors, one for each word of a block (those of Parquet): the upper 5 bits of the product choose the bit of the word.
constexpr std::array<uint32_t, 8> kFactors = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                              0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

uint32_t BitOf(uint64_t hash, size_t word) {
  return uint32_t{1} << (static_cast<uint32_t>(hash) * kFactors[word] >> 27);
}

}  // namespace

uint64_t SpillFilter::Hash(TableId table, std::string_view key) {
  return SipHash(SipHashKey{.low = kHashKey, .high = table.value}, key);
}

void SpillFilter::Add(uint64_t hash) {
  DEUT_DCHECK(!empty());
  Block& block = blocks_[BlockOf(hash)];
  for (size_t word = 0; word < block.words.size(); ++word) block.words[word] |= BitOf(hash, word);
}

bool SpillFilter::Admits(uint64_t hash) const {
  if (empty()) return true;
  const Block& block = blocks_[BlockOf(hash)];
  uint32_t missing = 0;
  for (size_t word = 0; word < block.words.size(); ++word) missing |= BitOf(hash, word) & ~block.words[word];
  return missing == 0;
}

}  // namespace deut::tc

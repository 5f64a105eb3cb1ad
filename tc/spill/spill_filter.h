// SpillFilter: tells of a key whether a spilled run may have versions of it, so that a look-up reads few of the runs. It never denies a key that was
// added. It admits about one in a hundred other keys.
//
// A blocked Bloom filter (Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007), in the
//   form that Parquet uses. A key sets one bit in each word of one block. A block is half a cache line, so a look
//   costs one cache miss. Abseil has no such filter.
// The hash has a fixed key. A client that chooses its keys can make the filters admit all of them; then a look-up
// reads every run, as without filters.
// Thread-safety: Add by one thread; afterwards any thread. Ownership: owns its bits.
#ifndef TC_SPILL_SPILL_FILTER_H_
#define TC_SPILL_SPILL_FILTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/ids.h"

namespace deut::tc {

class SpillFilter {
 public:
  static constexpr uint64_t kBitsPerKey = 10;

  // Admits every key, and takes no memory.
  SpillFilter() = default;
  // For at most `keys` different keys; more are correct, but then it admits more of the others.
  explicit SpillFilter(uint64_t keys) : blocks_(BlocksFor(keys)) {}

  static uint64_t BytesFor(uint64_t keys) { return BlocksFor(keys) * sizeof(Block); }
  static uint64_t Hash(TableId table, std::string_view key);

  // REQUIRES: the filter was made for keys.
  void Add(uint64_t hash);
  bool Admits(uint64_t hash) const;
  bool empty() const { return blocks_.empty(); }
  size_t memory_bytes() const { return blocks_.capacity() * sizeof(Block); }

 private:
  struct alignas(32) Block {
    std::array<uint32_t, 8> words;
  };
  static uint64_t BlocksFor(uint64_t keys) { return keys * kBitsPerKey / (8 * sizeof(Block)) + 1; }
  // The block of a key, from the upper half of its hash.
  size_t BlockOf(uint64_t hash) const { return (hash >> 32) * blocks_.size() >> 32; }

  std::vector<Block> blocks_;
};

}  // namespace deut::tc

#endif  // TC_SPILL_SPILL_FILTER_H_

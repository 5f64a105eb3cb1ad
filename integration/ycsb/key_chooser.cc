#include "integration/ycsb/key_chooser.h"

#include <bit>

namespace deut::ycsb {

uint64_t Scramble(uint64_t rank, uint64_t n) {
  // This must not be the hash that makes keys of numbers (record.h).
  const uint64_t hash = Mix64(rank ^ 0x5C4A'3B1E'D00D'F00DULL);
  const uint64_t mask = std::bit_ceil(n) - 1;
  const uint64_t record = hash & mask;
  return record < n ? record : hash & (mask >> 1);
}

uint64_t KeyChooser::Next(Random& random, uint64_t n) {
  if (distribution_ == Distribution::kUniform) return random.Below(n);
  zipfian_.Grow(n);
  const uint64_t rank = zipfian_.Next(random);
  return distribution_ == Distribution::kLatest ? n - 1 - rank : Scramble(rank, n);
}

}  // namespace deut::ycsb

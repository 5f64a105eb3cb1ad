// Random: a fast pseudo-random generator (xoshiro256**, Blackman and Vigna 2018). Not for secrets.
// Thread-safety: none; every thread has its own, seeded by Runtime::RandomSeed() or, in tests, by a printed seed.
// It meets UniformRandomBitGenerator, so it serves std::shuffle and the distributions.
// Why no library: a printed seed must repeat a run in every build. absl::BitGen mixes new entropy into every seed, and
// the results of the standard's distributions differ between libraries. The state has 32 bytes (std::mt19937_64:
// 2,504).
#ifndef COMMON_RUNTIME_RANDOM_H_
#define COMMON_RUNTIME_RANDOM_H_

#include <bit>
#include <cstdint>
#include <limits>

#include "common/base/check.h"

namespace deut {

// One step of SplitMix64: a good mix of 64 bits into 64 bits, a bijection.
constexpr uint64_t Mix64(uint64_t value) {
  value += 0x9E3779B97F4A7C15ull;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

class Random {
 public:
  using result_type = uint64_t;

  // Adjacent seeds share three of the four words of the state: word i + 1 of seed s is word i of seed s + 1. So their
  // streams differ, but start from overlapping states.
  explicit constexpr Random(uint64_t seed) {
    for (uint64_t& word : state_) word = Mix64(seed++);
  }

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return std::numeric_limits<uint64_t>::max(); }
  constexpr uint64_t operator()() { return Next(); }

  constexpr uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, limit), by one multiplication; the bias is below limit / 2^64. REQUIRES: limit > 0.
  constexpr uint64_t Below(uint64_t limit) {
    DEUT_DCHECK(limit > 0);
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * limit) >> 64);
  }

  // Uniform in [low, high]. REQUIRES: low <= high, and the range is not all 64-bit numbers.
  constexpr uint64_t Between(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }

  // Uniform in [0, 1).
  constexpr double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // True once in `n` on average. REQUIRES: n > 0.
  constexpr bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t state_[4] = {};
};

}  // namespace deut

#endif  // COMMON_RUNTIME_RANDOM_H_

// HashRecord: the hash of (table, key), by which the record table finds a record's bucket. It costs two loads and a multiplication per 16 bytes.
//
// The two halves of a 64 by 64 bit product are folded, so each bit of either factor affects each bit of the result. All bits are used, the low
// ones first (tc/mvcc/record_table.h).
// The seed is drawn at random when the process starts, so hashes differ from process to process. No client can predict which keys share a
// bucket, or have the same tag in its floor (floor_word.h). Hashes must not leave the process.
// Thread-safety: any thread.
#ifndef TC_MVCC_RECORD_HASH_H_
#define TC_MVCC_RECORD_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/base/ids.h"

namespace deut::tc {

namespace record_hash {

extern const uint64_t kSeed;
// Odd, with about as many ones as zeros, and no simple pattern.
inline constexpr uint64_t kFirst = 0x8f3b5d2ac4e17697;
inline constexpr uint64_t kSecond = 0xd1b54a32d192ed03;

inline uint64_t Fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

template <typename Word>
uint64_t Load(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

}  // namespace record_hash

inline uint64_t HashRecord(TableId table, std::string_view key) {
  using record_hash::Fold;
  using record_hash::Load;
  const char* from = key.data();
  size_t left = key.size();
  const uint64_t seed = Fold(record_hash::kSeed + table.value, record_hash::kFirst ^ left);
  // A zero factor would cancel the other one. So a client must not know which key bytes would make this factor zero.
  const uint64_t other = seed ^ record_hash::kSecond;
  uint64_t state = seed;
  uint64_t a = 0;
  uint64_t b = 0;
  if (left >= 16) [[likely]] {
    for (; left > 16; from += 16, left -= 16) {
      state = Fold(Load<uint64_t>(from) ^ other, Load<uint64_t>(from + 8) ^ state);
    }
    // The last 16 bytes; some of them may have been hashed already.
    a = Load<uint64_t>(from + left - 16);
    b = Load<uint64_t>(from + left - 8);
  } else if (left >= 8) {
    a = Load<uint64_t>(from);
    b = Load<uint64_t>(from + left - 8);
  } else if (left >= 4) {
    a = Load<uint32_t>(from);
    b = Load<uint32_t>(from + left - 4);
  } else if (left != 0) {
    a = Load<uint8_t>(from) | Load<uint8_t>(from + left / 2) << 8 | Load<uint8_t>(from + left - 1) << 16;
  }
  return Fold(Fold(a ^ other, b ^ state), record_hash::kFirst ^ state);
}

}  // namespace deut::tc

#endif  // TC_MVCC_RECORD_HASH_H_

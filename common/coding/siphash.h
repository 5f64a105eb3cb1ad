// SipHash-2-4 of Aumasson and Bernstein: a keyed hash of 64 bits, with a key of 128 bits. Nobody without the key can
// compute the hash of new bytes. So a correct hash shows that a holder of the key hashed exactly these bytes at some
// time. It does not exclude a copy of them in another place.
// Why no library: values of absl::Hash differ between processes, so they cannot be stored, and its seed is no secret.
// OpenSSL's SipHash (EVP_MAC) needs a context on the heap, and this folder links no OpenSSL.
// Thread-safety: pure functions.
#ifndef COMMON_CODING_SIPHASH_H_
#define COMMON_CODING_SIPHASH_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/coding/fixed.h"

namespace deut {

struct SipHashKey {
  uint64_t low = 0, high = 0;
  friend bool operator==(const SipHashKey&, const SipHashKey&) = default;
};

inline uint64_t SipHash(const SipHashKey& key, std::string_view bytes) {
  uint64_t v0 = key.low ^ 0x736F6D6570736575, v1 = key.high ^ 0x646F72616E646F6D;
  uint64_t v2 = key.low ^ 0x6C7967656E657261, v3 = key.high ^ 0x7465646279746573;
  const auto round = [&] {
    v0 += v1, v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0, v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1, v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2, v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  };
  const auto absorb = [&](uint64_t word) {
    v3 ^= word;
    round(), round();
    v0 ^= word;
  };
  constexpr size_t kWord = sizeof(uint64_t);
  size_t at = 0;
  for (; at + kWord <= bytes.size(); at += kWord) absorb(LoadU64(bytes.data() + at));
  char rest[kWord] = {};
  if (at < bytes.size()) std::memcpy(rest, bytes.data() + at, bytes.size() - at);
  absorb(LoadU64(rest) | uint64_t{bytes.size()} << 56);
  v2 ^= 0xFF;
  round(), round(), round(), round();
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace deut

#endif  // COMMON_CODING_SIPHASH_H_

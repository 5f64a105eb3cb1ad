// Little-endian numbers of fixed width at any address: the layout of every number on disk and on the wire.
// Thread-safety: pure functions. The caller has checked that the bytes are there.
// Abseil has this only in absl/base/internal, which others may not include.
#ifndef COMMON_CODING_FIXED_H_
#define COMMON_CODING_FIXED_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace deut {

static_assert(std::endian::native == std::endian::little,
              "the formats are little-endian; add byte swaps for this machine");

template <typename Number>
inline Number LoadFixed(const void* from) {
  static_assert(std::is_unsigned_v<Number>);
  Number number;
  std::memcpy(&number, from, sizeof(number));
  return number;
}

template <typename Number>
inline void StoreFixed(void* to, Number number) {
  static_assert(std::is_unsigned_v<Number>);
  std::memcpy(to, &number, sizeof(number));
}

inline uint16_t LoadU16(const void* from) { return LoadFixed<uint16_t>(from); }
inline uint32_t LoadU32(const void* from) { return LoadFixed<uint32_t>(from); }
inline uint64_t LoadU64(const void* from) { return LoadFixed<uint64_t>(from); }

// Named by width, so that a change of a variable's type never changes a format.
inline void StoreU16(void* to, uint16_t number) { StoreFixed(to, number); }
inline void StoreU32(void* to, uint32_t number) { StoreFixed(to, number); }
inline void StoreU64(void* to, uint64_t number) { StoreFixed(to, number); }

inline void AppendU16(std::string* to, uint16_t number) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}
inline void AppendU32(std::string* to, uint32_t number) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}
inline void AppendU64(std::string* to, uint64_t number) {
  to->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace deut

#endif  // COMMON_CODING_FIXED_H_

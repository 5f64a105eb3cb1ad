// Numbers as values, for the atomic operations: 64 bits, two's complement, least significant byte first. Thread-safety:
// pure functions.
#ifndef PROTOCOL_NUMBER_H_
#define PROTOCOL_NUMBER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/coding/fixed.h"

namespace deut {

constexpr size_t kNumberBytes = 8;

inline std::string EncodeNumber(int64_t number) {
  std::string bytes;
  AppendU64(&bytes, static_cast<uint64_t>(number));
  return bytes;
}

// Returns nullopt if the value has another length.
inline std::optional<int64_t> DecodeNumber(std::string_view bytes) {
  if (bytes.size() != kNumberBytes) return std::nullopt;
  return static_cast<int64_t>(LoadU64(bytes.data()));
}

}  // namespace deut

#endif  // PROTOCOL_NUMBER_H_

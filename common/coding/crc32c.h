// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, as in RFC 3720), by the processor's instruction.
// Thread-safety: pure functions. It detects every error burst up to 32 bits; it does not protect against malice.
// The Abseil that scripts/setup builds (20220623) has no absl/crc yet, and zlib's crc32 is of another polynomial. A
// later Abseil's absl::ExtendCrc32c computes the same values, which crc32c_test compares with those of RFC 3720.
#ifndef COMMON_CODING_CRC32C_H_
#define COMMON_CODING_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace deut {

// Returns the checksum of a string that is continued: `crc` is the checksum of its first part, and the `bytes` bytes at
// `data` follow. The checksum of an empty string is 0.
uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t bytes);

inline uint32_t Crc32c(const void* data, size_t bytes) { return ExtendCrc32c(0, data, bytes); }
inline uint32_t Crc32c(std::string_view data) { return ExtendCrc32c(0, data.data(), data.size()); }

}  // namespace deut

#endif  // COMMON_CODING_CRC32C_H_

// Compression: how the pages of a table are compressed on the disk of a DC, with the names that flags and commands use.
// The numbers are those of file and message formats; they are never reused.
// Thread-safety: pure functions.
#ifndef COMMON_BASE_COMPRESSION_H_
#define COMMON_BASE_COMPRESSION_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace deut {

enum class Compression : uint8_t {
  kNone = 1,
  kLz4 = 2,   // costs the least time
  kZstd = 3,  // level 1; saves more space
};

constexpr bool IsKnownCompression(uint64_t number) { return number >= 1 && number <= 3; }

constexpr std::string_view NameOf(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "none";
    case Compression::kLz4:
      return "lz4";
    case Compression::kZstd:
      return "zstd";
  }
  return "unknown";
}

// No value: `name` is not the name of a compression.
constexpr std::optional<Compression> CompressionNamed(std::string_view name) {
  for (const Compression each : {Compression::kNone, Compression::kLz4, Compression::kZstd}) {
    if (NameOf(each) == name) return each;
  }
  return std::nullopt;
}

}  // namespace deut

#endif  // COMMON_BASE_COMPRESSION_H_

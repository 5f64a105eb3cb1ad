// Names of files with a number: a prefix, the number in 12 hexadecimal digits (so that sorting by name sorts by
// number), a suffix.
// Thread-safety: pure functions.
#ifndef DC_PAGE_STORE_HEX_NAME_H_
#define DC_PAGE_STORE_HEX_NAME_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/concat.h"

namespace deut::dc {

constexpr size_t kHexNameDigits = 12;
constexpr uint64_t kMaxHexName = (uint64_t{1} << (4 * kHexNameDigits)) - 1;

inline std::string HexName(std::string_view prefix, uint64_t number, std::string_view suffix) {
  return Concat(prefix, absl::Hex(number, absl::kZeroPad12), suffix);
}

// False if `name` is not exactly of the form that HexName makes.
inline bool ParseHexName(std::string_view name, std::string_view prefix, std::string_view suffix, uint64_t* number) {
  if (name.size() != prefix.size() + kHexNameDigits + suffix.size() || !name.starts_with(prefix) ||
      !name.ends_with(suffix)) {
    return false;
  }
  uint64_t value = 0;
  for (const char digit : name.substr(prefix.size(), kHexNameDigits)) {
    uint64_t nibble = 0;
    if (digit >= '0' && digit <= '9') {
      nibble = static_cast<uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      nibble = static_cast<uint64_t>(digit - 'a') + 10;
    } else {
      return false;
    }
    value = value * 16 + nibble;
  }
  *number = value;
  return true;
}

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_HEX_NAME_H_

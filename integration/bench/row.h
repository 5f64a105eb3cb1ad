// Rows and keys of applications. A row is a plain struct without padding, stored as it lies in memory. A key is a
// prefix and decimal numbers of fixed width. Keys therefore sort as their numbers do, and are text for stores that
// require text.
// Thread-safety: pure functions.
#ifndef INTEGRATION_BENCH_ROW_H_
#define INTEGRATION_BENCH_ROW_H_

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/base/concat.h"
#include "common/base/status.h"

namespace deut::bench {

template <typename Row>
std::string_view BytesOf(const Row& row) {
  static_assert(std::is_trivially_copyable_v<Row> && std::has_unique_object_representations_v<Row>);
  return {reinterpret_cast<const char*>(&row), sizeof(row)};
}

// CORRUPTION if these are not the bytes of such a row.
template <typename Row>
Result<Row> RowOf(std::string_view key, std::string_view bytes) {
  static_assert(std::is_trivially_copyable_v<Row> && std::has_unique_object_representations_v<Row>);
  if (bytes.size() != sizeof(Row)) {
    return DEUT_ERROR(kCorruption, "the row ", Quoted(key), " has ", bytes.size(), " bytes in place of ", sizeof(Row));
  }
  Row row;
  std::memcpy(&row, bytes.data(), sizeof(row));
  return row;
}

struct KeyPart {
  uint64_t number;
  int digits;
};

inline std::string MakeRowKey(std::string_view prefix, std::initializer_list<KeyPart> parts) {
  std::string key(prefix);
  for (const KeyPart& part : parts) {
    const size_t begin = key.size();
    key.resize(begin + static_cast<size_t>(part.digits));
    uint64_t left = part.number;
    for (size_t at = key.size(); at > begin; left /= 10) key[--at] = static_cast<char>('0' + left % 10);
  }
  return key;
}

// Returns the number in digits [at, at + digits) of a key made by MakeRowKey. CORRUPTION if there is no number.
inline Result<uint64_t> NumberIn(std::string_view key, size_t at, size_t digits) {
  if (at + digits > key.size()) return DEUT_ERROR(kCorruption, "the key ", Quoted(key), " is too short");
  uint64_t number = 0;
  for (const char digit : key.substr(at, digits)) {
    if (digit < '0' || digit > '9') return DEUT_ERROR(kCorruption, "the key ", Quoted(key), " has no number at ", at);
    number = number * 10 + static_cast<uint64_t>(digit - '0');
  }
  return number;
}

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_ROW_H_

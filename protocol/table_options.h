// TableOptions: what may be chosen when a table is created. They are part of the creation's entry in the redo log, as
// its value (log_batch.h), and the DC keeps them with the table:
//
//   options := nothing | compression:u8        as enum Compression; nothing: the DC's own default
//
// Thread-safety: pure functions.
#ifndef PROTOCOL_TABLE_OPTIONS_H_
#define PROTOCOL_TABLE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/compression.h"

namespace deut {

struct TableOptions {
  std::optional<Compression> compression = {};  // of the table's pages on the DC's disk; no value: the DC's default
  friend bool operator==(const TableOptions&, const TableOptions&) = default;
};

// Without options the result is empty, as in logs of programs that know none.
inline std::string EncodeTableOptions(const TableOptions& options) {
  return options.compression ? std::string(1, static_cast<char>(*options.compression)) : std::string();
}

// No value: the bytes are no options.
inline std::optional<TableOptions> DecodeTableOptions(std::string_view bytes) {
  if (bytes.empty()) return TableOptions{};
  const uint8_t number = static_cast<uint8_t>(bytes[0]);
  if (bytes.size() != 1 || !IsKnownCompression(number)) return std::nullopt;
  return TableOptions{.compression = Compression(number)};
}

}  // namespace deut

#endif  // PROTOCOL_TABLE_OPTIONS_H_

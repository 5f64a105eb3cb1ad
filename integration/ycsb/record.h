// The records of the benchmark: keys made of numbers, and values that identify themselves, so that a reader
// recognises a wrong or torn value.
//
//   key   := "user" decimal      the number's hash (a bijection: no two numbers share a key), zero-padded to 20 digits; 24 bytes
//   value := writer:u64 sequence:u32 number:u64 checksum:u32 filler        (little-endian; 24 bytes before the filler)
// `writer` and `sequence` name the write (no two writes share both), `number` the record; the checksum is the CRC-32C of the key and
// of all other bytes of the value. The filler is a function of writer and sequence.
#ifndef INTEGRATION_YCSB_RECORD_H_
#define INTEGRATION_YCSB_RECORD_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace deut::ycsb {

constexpr size_t kKeyBytes = 24;
constexpr uint32_t kMinValueBytes = 24;

// The write that made a value.
struct WriteId {
  uint64_t writer = 0;
  uint32_t sequence = 0;
  friend auto operator<=>(const WriteId&, const WriteId&) = default;
};

// Writes the key of `number` to `key`.
void MakeKey(uint64_t number, std::string* key);
std::string KeyOf(uint64_t number);

// Writes the value to `value`. REQUIRES: value_bytes >= kMinValueBytes.
void MakeValue(uint64_t number, WriteId id, std::string_view key, uint32_t value_bytes, std::string* value);

// Returns the write that made this value. CORRUPTION if it is not a whole value of this key.
Result<WriteId> CheckValue(std::string_view key, std::string_view value);

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_RECORD_H_

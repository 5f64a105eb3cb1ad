// The records that benchmarks of the DC use: keys of variable length in a known order, values of 100 bytes, and checksums of whole answers.
//
// Record i of n has the i-th key in key order: 12 hexadecimal digits, and then 0 to 16 letters. Its value depends on its version, so a value that
// belongs to another record or version is found out.
// A checksum is the sum of all bytes of an answer. That of a record is the same for all its versions (the words of the value are rotated, and what
// one half of a timestamp gains the other one loses), so that of any stretch of records is known in advance (ChecksumTable), whatever was updated.
// Thread-safety: immutable.
#ifndef DC_BENCH_BENCH_RECORDS_H_
#define DC_BENCH_BENCH_RECORDS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/runtime/random.h"
#include "protocol/record_batch.h"

namespace deut::dc::bench {

constexpr size_t kValueBytes = 100;
constexpr size_t kMaxTailBytes = 16;

class BenchKey {
 public:
  static constexpr size_t kDigits = 12;
  static constexpr uint64_t kGap = 256;  // from one record's number to the next one's

  explicit BenchKey(uint64_t record) : BenchKey(record * kGap, Mix64(record)) {}

  operator std::string_view() const { return {bytes_, length_}; }  // NOLINT(google-explicit-constructor)

  // Of a record's key.
  static uint64_t RecordOf(std::string_view key) {
    uint64_t number = 0;
    for (size_t i = 0; i < kDigits; ++i) {
      const char digit = key[i];
      number = number * 16 + static_cast<uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return number / kGap;
  }

 private:
  BenchKey(uint64_t number, uint64_t hash) : length_(kDigits + hash % (kMaxTailBytes + 1)) {
    static constexpr char kDigit[] = "0123456789abcdef";
    for (size_t i = 0; i < kDigits; ++i) bytes_[i] = kDigit[(number >> (4 * (kDigits - 1 - i))) & 15];
    static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzabcdef";
    std::memcpy(bytes_ + kDigits, &kLetters[hash >> 60], kMaxTailBytes);
  }

  char bytes_[kDigits + kMaxTailBytes];
  size_t length_;
};

// The timestamp of the `time`-th update, from 1. Later ones are larger; the sum of their bytes is the same.
constexpr Timestamp BenchTimestamp(uint32_t time) { return Timestamp(uint64_t{time} << 32 | ~time); }

class BenchValue {
 public:
  BenchValue(uint64_t record, Timestamp timestamp) {
    const uint64_t word = Word(record, timestamp);
    for (size_t at = 0; at < sizeof(bytes_); at += sizeof(word)) std::memcpy(bytes_ + at, &word, sizeof(word));
  }
  operator std::string_view() const { return {bytes_, kValueBytes}; }  // NOLINT(google-explicit-constructor)

 private:
  // Rotated by whole bytes, the sum stays. Both halves are equal because the value ends with one.
  static uint64_t Word(uint64_t record, Timestamp timestamp) {
    const auto half = static_cast<uint32_t>(Mix64(~record));
    const uint64_t rotated = std::rotl(half, static_cast<int>((timestamp.value >> 32) % 4) * 8);
    return rotated << 32 | rotated;
  }

  char bytes_[(kValueBytes + 7) / 8 * 8];
};

uint64_t SumOfBytes(std::string_view bytes);

// Of an answer that holds this record alone.
uint64_t ChecksumOfRecord(uint64_t record);

// Checksums of stretches of the records 0 .. n - 1.
class ChecksumTable {
 public:
  explicit ChecksumTable(uint64_t records);
  uint64_t Of(uint64_t begin, uint64_t end) const { return sums_[end] - sums_[begin]; }
  // Of all keys and values.
  uint64_t bytes() const { return bytes_; }
  // What Of will need.
  void Prefetch(uint64_t record) const { __builtin_prefetch(&sums_[record]); }

 private:
  std::vector<uint64_t> sums_;  // of all records before
  uint64_t bytes_ = 0;
};

// The records 0 .. n - 1, shuffled.
std::vector<uint32_t> ShuffledRecords(uint64_t records, uint64_t seed);

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_RECORDS_H_

// The records that benchmarks of the DC use: keys of variable length in a known order, values of 100 bytes, and
// checksums of whole answers. Record i of n has the i-th key in key order: 12 hexadecimal digits, and then 0 to 16
// letters. Its value depends on its version, so a value of another record or version is detected.
// A checksum is the sum of all bytes of an answer. It is the same for all versions of a record. The words of the
// value are rotated, and one half of a timestamp grows by as much as the other half shrinks. So the checksum of any
// range of records is known in advance (ChecksumTable), after any updates.
// Thread-safety: immutable. Ownership: values.
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
  static constexpr uint64_t kGap = 256;  // distance of the numbers of consecutive records

  explicit BenchKey(uint64_t record) : BenchKey(record * kGap, Mix64(record)) {}

  operator std::string_view() const { return {bytes_, length_}; }  // NOLINT(google-explicit-constructor)

  // Returns the record of a key.
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

// Returns the timestamp of the `time`-th update, from 1. Later ones are larger, but the sum of their bytes is the
// same.
constexpr Timestamp BenchTimestamp(uint32_t time) { return Timestamp(uint64_t{time} << 32 | ~time); }

class BenchValue {
 public:
  BenchValue(uint64_t record, Timestamp timestamp) {
    const uint64_t word = Word(record, timestamp);
    for (size_t at = 0; at < sizeof(bytes_); at += sizeof(word)) std::memcpy(bytes_ + at, &word, sizeof(word));
  }
  operator std::string_view() const { return {bytes_, kValueBytes}; }  // NOLINT(google-explicit-constructor)

 private:
  // A rotation by whole bytes keeps the sum. Both halves are equal because the value ends with a half word.
  static uint64_t Word(uint64_t record, Timestamp timestamp) {
    const auto half = static_cast<uint32_t>(Mix64(~record));
    const uint64_t rotated = std::rotl(half, static_cast<int>((timestamp.value >> 32) % 4) * 8);
    return rotated << 32 | rotated;
  }

  char bytes_[(kValueBytes + 7) / 8 * 8];
};

uint64_t SumOfBytes(std::string_view bytes);

// Returns the checksum of an answer that holds only this record.
uint64_t ChecksumOfRecord(uint64_t record);

// Checksums of ranges of the records 0 .. n - 1.
class ChecksumTable {
 public:
  explicit ChecksumTable(uint64_t records);
  uint64_t Of(uint64_t begin, uint64_t end) const { return sums_[end] - sums_[begin]; }
  // Bytes of all keys and values.
  uint64_t bytes() const { return bytes_; }
  // Prefetches an element that Of will need.
  void Prefetch(uint64_t record) const { __builtin_prefetch(&sums_[record]); }

 private:
  std::vector<uint64_t> sums_;  // sums_[i]: checksum of the records before i
  uint64_t bytes_ = 0;
};

// Returns the records 0 .. n - 1, shuffled.
std::vector<uint32_t> ShuffledRecords(uint64_t records, uint64_t seed);

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_RECORDS_H_

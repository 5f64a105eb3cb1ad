// ReadCheck sees every byte that a store returns. The value of a point read must be whole and its key's
// (integration/ycsb/record.h). A scan must begin with the requested record, ascend, and stay within its limit. The
// values of its first and every 64th record are checked like those of points. With `check_every_value`, each
// value is checked whole.
// Every byte of every record goes into a checksum that depends on the order. Two stores with equal content that run
// the same reads have equal checksums, and no byte can be left unread. This costs some 20 ns a record of 100 bytes,
// the same for all stores.
// Records of an attempt that the store then refused do not count (Restart).
// Thread-safety: none; each worker has its own.
#ifndef INTEGRATION_BENCH_READ_CHECK_H_
#define INTEGRATION_BENCH_READ_CHECK_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace deut::bench {

class ReadCheck {
 public:
  explicit ReadCheck(bool check_every_value = false) : check_every_value_(check_every_value) {}

  // An attempt at a transaction begins: drops everything since the last Commit.
  void Restart();
  // The transaction has committed. Returns the first error in the data that it returned.
  Status Commit();

  void Value(std::string_view key, std::string_view value);
  void Missing(std::string_view key);

  // The records until EndScan belong to a scan of at most `limit` records from `low`.
  void BeginScan(std::string_view low, uint32_t limit);
  void Record(std::string_view key, std::string_view value) {
    // Copies the key, because the view of the previous record may be invalid; keys are short.
    if (scanned_ == 0 || key.size() > last_.size()) {
      RecordSlowly(key, value);
    } else {
      if (key <= std::string_view(last_.data(), last_bytes_)) Fail("is not above the key before", key);
      if (check_every_value_ || scanned_ % kCheckedOf == 0) CheckValue(key, value);
      Keep(key);
    }
    ++scanned_;
    Sum(key);
    Sum(value);
  }
  void EndScan();

  // Both cover committed transactions only.
  uint64_t records() const { return committed_.records; }
  uint64_t checksum() const;

 private:
  static constexpr uint32_t kCheckedOf = 64;
  static constexpr uint64_t kPrime = 0x9E37'79B9'7F4A'7C15ULL;

  struct Sums {
    std::array<uint64_t, 4> lanes{};
    uint64_t records = 0;
  };

  static uint64_t Word(const char* bytes) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof(word));
    return word;
  }

  // Four lanes, so that a multiplication need not wait for the previous one.
  void Sum(std::string_view bytes) {
    std::array<uint64_t, 4>& lanes = now_.lanes;
    const char* at = bytes.data();
    size_t left = bytes.size();
    for (; left >= 32; at += 32, left -= 32) {
      for (size_t lane = 0; lane < 4; ++lane) lanes[lane] = (lanes[lane] ^ Word(at + 8 * lane)) * kPrime;
    }
    size_t lane = 0;
    for (; left >= 8; at += 8, left -= 8, ++lane) lanes[lane] = (lanes[lane] ^ Word(at)) * kPrime;
    uint64_t tail = bytes.size();  // includes the length, so that the border between two strings counts, too
    for (; left > 0; ++at, --left) tail = tail << 8 | static_cast<unsigned char>(*at);
    lanes[3] = (lanes[3] ^ tail) * kPrime;
  }

  void Keep(std::string_view key) {
    std::memcpy(last_.data(), key.data(), key.size());
    last_bytes_ = key.size();
  }
  void RecordSlowly(std::string_view key, std::string_view value);
  void CheckValue(std::string_view key, std::string_view value);
  void Fail(std::string_view what, std::string_view key);

  const bool check_every_value_;
  Sums committed_, now_;
  Status wrong_;

  std::string_view low_;
  uint32_t limit_ = 0;
  uint64_t scanned_ = 0;
  std::string last_;
  size_t last_bytes_ = 0;
};

}  // namespace deut::bench

#endif  // INTEGRATION_BENCH_READ_CHECK_H_

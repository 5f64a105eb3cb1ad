// The random choices of TPC-C (clauses 2.1.6, 4.3.2 and 4.3.3).
// Thread-safety: none.
#ifndef INTEGRATION_BENCH_TPCC_TPCC_RANDOM_H_
#define INTEGRATION_BENCH_TPCC_TPCC_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/runtime/random.h"
#include "integration/bench/tpcc/schema.h"

namespace deut::bench::tpcc {

class TpccRandom {
 public:
  explicit TpccRandom(uint64_t seed) : random_(seed) {}

  uint32_t Between(uint32_t low, uint32_t high) { return static_cast<uint32_t>(random_.Between(low, high)); }
  bool Percent(uint32_t percent) { return random_.Below(100) < percent; }

  // NURand: an uneven distribution over [low, high].
  uint32_t Uneven(uint32_t a, uint32_t c, uint32_t low, uint32_t high) {
    return (((Between(0, a) | Between(low, high)) + c) % (high - low + 1)) + low;
  }
  uint32_t Customer(const Scale& scale) { return Uneven(1023, 259, 1, scale.customers); }
  uint32_t Item(const Scale& scale) { return Uneven(8191, 7911, 1, scale.items); }
  // Returns a name that customers have: one of the first 1,000, or of all if there are fewer.
  std::string LastName(const Scale& scale) {
    const uint32_t names = scale.customers < 1000 ? scale.customers : 1000;
    return NameOf(Uneven(255, 223, 0, 999) % names);
  }
  static std::string NameOf(uint32_t number);

  // Fills a field with random letters and digits, at least `least` and at most its size, and then blanks.
  template <size_t kSize>
  void Text(char (&field)[kSize], size_t least = kSize) {
    FillText(field, kSize, least);
  }
  template <size_t kSize>
  void Digits(char (&field)[kSize]) {
    for (char& digit : field) digit = static_cast<char>('0' + random_.Below(10));
  }
  void FillAddress(Address* address);
  // Writes 26 to 50 letters; one field in ten contains ORIGINAL.
  void Data(char (&field)[50]);

 private:
  void FillText(char* field, size_t size, size_t least);

  Random random_;
};

}  // namespace deut::bench::tpcc

#endif  // INTEGRATION_BENCH_TPCC_TPCC_RANDOM_H_

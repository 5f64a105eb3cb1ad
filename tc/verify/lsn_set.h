// LsnSet: a set of LSNs at or above a first one, with one bit for each place where a record could begin: one bit for
// 8 bytes of log.
// Thread-safety: one thread. Ownership: owns its bits.
#ifndef TC_VERIFY_LSN_SET_H_
#define TC_VERIFY_LSN_SET_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "tc/log_format/record_codec.h"

namespace deut::tc {

class LsnSet {
 public:
  explicit LsnSet(Lsn first) : first_(first) {}

  // REQUIRES: `lsn` is not below the first, and a multiple of 8 beyond it.
  void Add(Lsn lsn) {
    const uint64_t bit = Bit(lsn);
    if (bit / kWordBits >= words_.size()) words_.resize(bit / kWordBits + 1);
    words_[bit / kWordBits] |= uint64_t{1} << (bit % kWordBits);
  }

  bool Contains(Lsn lsn) const {
    if (lsn < first_ || (lsn.value - first_.value) % kRecordAlignment != 0) return false;
    const uint64_t bit = Bit(lsn);
    return bit / kWordBits < words_.size() && ((words_[bit / kWordBits] >> (bit % kWordBits)) & 1) != 0;
  }

  // Returns the first LSN of the set at or above `from` and below `end`.
  std::optional<Lsn> FirstIn(Lsn from, Lsn end) const {
    if (end <= first_) return std::nullopt;
    const uint64_t stop = std::min<uint64_t>((end.value - first_.value + kRecordAlignment - 1) / kRecordAlignment,
                                             words_.size() * kWordBits);
    uint64_t bit = from <= first_ ? 0 : (from.value - first_.value + kRecordAlignment - 1) / kRecordAlignment;
    while (bit < stop) {
      const uint64_t rest = words_[bit / kWordBits] >> (bit % kWordBits);
      if (rest == 0) {
        bit = (bit / kWordBits + 1) * kWordBits;
        continue;
      }
      bit += static_cast<uint64_t>(std::countr_zero(rest));
      if (bit >= stop) break;
      return Lsn(first_.value + bit * kRecordAlignment);
    }
    return std::nullopt;
  }

 private:
  static constexpr uint64_t kWordBits = 64;
  uint64_t Bit(Lsn lsn) const { return (lsn.value - first_.value) / kRecordAlignment; }

  const Lsn first_;
  std::vector<uint64_t> words_;
};

}  // namespace deut::tc

#endif  // TC_VERIFY_LSN_SET_H_

// GatherEstimate: how many keys a scan is likely to need of those that are in the TC, from what the scans before it needed.
//
// A gather ends its stretch behind the last key that it keeps (scan_gather.h), and the DC is asked only so far (S4): with too few keys it is asked
// twice, with too many they are merged and copied for nothing. It decides what that costs, nothing else.
// Thread-safety: one thread at a time.
#ifndef TC_RECORD_MANAGER_GATHER_ESTIMATE_H_
#define TC_RECORD_MANAGER_GATHER_ESTIMATE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace deut::tc {

class GatherEstimate {
 public:
  // Keys that suffice for so many records, nearly always: the expected number, and three standard deviations of keys that lie there at random.
  // Before anything is known each record may be in the TC, and a few keys may show nothing.
  size_t KeysFor(size_t records) const {
    if (records_ == 0) return records + records / 4;
    if (keys_ == 0) return kSpare;
    const double expected = keys_ / records_ * static_cast<double>(records);
    const auto enough = static_cast<size_t>(expected + 3 * std::sqrt(expected)) + kSpare;
    return std::min(enough, records + records / 4 + kSpare);
  }

  // A scan has returned so many records, and has come past so many keys.
  void Saw(size_t records, size_t keys) {
    records_ += static_cast<double>(records);
    keys_ += static_cast<double>(keys);
    if (records_ < kMemory) return;
    records_ /= 2;
    keys_ = keys_ < kAsGoodAsNone ? 0 : keys_ / 2;
  }

 private:
  static constexpr size_t kSpare = 4;
  static constexpr double kMemory = 4096;            // records
  static constexpr double kAsGoodAsNone = 1.0 / 16;  // keys, of half as many records

  double records_ = 0;
  double keys_ = 0;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_GATHER_ESTIMATE_H_

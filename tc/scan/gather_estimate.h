// GatherEstimate: predicts how many of the keys in the TC a scan needs, from what earlier scans needed.
//
// A gather ends its stretch behind the last key that it keeps, and the DC is asked only up to there (S4). With too few
// keys the DC is asked twice. With too many, keys are merged and copied in vain. The estimate decides only this cost,
// never an answer.
// Thread-safety: one thread at a time.
#ifndef TC_SCAN_GATHER_ESTIMATE_H_
#define TC_SCAN_GATHER_ESTIMATE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace deut::tc {

class GatherEstimate {
 public:
  // Returns how many keys suffice for that many records, nearly always: the expected number plus three standard
  // deviations of randomly placed keys. Before the first report it assumes that each record may be in the TC, and
  // that a few keys show no record.
  size_t KeysFor(size_t records) const {
    if (records_ == 0) return records + records / 4;
    if (keys_ == 0) return kSafetyMarginKeys;
    const double expected = keys_ / records_ * static_cast<double>(records);
    const auto enough = static_cast<size_t>(expected + 3 * std::sqrt(expected)) + kSafetyMarginKeys;
    return std::min(enough, records + records / 4 + kSafetyMarginKeys);
  }

  // Reports that a scan has returned `records` records and passed `keys` gathered keys.
  void Record(size_t records, size_t keys) {
    records_ += static_cast<double>(records);
    keys_ += static_cast<double>(keys);
    if (records_ < kHalveAtRecords) return;
    records_ /= 2;
    keys_ = keys_ < kNegligibleKeys ? 0 : keys_ / 2;
  }

 private:
  static constexpr size_t kSafetyMarginKeys = 4;
  static constexpr double kHalveAtRecords = 4096;      // records; at this number both sums are halved
  static constexpr double kNegligibleKeys = 1.0 / 16;  // keys; fewer than this count as none

  double records_ = 0;
  double keys_ = 0;
};

}  // namespace deut::tc

#endif  // TC_SCAN_GATHER_ESTIMATE_H_

// Readers: the timestamps at which some transaction reads now or may read from now on (the set A of rule S6): single points, and everything from a
// bound on.
// A reader at timestamp T sees the newest version below T. So a version is readable from its own timestamp, exclusive, to that of the next committed
// version, inclusive.
// Thread-safety: a value.
#ifndef TC_TXN_READERS_H_
#define TC_TXN_READERS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace deut::tc {

class Readers {
 public:
  // Every timestamp: nothing is known about readers.
  Readers() = default;
  Readers(std::vector<uint64_t> points, Timestamp from) : points_(std::move(points)), from_(from.value) {
    std::sort(points_.begin(), points_.end());
    points_.erase(std::unique(points_.begin(), points_.end()), points_.end());
  }

  // True if any reader may be in (after, to].
  bool AnyIn(Timestamp after, Timestamp to) const {
    if (to.value >= from_) return to > after;
    const auto first = std::upper_bound(points_.begin(), points_.end(), after.value);
    return first != points_.end() && *first <= to.value;
  }

  Timestamp from() const { return Timestamp{from_}; }

  // The first member of the set that is not below `timestamp`.
  uint64_t RoundUp(uint64_t timestamp) const {
    if (timestamp >= from_) return timestamp;
    const auto first = std::lower_bound(points_.begin(), points_.end(), timestamp);
    return first == points_.end() ? from_ : std::min(*first, from_);
  }

 private:
  std::vector<uint64_t> points_;  // ascending
  uint64_t from_ = 0;
};

}  // namespace deut::tc

#endif  // TC_TXN_READERS_H_

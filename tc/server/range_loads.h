// RangeLoads: what lies in each logical range of a table, and how often it is written to, as far as it can be known.
//
// Records come from the DC's Partition, which cuts the table into pieces of about as many records each; the records of a piece belong to the ranges
//   that it overlaps in equal shares. Between two looks there, a split divides what is known equally, a merge adds it up. Updates are what was
//   posted in the range since the last measurement, a conflict counting as many; they are smoothed: quick to rise, slow to fall.
// Thread-safety: none. Ownership: keeps nothing of a map.
#ifndef TC_SERVER_RANGE_LOADS_H_
#define TC_SERVER_RANGE_LOADS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/time.h"
#include "tc/mvcc/range_table.h"
#include "tc/server/range_plan.h"

namespace deut::tc {

class RangeLoads {
 public:
  // What a transaction that lost over a range costs, in postings to be examined.
  static constexpr uint64_t kConflict = 256;
  // Smoothing: after so long two thirds of a change are seen.
  static constexpr Duration kRise = milliseconds(700);
  static constexpr Duration kFall = seconds(5);

  // The ranges are these now. Measures anew from here on.
  void Follow(const RangeMap& map, MonotonicTime now);
  // REQUIRES: the map is the one followed last.
  void Measure(const RangeMap& map, MonotonicTime now);
  // The DC's answer for a table of so many records; `cuts` ascend.
  void SetPieces(double records, std::vector<std::string> cuts);

  // Of the ranges of the map followed last, in order.
  const std::vector<RangeLoad>& loads() const { return loads_; }
  const std::vector<std::string>& lows() const { return lows_; }
  // The DC's cuts above `low` and below `high` (empty: there is no end).
  std::vector<std::string> CutsBetween(std::string_view low, std::string_view high) const;
  // Postings since SetPieces.
  uint64_t posted() const { return posted_; }

 private:
  struct Seen {
    uint64_t posted = 0;
    uint64_t conflicts = 0;
  };

  std::vector<std::string> lows_;
  std::vector<RangeLoad> loads_;
  std::vector<Seen> seen_;
  MonotonicTime measured_{};
  std::vector<std::string> cuts_;
  uint64_t posted_ = 0;
};

}  // namespace deut::tc

#endif  // TC_SERVER_RANGE_LOADS_H_

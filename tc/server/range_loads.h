// RangeLoads: estimates the number of records in each logical range of a table, and how often it is updated.
//
// Records come from the DC's Partition, which cuts the table into pieces of about equal numbers of records. The
//   ranges that a piece overlaps get equal shares of its records. Between two answers of the DC a split divides the
//   known records equally, and a merge adds them up.
// Updates are the postings made in the range since the last measurement; a conflict counts as kUpdatesPerConflict of
//   them. They are smoothed: quick to rise, slow to fall.
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
  // Cost of a lost conflict over a range, in postings to be examined.
  static constexpr uint64_t kUpdatesPerConflict = 256;
  // Smoothing: after this time two thirds of a change are taken over.
  static constexpr Duration kRiseTime = milliseconds(700);
  static constexpr Duration kFallTime = seconds(5);

  // Takes over the map's ranges, and measures anew from here on.
  void Follow(const RangeMap& map, MonotonicTime now);
  // Updates the loads. REQUIRES: the map is the one followed last.
  void Measure(const RangeMap& map, MonotonicTime now);
  // Takes the DC's answer for a table of `records` records; `cuts` ascend.
  void SetPieces(double records, std::vector<std::string> cuts);

  // Loads and lower bounds of the ranges of the map followed last, in order.
  const std::vector<RangeLoad>& loads() const { return loads_; }
  const std::vector<std::string>& lows() const { return lows_; }
  // The DC's cuts above `low` and below `high`; an empty `high` is no bound.
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

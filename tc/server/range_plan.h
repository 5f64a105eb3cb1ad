// PlanRanges: decides which of a table's logical ranges to split and which to merge, from their records and updates
// (paper, section 5.5 and figure 7). A pure function.
//
// Weight: a range of n records that are updated u times a second is worth `weight` ranges, which is the larger of
//   n / records_per_range               limits what a scan may lose to a writer that it does not even overlap
//   sqrt(n * u / records_times_updates) the optimum of figure 7
// The optimum: a scan of L records, anywhere among ranges of s records, crosses L / s + 1 of them, at c each. It
//   examines the postings of (L + s) records, at p each. A posting stays for a time t, so n records have u * t of
//   them. The sum is least at s = sqrt(c / p * L * n / (u * t)), so n / s = sqrt(n * u / (c / p * L / t)). The weight
//   of a range of even density is the sum of its parts' weights.
// Hysteresis: a range is split when it weighs kSplitWeight or more, into parts of about 1. Neighbours are merged when
//   together, as one range, they weigh kMergeWeight or less. A merged range is not split before its weight has doubled.
//   The parts of a split are not merged again, because together they weigh more. So if loads stay the same, or vary by
//   less than a factor of two, the plan is empty after a few rounds.
// Bounds: if the weights ask for more than `max_ranges` ranges, all weights are reduced in proportion. A range has
//   min_records or more. One plan adds at most max_changed ranges, the heaviest first, and removes about as many at
//   most.
#ifndef TC_SERVER_RANGE_PLAN_H_
#define TC_SERVER_RANGE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deut::tc {

// Load of one range.
struct RangeLoad {
  double records = 0;
  double updates = 0;  // per second

  RangeLoad& operator+=(const RangeLoad& other) {
    records += other.records;
    updates += other.updates;
    return *this;
  }
};

struct RangePlanOptions {
  double records_per_range = 2000;
  double records_times_updates = 80'000;  // see above
  double min_records = 16;
  size_t max_ranges = 8192;
  size_t max_changed = 512;
};

// The ranges [first, first + count) become `parts` ranges. One of the two numbers is 1.
struct RangeStep {
  size_t first = 0;
  size_t count = 1;
  size_t parts = 1;
  bool hot = false;  // for a split: its updates are the reason

  friend bool operator==(const RangeStep&, const RangeStep&) = default;
};

struct RangePlan {
  static constexpr double kSplitWeight = 2;
  static constexpr double kMergeWeight = 1;
  // Neighbours that one step merges; few, so that no range is sealed for long.
  static constexpr size_t kMaxMergedAtOnce = 16;

  std::vector<RangeStep> steps;  // ascending
};

// `loads` has all ranges of the table, in order.
RangePlan PlanRanges(const std::vector<RangeLoad>& loads, const RangePlanOptions& options);

}  // namespace deut::tc

#endif  // TC_SERVER_RANGE_PLAN_H_

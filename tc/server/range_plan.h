// RangePlan: which of a table's logical ranges to split and which to merge, from what lies in each and how often it is written to (paper,
// section 5.5 and figure 7). A pure function.
//
// Weight. A range of n records that are updated u times a second is worth `weight` ranges: the larger of
//   n / records_per_range               what a scan that meets no writer may lose to one that it does not even overlap, and
//   sqrt(n * u / updates_by_records)    the optimum of figure 7.
// The latter: a scan of L records, anywhere among ranges of s records, crosses L / s + 1 of them, at c each, and examines the postings of
//   (L + s) records, at p each; a posting stays for a time t, so n records have u * t of them. The sum is least at s = sqrt(c / p * L * n / (u * t)),
//   so n / s = sqrt(n * u / (c / p * L / t)). The weight of a range of even density is the sum of its parts' weights.
// Hysteresis. A range is split when it weighs kSplit or more, into parts of about 1; neighbours are merged when together, as one range, they
//   weigh kMerge or less. What is merged is not split before its weight has doubled; what is split is not merged again, as it weighed more; so
//   under loads that stay as they are, or that move to and fro by less than a factor of two, the plan is empty after a few rounds.
// Bounds. With more than `max_ranges` would allow, all weights are less in proportion. A range has min_records or more. One plan makes and takes
//   away no more than max_changed ranges; the heaviest come first.
#ifndef TC_SERVER_RANGE_PLAN_H_
#define TC_SERVER_RANGE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace deut::tc {

// Of one range.
struct RangeLoad {
  double records = 0;
  double updates = 0;  // a second

  RangeLoad& operator+=(const RangeLoad& other) {
    records += other.records;
    updates += other.updates;
    return *this;
  }
};

struct RangePlanOptions {
  double records_per_range = 2000;
  double updates_by_records = 80'000;  // see above
  double min_records = 16;
  size_t max_ranges = 8192;
  size_t max_changed = 512;
};

// The ranges [first, first + count) become `parts`: either is 1.
struct RangeStep {
  size_t first = 0;
  size_t count = 1;
  size_t parts = 1;
  bool hot = false;  // of a split: because of the updates in it

  friend bool operator==(const RangeStep&, const RangeStep&) = default;
};

struct RangePlan {
  static constexpr double kSplit = 2;
  static constexpr double kMerge = 1;
  // Neighbours that become one at a time: so that no range is sealed for long.
  static constexpr size_t kMergedAtOnce = 16;

  std::vector<RangeStep> steps;  // ascending
};

// `loads`: of all ranges of the table, in order.
RangePlan PlanRanges(const std::vector<RangeLoad>& loads, const RangePlanOptions& options);

}  // namespace deut::tc

#endif  // TC_SERVER_RANGE_PLAN_H_

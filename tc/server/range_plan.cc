#include "tc/server/range_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/base/check.h"

namespace deut::tc {
namespace {

// The weights of all ranges together are at most this part of max_ranges. The rest is room for ranges that weigh too
// much to be merged and too little to be split.
constexpr double kMaxWeightFraction = 0.7;

class Scale {
 public:
  Scale(const std::vector<RangeLoad>& loads, const RangePlanOptions& options) : options_(options) {
    double all = 0;
    for (const RangeLoad& load : loads) all += Weight(load);
    factor_ = std::min(1.0, kMaxWeightFraction * static_cast<double>(options.max_ranges) / std::max(all, 1.0));
  }

  double Weight(const RangeLoad& load) const {
    return std::max(load.records / options_.records_per_range, WeightOfUpdates(load)) * factor_;
  }
  bool Hot(const RangeLoad& load) const { return WeightOfUpdates(load) > load.records / options_.records_per_range; }

 private:
  double WeightOfUpdates(const RangeLoad& load) const {
    return std::min(std::sqrt(load.records * load.updates / options_.records_times_updates),
                    load.records / options_.min_records);
  }

  const RangePlanOptions& options_;
  double factor_ = 1;
};

// All splits, without regard to the bounds.
std::vector<RangeStep> Splits(const std::vector<RangeLoad>& loads, const Scale& scale) {
  std::vector<RangeStep> splits;
  for (size_t i = 0; i < loads.size(); ++i) {
    const double weight = scale.Weight(loads[i]);
    if (weight < RangePlan::kSplitWeight) continue;
    splits.push_back({.first = i, .parts = static_cast<size_t>(weight), .hot = scale.Hot(loads[i])});
  }
  return splits;
}

std::vector<RangeStep> Merges(const std::vector<RangeLoad>& loads, const Scale& scale) {
  std::vector<RangeStep> merges;
  for (size_t i = 0; i < loads.size();) {
    RangeLoad sum = loads[i];
    size_t end = i + 1;
    for (; end < loads.size() && end - i < RangePlan::kMaxMergedAtOnce; ++end) {
      RangeLoad with = sum;
      with += loads[end];
      if (scale.Weight(with) > RangePlan::kMergeWeight) break;
      sum = with;
    }
    if (end - i > 1) merges.push_back({.first = i, .count = end - i});
    i = end;
  }
  return merges;
}

// Returns whether the steps ascend, do not overlap, and lie within `ranges` ranges.
bool AreDisjoint(const std::vector<RangeStep>& steps, size_t ranges) {
  size_t end = 0;
  for (const RangeStep& step : steps) {
    if (step.first < end) return false;
    end = step.first + step.count;
  }
  return end <= ranges;
}

// Returns the number of ranges that the steps leave of `ranges` ranges.
size_t RangesAfter(const std::vector<RangeStep>& steps, size_t ranges) {
  for (const RangeStep& step : steps) ranges = ranges - step.count + step.parts;
  return ranges;
}

}  // namespace

RangePlan PlanRanges(const std::vector<RangeLoad>& loads, const RangePlanOptions& options) {
  const Scale scale(loads, options);
  RangePlan plan;
  size_t taken = 0;
  for (const RangeStep& merge : Merges(loads, scale)) {
    if (taken >= options.max_changed) break;
    taken += merge.count - 1;
    plan.steps.push_back(merge);
  }
  std::vector<RangeStep> splits = Splits(loads, scale);
  std::ranges::stable_sort(splits, std::greater<>(), &RangeStep::parts);
  // Merged ranges make room only for the next plan.
  size_t left = std::min(options.max_ranges - std::min(options.max_ranges, loads.size()), options.max_changed);
  for (RangeStep& split : splits) {
    split.parts = std::min(split.parts, left + 1);
    if (split.parts < 2) break;
    left -= split.parts - 1;
    plan.steps.push_back(split);
  }
  std::ranges::sort(plan.steps, {}, &RangeStep::first);
  // A range that is heavy enough to be split is too heavy for any merge.
  DEUT_CHECK(AreDisjoint(plan.steps, loads.size()));
  DEUT_CHECK(RangesAfter(plan.steps, loads.size()) <= std::max(options.max_ranges, loads.size()));
  return plan;
}

}  // namespace deut::tc

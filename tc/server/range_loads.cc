#include "tc/server/range_loads.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "common/base/check.h"

namespace deut::tc {
namespace {

// Calls `visit` for each range [lows[i], lows[i + 1]), with the indexes [first, end) of the pieces that it overlaps.
// The pieces begin at the empty key and at `cuts`.
template <typename Visit>
void ForEachOverlap(const std::vector<std::string>& lows, const std::vector<std::string>& cuts, Visit&& visit) {
  size_t first = 0;  // the piece that holds the range's low
  for (size_t i = 0; i < lows.size(); ++i) {
    while (first < cuts.size() && cuts[first] <= lows[i]) ++first;
    size_t last = first;
    while (last < cuts.size() && (i + 1 == lows.size() || cuts[last] < lows[i + 1])) ++last;
    visit(i, first, last + 1);
  }
}

}  // namespace

void RangeLoads::Follow(const RangeMap& map, MonotonicTime now) {
  std::vector<std::string> lows;
  lows.reserve(map.size());
  seen_.clear();
  for (const Range* range : map.ranges()) {
    lows.push_back(range->low());
    seen_.push_back({.posted = range->posted(), .conflicts = range->conflicts()});
  }
  // The ranges of a map are in order, without gaps, from the empty key on.
  DEUT_CHECK(!lows.empty() && lows.front().empty());
  DEUT_CHECK(std::ranges::adjacent_find(lows, std::greater_equal<>()) == lows.end());
  std::vector<RangeLoad> loads(lows.size());
  if (!lows_.empty()) {
    // The old ranges are treated as ranges, and the new ones as pieces. The first of either begins at the empty key.
    const std::vector<std::string> cuts(lows.begin() + 1, lows.end());
    ForEachOverlap(lows_, cuts, [&](size_t old, size_t first, size_t end) {
      const auto parts = static_cast<double>(end - first);
      for (size_t i = first; i < end; ++i) {
        loads[i] += {.records = loads_[old].records / parts, .updates = loads_[old].updates / parts};
      }
    });
  }
  lows_ = std::move(lows);
  loads_ = std::move(loads);
  measured_ = now;
}

void RangeLoads::Measure(const RangeMap& map, MonotonicTime now) {
  DEUT_CHECK(map.size() == loads_.size());
  const double passed = std::chrono::duration<double>(now - measured_).count();
  if (passed <= 0) return;
  measured_ = now;
  const auto part_of = [&](Duration time) {
    return 1 - std::exp(-passed / std::chrono::duration<double>(time).count());
  };
  const double rise = part_of(kRiseTime), fall = part_of(kFallTime);
  for (size_t i = 0; i < loads_.size(); ++i) {
    const Seen is{.posted = map.at(i).posted(), .conflicts = map.at(i).conflicts()};
    const Seen was = std::exchange(seen_[i], is);
    DEUT_CHECK(is.posted >= was.posted && is.conflicts >= was.conflicts);  // else another range than before
    posted_ += is.posted - was.posted;
    const uint64_t updates = is.posted - was.posted + kUpdatesPerConflict * (is.conflicts - was.conflicts);
    const double change = static_cast<double>(updates) / passed - loads_[i].updates;
    loads_[i].updates += change * (change > 0 ? rise : fall);
  }
}

void RangeLoads::SetPieces(double records, std::vector<std::string> cuts) {
  cuts_ = std::move(cuts);
  posted_ = 0;
  std::vector<double> sharing(cuts_.size() + 1);
  ForEachOverlap(lows_, cuts_, [&](size_t, size_t first, size_t end) {
    for (size_t piece = first; piece < end; ++piece) ++sharing[piece];
  });
  const double of_piece = records / static_cast<double>(sharing.size());
  ForEachOverlap(lows_, cuts_, [&](size_t range, size_t first, size_t end) {
    loads_[range].records = 0;
    for (size_t piece = first; piece < end; ++piece) loads_[range].records += of_piece / sharing[piece];
  });
}

std::vector<std::string> RangeLoads::CutsBetween(std::string_view low, std::string_view high) const {
  const auto first = std::upper_bound(cuts_.begin(), cuts_.end(), low);
  const auto end = high.empty() ? cuts_.end() : std::lower_bound(first, cuts_.end(), high);
  return {first, end};
}

}  // namespace deut::tc

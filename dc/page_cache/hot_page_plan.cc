#include "dc/page_cache/hot_page_plan.h"

#include <algorithm>
#include <utility>

namespace deut::dc {

// An id that the list has twice would be read twice.
HotPagePlan::HotPagePlan(std::vector<HotPage> pages) : pages_(std::move(pages)) {
  std::ranges::sort(pages_, {}, &HotPage::base);
  const auto repeated = std::ranges::unique(pages_, {}, &HotPage::base);
  pages_.erase(repeated.begin(), repeated.end());
}

std::span<const HotPage> HotPagePlan::Take(uint64_t bytes) {
  const size_t begin = taken_;
  uint64_t sum = 0;
  while (taken_ < pages_.size() && taken_ - begin < kMaxWindowPages) {
    sum += pages_[taken_].bytes;
    if (sum > bytes && taken_ != begin) break;
    ++taken_;
  }
  return std::span<const HotPage>(pages_).subspan(begin, taken_ - begin);
}

std::vector<RunOfParts> PlanRuns(std::vector<PageAddress>* parts, uint64_t max_gap_bytes) {
  std::ranges::sort(*parts);
  std::vector<RunOfParts> runs;
  for (const PageAddress part : *parts) {
    if (!runs.empty()) {
      RunOfParts& run = runs.back();
      const uint64_t gap_end = run.last.offset() + run.last.length_bound() + max_gap_bytes;
      const uint64_t bytes = part.offset() + part.length_bound() - run.first.offset();
      if (part.segment() == run.first.segment() && part.offset() <= gap_end && bytes <= kMaxRunBytes) {
        run.last = part;
        continue;
      }
    }
    runs.push_back({part, part});
  }
  return runs;
}

}  // namespace deut::dc

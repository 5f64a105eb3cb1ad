// HotPagePlan: in which order and with which reads the pages of a list are fetched. Internal to HotPages, except the
// runs (run_reader.h).
//
// Pages are taken in the order of their base parts on the disk, in windows: some neighbours together. All parts of a
// window are then read by runs: parts that lie close together in a segment are read with one transfer, with the bytes
// between them. A page's delta parts lie elsewhere, but those of neighbours lie close together, because pages are
// written in the order of their keys.
// Thread-safety: none. Ownership: values.
#ifndef DC_PAGE_CACHE_HOT_PAGE_PLAN_H_
#define DC_PAGE_CACHE_HOT_PAGE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {

struct HotPage {
  PageAddress base;  // the base part of its image
  PageId id;
  uint32_t bytes = 0;  // of all parts
};

class HotPagePlan {
 public:
  static constexpr size_t kMaxWindowPages = 256;

  HotPagePlan() = default;
  explicit HotPagePlan(std::vector<HotPage> pages);

  size_t size() const { return pages_.size(); }
  // Returns the next window: at least one page, else at most kMaxWindowPages of at most `bytes` together. It is valid
  // as long as the plan. Empty: none is left.
  std::span<const HotPage> Take(uint64_t bytes);

 private:
  std::vector<HotPage> pages_;
  size_t taken_ = 0;
};

// The parts from `first` to `last`, in one segment.
struct RunOfParts {
  PageAddress first;
  PageAddress last;
};

// A longer transfer gains little, and requests that miss meanwhile wait behind it.
constexpr uint64_t kMaxRunBytes = 512 << 10;
// To read this much in vain takes a device less time than another read.
constexpr uint64_t kMaxGapBytes = 32 << 10;

// Sorts the parts, and returns the runs that cover them, in the same order. A run has at most kMaxRunBytes, or one
// part, and gaps of at most `max_gap_bytes`.
std::vector<RunOfParts> PlanRuns(std::vector<PageAddress>* parts, uint64_t max_gap_bytes = kMaxGapBytes);

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_HOT_PAGE_PLAN_H_

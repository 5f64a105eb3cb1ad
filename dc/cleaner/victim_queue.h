// VictimQueue: of all segments that a pass has seen, those whose cleaning gains most, at most kMaxVictims of them. So
// one pass serves many choices of the cleaner, and no pass copies the usage of all segments. [Rosenblum, Ousterhout:
// "The Design and Implementation of a Log-Structured File System", SOSP 1991, section 3.5: cost and benefit]
//
// To clean a segment of which the part u is live costs a read of it and a copy of u. The gain is 1 - u of free space
// for as long as the copy stays as it is. The parts that are left in an old segment have not changed for long, so they
// are likely to stay. Those in a young one are likely to die soon by themselves. So the best victim has the largest
// (1 - u) * age / (1 + u).
// The emptiest-first order copies the pages of young segments again and again, each time shortly before they die.
// The age is the number of segments that were begun since. It needs no clock and no state, and survives a restart.
#ifndef DC_CLEANER_VICTIM_QUEUE_H_
#define DC_CLEANER_VICTIM_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/check.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

// True if a smaller part of `a` is live; among equals, if it is the older one. The products fit: a segment has at most
// 1 GiB, and one with a single large part 60 MiB.
inline bool IsEmptier(const SegmentUsage& a, const SegmentUsage& b) {
  const uint64_t of_a = a.live_bytes * b.written_bytes, of_b = b.live_bytes * a.written_bytes;
  return of_a < of_b || (of_a == of_b && a.number < b.number);
}

// An order of victims: true if cleaning `a` gains more; among equals, if `a` is the older one.
class IsBetterVictim {
 public:
  // `next_segment`: above the numbers of all victims.
  explicit IsBetterVictim(uint64_t next_segment) : next_segment_(next_segment) {}

  bool operator()(const SegmentUsage& a, const SegmentUsage& b) const {
    const double of_a = Gain(a), of_b = Gain(b);
    return of_a > of_b || (of_a == of_b && a.number < b.number);
  }

 private:
  double Gain(const SegmentUsage& usage) const {
    DEUT_DCHECK(usage.number < next_segment_);
    const uint64_t live = std::min(usage.live_bytes, usage.written_bytes);  // lengths of parts are rounded up
    const auto dead = static_cast<double>(usage.written_bytes - live);
    return dead / static_cast<double>(usage.written_bytes + live) * static_cast<double>(next_segment_ - usage.number);
  }

  uint64_t next_segment_;
};

class VictimQueue {
 public:
  static constexpr size_t kMaxVictims = 64;

  // `next_segment`: above the numbers of all victims.
  explicit VictimQueue(uint64_t next_segment = 1) : is_better_(next_segment) {}

  // REQUIRES: Pop was not called yet.
  void Add(const SegmentUsage& usage) {
    DEUT_DCHECK(!sorted_);
    // While segments are added, `victims_` is a heap with the worst victim on top.
    if (victims_.size() == kMaxVictims) {
      if (!is_better_(usage, victims_.front())) return;
      std::ranges::pop_heap(victims_, is_better_);
      victims_.pop_back();
    }
    victims_.push_back(usage);
    std::ranges::push_heap(victims_, is_better_);
  }

  // Takes the best victim that is left.
  std::optional<SegmentUsage> Pop() {
    if (!sorted_) {
      std::ranges::sort_heap(victims_, is_better_);
      std::ranges::reverse(victims_);
      sorted_ = true;
    }
    if (victims_.empty()) return std::nullopt;
    const SegmentUsage best = victims_.back();
    victims_.pop_back();
    return best;
  }

 private:
  IsBetterVictim is_better_;
  std::vector<SegmentUsage> victims_;
  bool sorted_ = false;  // since the first Pop: the best one is the last
};

}  // namespace deut::dc

#endif  // DC_CLEANER_VICTIM_QUEUE_H_

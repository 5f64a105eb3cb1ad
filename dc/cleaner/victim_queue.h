// VictimQueue: of all segments that a pass has seen, the emptiest, at most kMaxVictims of them. So one pass serves many
// choices of the cleaner, and no pass copies the usage of all segments.
// Thread-safety: one thread at a time. Memory: kMaxVictims usages.
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
inline bool IsBetterVictim(const SegmentUsage& a, const SegmentUsage& b) {
  const uint64_t of_a = a.live_bytes * b.written_bytes, of_b = b.live_bytes * a.written_bytes;
  return of_a < of_b || (of_a == of_b && a.number < b.number);
}

class VictimQueue {
 public:
  static constexpr size_t kMaxVictims = 64;

  // REQUIRES: Pop was not called yet.
  void Add(const SegmentUsage& usage) {
    DEUT_DCHECK(!sorted_);
    // While segments are added, `victims_` is a heap with the worst victim on top.
    if (victims_.size() == kMaxVictims) {
      if (!IsBetterVictim(usage, victims_.front())) return;
      std::ranges::pop_heap(victims_, IsBetterVictim);
      victims_.pop_back();
    }
    victims_.push_back(usage);
    std::ranges::push_heap(victims_, IsBetterVictim);
  }

  // Takes the best victim that is left.
  std::optional<SegmentUsage> Pop() {
    if (!sorted_) {
      std::ranges::sort_heap(victims_, IsBetterVictim);
      std::ranges::reverse(victims_);
      sorted_ = true;
    }
    if (victims_.empty()) return std::nullopt;
    const SegmentUsage best = victims_.back();
    victims_.pop_back();
    return best;
  }

 private:
  std::vector<SegmentUsage> victims_;
  bool sorted_ = false;  // since the first Pop: the best one is the last
};

}  // namespace deut::dc

#endif  // DC_CLEANER_VICTIM_QUEUE_H_

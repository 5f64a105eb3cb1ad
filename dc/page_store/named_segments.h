// NamedSegments: the segments that a checkpoint names, found by their numbers. Internal to the page store.
//
// Structure: the range of numbers is cut into intervals of one length, a power of 2, at most two for each segment. For
//   each interval there is the place of its first segment. So a search looks at the segments of one interval: at one, if
//   the numbers are dense. If they lie far apart in groups, it is a binary search in one group.
// Memory: at most 32 bytes for each segment, whatever the numbers are, and as much again while segments are added.
// Thread-safety: one thread at a time; Find from any thread, once EndAdding was called.
#ifndef DC_PAGE_STORE_NAMED_SEGMENTS_H_
#define DC_PAGE_STORE_NAMED_SEGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dc/page_store/segment_format.h"

namespace deut::dc {

class NamedSegments {
 public:
  // REQUIRES: a number above all that were added; EndAdding was not called.
  void Add(const SegmentExtent& segment);
  void EndAdding();

  size_t size() const { return segments_.size(); }
  // The place of a segment is its rank among the numbers.
  const SegmentExtent& operator[](size_t place) const { return segments_[place]; }
  // The largest number; 0: there is no segment.
  uint64_t last_number() const { return segments_.empty() ? 0 : segments_.back().number; }
  // Returns the place of the segment with this number; size() if there is none. REQUIRES: EndAdding was called.
  size_t Find(uint64_t number) const {
    if (segments_.empty() || number < segments_.front().number || number > segments_.back().number) return size();
    const uint64_t interval = IntervalOf(number);
    size_t first = firsts_[interval], end = firsts_[interval + 1];
    while (end - first > 1) {
      const size_t middle = first + (end - first) / 2;
      (segments_[middle].number <= number ? first : end) = middle;
    }
    return first < end && segments_[first].number == number ? first : size();
  }

 private:
  uint64_t IntervalOf(uint64_t number) const { return (number - segments_.front().number) >> interval_shift_; }

  std::vector<SegmentExtent> segments_;
  int interval_shift_ = 0;  // an interval has 1 << interval_shift_ numbers
  // The place of the first segment of each interval, or of a later one; at the end size().
  std::vector<uint32_t> firsts_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_NAMED_SEGMENTS_H_

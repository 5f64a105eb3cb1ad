#include "dc/page_store/named_segments.h"

#include "common/base/check.h"

namespace deut::dc {
namespace {

constexpr uint64_t kMaxIntervalsPerSegment = 2;

}  // namespace

void NamedSegments::Add(const SegmentExtent& segment) {
  DEUT_CHECK(segment.number > last_number() && firsts_.empty());
  segments_.push_back(segment);
}

void NamedSegments::EndAdding() {
  firsts_.clear();
  if (segments_.empty()) return;
  interval_shift_ = 0;
  while (IntervalOf(last_number()) >= kMaxIntervalsPerSegment * segments_.size()) ++interval_shift_;
  firsts_.reserve(IntervalOf(last_number()) + 2);
  for (size_t place = 0; place < segments_.size(); ++place) {
    while (firsts_.size() <= IntervalOf(segments_[place].number)) firsts_.push_back(static_cast<uint32_t>(place));
  }
  firsts_.push_back(static_cast<uint32_t>(segments_.size()));
}

}  // namespace deut::dc

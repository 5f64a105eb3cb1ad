// SegmentCheck: how the segments that a checkpoint names are looked at when a store is opened. A plain value.
#ifndef DC_PAGE_STORE_SEGMENT_CHECK_H_
#define DC_PAGE_STORE_SEGMENT_CHECK_H_

#include <functional>

#include "common/base/status.h"

namespace deut::dc {

struct SegmentCheck {
  int threads = 16;
  // After each segment, by the thread that looked at it. An error ends it all.
  std::function<Status()> on_checked = [] { return Status::Ok(); };
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_CHECK_H_

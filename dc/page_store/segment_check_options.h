// SegmentCheckOptions: how a store checks the segments that a checkpoint names when it is opened. A plain value.
#ifndef DC_PAGE_STORE_SEGMENT_CHECK_OPTIONS_H_
#define DC_PAGE_STORE_SEGMENT_CHECK_OPTIONS_H_

#include <functional>

#include "common/base/status.h"

namespace deut::dc {

struct SegmentCheckOptions {
  int threads = 16;
  // Called after each segment, by the thread that checked it. An error ends the whole check.
  std::function<Status()> on_checked = [] { return Status::Ok(); };
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_CHECK_OPTIONS_H_

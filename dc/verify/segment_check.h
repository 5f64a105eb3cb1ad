// SegmentCheck: one segment's file by itself: its header, and every part in it.
//   [header, named)  what a checkpoint names: whatever is not a right part of this place, or zeros, is damage
//   [named, end)     what was appended after the last checkpoint, whole or torn: nobody needs it; whole parts are counted, the rest is a tail
// Memory: a megabyte, or the largest part. Thread-safety: pure function.
#ifndef DC_VERIFY_SEGMENT_CHECK_H_
#define DC_VERIFY_SEGMENT_CHECK_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/segment_format.h"
#include "dc/verify/data_directory.h"

namespace deut::dc {

struct SegmentReport {
  SegmentKind kind = SegmentKind::kBase;
  uint64_t number = 0;
  uint64_t file_bytes = 0;
  uint64_t named_bytes = 0;            // that checkpoints name; 0: none does
  uint64_t parts = 0, part_bytes = 0;  // right ones
  uint64_t tail_bytes = 0;             // behind the last right part, unused
  uint64_t damages = 0;
  bool header_right = false;
  // How much of it may be read: its header is right, and there are so many bytes.
  uint64_t usable_bytes() const {
    return header_right ? (named_bytes < file_bytes ? named_bytes : file_bytes / kIoAlignment * kIoAlignment) : 0;
  }
};

// `named_bytes`: the most that a checkpoint names of it; 0: none does. `dc`: whose it must be, if that is known. `on_damage` is told
// each damage in what is named. VERSION_MISMATCH: of a format that this program does not know.
Result<SegmentReport> CheckSegment(Storage& storage, const SegmentFile& segment, uint64_t named_bytes,
                                   std::optional<DcId> dc, const std::function<void(const Status&)>& on_damage);

}  // namespace deut::dc

#endif  // DC_VERIFY_SEGMENT_CHECK_H_

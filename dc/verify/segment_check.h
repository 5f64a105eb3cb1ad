// SegmentCheck: checks one segment's file alone: its header, and every part in it.
//   [header, named)  the bytes that a checkpoint names. Everything there that is neither an intact part of this place
//                    nor zeros is damage
//   [named, end)     bytes that were appended after the last checkpoint, intact or torn. No checkpoint needs them.
//                    Intact parts are counted; the rest is a tail
// Memory: a megabyte, or the largest part. Thread-safety: pure function. Ownership: none.
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
  uint64_t named_bytes = 0;            // bytes that checkpoints name; 0: none does
  uint64_t parts = 0, part_bytes = 0;  // intact parts
  uint64_t tail_bytes = 0;             // unused bytes behind the last intact part
  uint64_t damages = 0;
  bool header_intact = false;
  // Bytes that may be read: they exist, and the header is right.
  uint64_t usable_bytes() const {
    return header_intact ? (named_bytes < file_bytes ? named_bytes : file_bytes / kIoAlignment * kIoAlignment) : 0;
  }
};

// Checks a segment. `named_bytes`: the largest number of its bytes that a checkpoint names; 0: none does. `dc`: the
// owner, if known. `on_damage` is called for each damage in the named bytes. VERSION_MISMATCH: the segment has a
// format that this program does not know.
Result<SegmentReport> CheckSegment(Storage& storage, const SegmentFile& segment, uint64_t named_bytes,
                                   std::optional<DcId> dc, const std::function<void(const Status&)>& on_damage);

}  // namespace deut::dc

#endif  // DC_VERIFY_SEGMENT_CHECK_H_

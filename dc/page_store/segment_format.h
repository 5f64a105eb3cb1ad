// Segment files: their names and their header block. A segment holds parts of one kind, appended once and never
// changed.
// Format with grammar: dc/docs/page_store.md.
// This program writes version 3 for a segment that may have packed parts (part_compression.h), and version 2 for any
// other. So an earlier program reads a store that never had a packed part, and refuses one that has by name. It also
// reads version 1: the same header, of a segment with parts of version 1.
// Thread-safety: pure functions. Errors: CORRUPTION naming file and offset; VERSION_MISMATCH for a format that this
// program does not know.
#ifndef DC_PAGE_STORE_SEGMENT_FORMAT_H_
#define DC_PAGE_STORE_SEGMENT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"

namespace deut::dc {

enum class SegmentKind : uint8_t { kBase = 1, kDelta = 2 };

constexpr size_t kSegmentHeaderBytes = kIoAlignment;

struct SegmentHeader {
  SegmentKind kind = SegmentKind::kBase;
  uint64_t number = 0;
  DcId dc = {};
  uint64_t capacity_bytes = 0;  // upper bound of the file's size; a multiple of kIoAlignment, at most 1 GiB
  bool packed_parts = false;    // it may have packed parts
  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

// A segment as a checkpoint names it: bytes of the file behind `written_bytes` do not belong to the checkpoint.
struct SegmentExtent {
  uint64_t number = 0;
  SegmentKind kind = SegmentKind::kBase;
  uint64_t written_bytes = 0;  // includes the header block; a multiple of kIoAlignment
  friend bool operator==(const SegmentExtent&, const SegmentExtent&) = default;
};

// Fills kSegmentHeaderBytes bytes.
void EncodeSegmentHeader(const SegmentHeader& header, char* out);
Result<SegmentHeader> DecodeSegmentHeader(std::string_view bytes, std::string_view path);

// Returns "base-" or "delta-", the number in 12 hexadecimal digits, ".seg".
std::string SegmentName(SegmentKind kind, uint64_t number);
// False if `name` is not a segment's name.
bool ParseSegmentName(std::string_view name, SegmentKind* kind, uint64_t* number);

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_FORMAT_H_

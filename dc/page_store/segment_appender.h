// SegmentAppender: appends parts to segments of one kind, through a buffer.
//
// Append gives a part its address and copies it into the buffer; a full buffer is written to the file at once. Write
// writes the rest, filled up to a multiple of 4 KiB. If it returns OK, every part appended before can be read and
// counts as live.
// An append batch, here just batch, is the parts appended since the last Write.
// When Append or Write fails with RESOURCE_EXHAUSTED the whole batch is void. Its addresses are useless, and none of
// its parts counts as live. Its bytes in files lie beyond the `written_bytes` of their segments. The appender goes on
// with a new segment. After any other error the store is fatal.
// A part too large for a short segment (SegmentStoreOptions::segment_bytes) gets a segment of its own.
// The appender looks at the disk before each short segment's length that it appends, also within a long segment
// (disk_reserve.h). If its use may take no more (RESOURCE_EXHAUSTED), the batch is void and the segment is closed.
// Before its first packed part (part_compression.h) an appender begins a new segment, whose header says that it may have
// such parts; so do the headers of all later ones. Until then its segments are of the version that earlier programs
// read.
// A Write of nothing closes the current segment if half of it is dead and the disk is short of space.
// The destructor closes the current segment; a batch not written is void.
//
// Thread-safety: one thread at a time. Ownership: its store outlives it. Memory: the buffer, room for a
// packed part, and a part too large for the buffer while that is appended.
#ifndef DC_PAGE_STORE_SEGMENT_APPENDER_H_
#define DC_PAGE_STORE_SEGMENT_APPENDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "common/base/compression.h"
#include "common/base/status.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/space_use.h"

namespace deut::dc {

class SegmentFiles;

class SegmentAppender {
 public:
  ~SegmentAppender();
  SegmentAppender(const SegmentAppender&) = delete;
  SegmentAppender& operator=(const SegmentAppender&) = delete;

  // REQUIRES: the header's kind is the appender's; a delta part names its previous one, a base part none.
  // INVALID_ARGUMENT naming the limit if the payload is too large; the batch stays as it was.
  // The payload is appended as it is; it is packed if the header says so.
  Result<PageAddress> Append(const PartHeader& header, std::string_view payload);
  // The same for content that is not packed. The part is packed if that makes it an eighth smaller, unless
  // `compression` is kNone.
  Result<PageAddress> AppendContent(const PartHeader& header, std::string_view content, Compression compression);
  Status Write();
  // Applies when the appender looks at the disk the next time; kOrdinary at first.
  void SetSpaceUse(SpaceUse use);

  SegmentKind kind() const;
  // Parts and bytes appended since the last Write.
  size_t batch_parts() const;
  size_t batch_bytes() const;
  // Bytes of memory that it holds.
  size_t buffer_bytes() const;

 private:
  friend class SegmentStore;
  struct Core;

  SegmentAppender(SegmentFiles& files, SegmentKind kind, uint64_t segment_bytes, size_t buffer_bytes);

  const std::unique_ptr<Core> core_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_APPENDER_H_

// PartBuffer: the read of a part, the part that was read, and its memory. It is reused from read to read, and grows to
// the largest part.
//
// States: idle -> begun (SegmentStore::BeginRead or TryBeginRead) -> idle (EndRead). While it is begun, it shares the
// segment and its file, and its owner runs `request()` on a queue of the same store. From the submission until the
// request is reaped, nobody touches the buffer, and it stays where it is.
// Thread-safety: none; one owner.
#ifndef DC_PAGE_STORE_PART_BUFFER_H_
#define DC_PAGE_STORE_PART_BUFFER_H_

#include <cstddef>
#include <memory>

#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment.h"

namespace deut::dc {

class PartBuffer {
 public:
  PartBuffer() = default;
  PartBuffer(const PartBuffer&) = delete;
  PartBuffer& operator=(const PartBuffer&) = delete;

  // The part with its content, unpacked. Valid after a read that returned OK, until the next read.
  const PartView& part() const { return part_; }
  // Bytes of memory that it holds, for callers with a memory budget.
  size_t bytes() const { return memory_.size() + content_.size(); }
  // The transfer of a begun read. The owner sets its `context`.
  IoRequest& request() { return request_; }
  // Gives up the segment and the file of a read that will not be ended. REQUIRES: its request is not in flight.
  void ForgetRead() {
    segment_.reset();
    file_.reset();
  }

 private:
  friend class SegmentStore;
  AlignedBuffer memory_;
  AlignedBuffer content_;  // of a packed part
  PartView part_;
  // State of a begun read.
  IoRequest request_;
  PageAddress address_;
  PageId page_;
  std::shared_ptr<Segment> segment_;
  std::shared_ptr<File> file_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PART_BUFFER_H_

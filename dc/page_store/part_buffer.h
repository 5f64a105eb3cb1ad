// PartBuffer: a part that was read, and its memory. It is reused from read to read, and grows to the largest part.
// Thread-safety: none; one owner.
#ifndef DC_PAGE_STORE_PART_BUFFER_H_
#define DC_PAGE_STORE_PART_BUFFER_H_

#include <cstddef>

#include "common/io/aligned_buffer.h"
#include "dc/page_store/part_format.h"

namespace deut::dc {

class PartBuffer {
 public:
  // Valid after a read that returned OK, until the next read.
  const PartView& part() const { return part_; }
  // Bytes of memory that it holds, for callers with a memory budget.
  size_t bytes() const { return memory_.size(); }

 private:
  friend class SegmentStore;
  AlignedBuffer memory_;
  PartView part_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PART_BUFFER_H_

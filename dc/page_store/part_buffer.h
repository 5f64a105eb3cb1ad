// PartBuffer: memory for a part that is read, and the part. Kept from read to read, it grows to the largest.
// Thread-safety: none; one owner.
#ifndef DC_PAGE_STORE_PART_BUFFER_H_
#define DC_PAGE_STORE_PART_BUFFER_H_

#include <cstddef>

#include "common/io/aligned_buffer.h"
#include "dc/page_store/part_format.h"

namespace deut::dc {

class PartBuffer {
 public:
  // Valid after a read that answered OK, until the next one.
  const PartView& part() const { return part_; }
  // What it holds on to, for those who keep a memory budget.
  size_t bytes() const { return memory_.size(); }

 private:
  friend class SegmentStore;
  AlignedBuffer memory_;
  PartView part_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PART_BUFFER_H_

// PartRun: one transfer that reads neighbouring parts of a segment, with all bytes between them. It is reused from
// read to read, and grows to the longest run.
//
// States: idle -> begun (SegmentStore::BeginReadRun) -> read (EndReadRun returned OK) -> idle (Reset). While it is
// begun, its owner runs `request()` on a queue of the same store, and nobody touches the run from the submission until
// the request is reaped. A run that is not idle shares its segment. Only a begun one shares the file, so runs that are
// read need no descriptors.
// Thread-safety: none; one owner. Ownership: owns its memory. Errors: as SegmentStore::Read.
#ifndef DC_PAGE_STORE_PART_RUN_H_
#define DC_PAGE_STORE_PART_RUN_H_

#include <cstddef>
#include <memory>
#include <string_view>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/io/aligned_buffer.h"
#include "common/io/storage.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment.h"

namespace deut::dc {

class PartRun {
 public:
  PartRun() = default;
  PartRun(const PartRun&) = delete;
  PartRun& operator=(const PartRun&) = delete;

  // The transfer of a begun run. The owner sets its `context`.
  IoRequest& request() { return request_; }
  // Verifies one of the parts, unpacks it, and returns it. It is valid until the next call. REQUIRES: the run is read,
  // and `address` lies between the first and the last part of the run.
  Result<PartView> Part(PageAddress address, PageId page) {
    DEUT_CHECK(address.segment() == segment_->number && address.offset() >= request_.offset &&
               address.offset() < request_.offset + request_.bytes);
    const std::string_view bytes(memory_.data(), request_.bytes);
    DEUT_ASSIGN_OR_RETURN(const PartView stored,
                          DecodePart(bytes.substr(address.offset() - request_.offset), address, page, segment_->path));
    return UnpackPart(stored, &content_, segment_->path);
  }
  // Gives up the segment and the file. REQUIRES: its request is not in flight.
  void Reset() {
    segment_.reset();
    file_.reset();
  }

 private:
  friend class SegmentStore;
  AlignedBuffer memory_;
  AlignedBuffer content_;  // of a packed part
  IoRequest request_;
  std::shared_ptr<Segment> segment_;
  std::shared_ptr<File> file_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_PART_RUN_H_

// ImageRead: the read of all parts of a page's image through a queue, with its buffers. Internal to PageLoader.
//
// States: idle -> begun (Begin) -> prepared (Prepare, or PrepareAndOpen) -> idle (Reset). Between the last two, its
// owner runs the transfers on a queue of the store, and calls Build when all were reaped. A part that cannot be read
// ends the preparation: there are no transfers then, and Build returns the error.
// A prepared read shares its segments and files, so that none is closed before it is read.
// Thread-safety: one thread at a time. Ownership: owns its buffers. While a transfer is in a queue, the object stays.
#ifndef DC_PAGE_CACHE_IMAGE_READ_H_
#define DC_PAGE_CACHE_IMAGE_READ_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/bwtree/image_parts.h"
#include "dc/bwtree/page_load.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/part_buffer.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {

class ImageRead {
 public:
  ImageRead() = default;
  ImageRead(const ImageRead&) = delete;
  ImageRead& operator=(const ImageRead&) = delete;

  // REQUIRES: idle.
  void Begin(PageId page, const ImageParts& parts);
  // Prepares the transfers of the parts whose files are open. Never blocks. False: a file is not open.
  bool Prepare(SegmentStore& store);
  // Prepares the others, too. Blocks on the disk. If a shortage of descriptors or kernel memory prevents it,
  // met_shortage() is true, and the caller may call it again.
  void PrepareAndOpen(SegmentStore& store);
  bool met_shortage() const { return failure_ == ErrorCode::kResourceExhausted; }

  // Number of parts of the image, and an upper bound of their size.
  size_t parts() const { return parts_.count(); }
  uint64_t bytes() const { return bytes_; }
  // Number of transfers to run. 0: a part cannot be read.
  size_t transfers() const { return failure_.ok() ? prepared_ : 0; }
  IoRequest& request(size_t i) { return buffers_[i].request(); }

  // Verifies the parts that were read, and builds the page. Sets page->id and page->parts in any case.
  // REQUIRES: all transfers were reaped or refused.
  Status Build(SegmentStore& store, PageLoad* page);
  // Gives up the segments and files. REQUIRES: no transfer is in flight.
  void Reset();
  // True if its buffers are so small that it is worth to keep it for another read.
  bool IsSmall() const;

 private:
  PageId page_;
  ImageParts parts_;
  uint64_t bytes_ = 0;
  size_t prepared_ = 0;  // number of parts, from the first on
  Status failure_;       // of the part behind them
  std::array<PartBuffer, ImageParts::kMax> buffers_;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_IMAGE_READ_H_

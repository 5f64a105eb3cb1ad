// SparseSegments: lays out parts in segments, and writes only some of them. The other parts get addresses as if they had
// been written, and lie in holes of sparse files. Segment headers and written parts are those of the page store
// (segment_format.h, part_format.h).
//
// Between a hole and a written part, a new block begins, as between two batches of an appender. So a scan of a segment
// finds all written parts, and takes holes for filling.
// Nothing is synced: a store that a loss of power destroys is made again.
// Thread-safety: one thread. Ownership: borrows the storage. Errors: those of the storage; ALREADY_EXISTS: the directory
// has a segment already. Memory: the written bytes between two holes.
#ifndef DC_BENCH_SPARSE_SEGMENTS_H_
#define DC_BENCH_SPARSE_SEGMENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_format.h"

namespace deut::dc::bench {

class SparseSegments {
 public:
  // `segment_bytes`: the length of each segment but the last one; a multiple of kIoAlignment, at most 1 GiB, with room
  // for each part.
  SparseSegments(Storage& storage, std::string directory, DcId dc, uint64_t segment_bytes);

  // Appends a base part.
  Result<PageAddress> Append(const PartHeader& header, std::string_view payload);
  // Appends a base part with a payload of this length, which is not written.
  Result<PageAddress> AppendHole(uint64_t payload_bytes);
  // Ends the last segment.
  Status End();

  // The number of the segment that was begun last; 0: none was.
  uint64_t segment() const { return segment_; }
  // The segments that have ended.
  const std::vector<SegmentExtent>& extents() const { return extents_; }
  // Bytes of transfers.
  uint64_t written_bytes() const { return written_bytes_; }

 private:
  // Makes `position_` the place of a part of this length, in a new segment if the current one has no room.
  Status MakeRoom(uint64_t bytes, bool hole);
  Status Begin();
  // Writes `run_` into the file, with zeros up to the end of the last block.
  Status WriteRun();
  PageAddress AddressOf(uint64_t payload_bytes) const;

  Storage& storage_;
  const std::string directory_;
  const DcId dc_;
  const uint64_t segment_bytes_;

  uint64_t segment_ = 0;
  std::unique_ptr<File> file_;  // of the current segment
  uint64_t position_ = 0;       // in the current segment, behind the last part
  bool in_hole_ = false;        // the last part is not written
  uint64_t run_begin_ = 0;      // the offset of `run_`, a multiple of kIoAlignment
  std::string run_;             // bytes up to `position_`, unless that is in a hole
  std::vector<SegmentExtent> extents_;
  uint64_t written_bytes_ = 0;
};

}  // namespace deut::dc::bench

#endif  // DC_BENCH_SPARSE_SEGMENTS_H_

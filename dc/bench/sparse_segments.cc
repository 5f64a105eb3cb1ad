#include "dc/bench/sparse_segments.h"

#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"

namespace deut::dc::bench {

SparseSegments::SparseSegments(Storage& storage, std::string directory, DcId dc, uint64_t segment_bytes)
    : storage_(storage), directory_(std::move(directory)), dc_(dc), segment_bytes_(segment_bytes) {
  DEUT_CHECK(segment_bytes % kIoAlignment == 0 && segment_bytes <= PageAddress::kMaxOffset);
}

PageAddress SparseSegments::AddressOf(uint64_t payload_bytes) const {
  return PageAddress::Make(segment_, position_, PartBytes(payload_bytes));
}

Result<PageAddress> SparseSegments::Append(const PartHeader& header, std::string_view payload) {
  DEUT_CHECK(header.kind == PartKind::kBase);
  const uint64_t bytes = PartBytesInUnits(payload.size());
  DEUT_RETURN_IF_ERROR(MakeRoom(bytes, /*hole=*/false));
  const PageAddress address = AddressOf(payload.size());
  const size_t at = run_.size();
  DEUT_CHECK(run_begin_ + at == position_);
  run_.resize(at + bytes);
  EncodePart(header, address, payload, run_.data() + at);
  position_ += bytes;
  return address;
}

Result<PageAddress> SparseSegments::AppendHole(uint64_t payload_bytes) {
  const uint64_t bytes = PartBytesInUnits(payload_bytes);
  DEUT_RETURN_IF_ERROR(MakeRoom(bytes, /*hole=*/true));
  const PageAddress address = AddressOf(payload_bytes);
  position_ += bytes;
  return address;
}

Status SparseSegments::MakeRoom(uint64_t bytes, bool hole) {
  DEUT_CHECK(kSegmentHeaderBytes + bytes <= segment_bytes_);
  const uint64_t begin = hole == in_hole_ ? position_ : RoundUpToIo(position_);
  if (file_ == nullptr || begin + bytes > segment_bytes_) {
    DEUT_RETURN_IF_ERROR(End());
    DEUT_RETURN_IF_ERROR(Begin());
  }
  if (hole == in_hole_) return Status::Ok();
  if (hole) DEUT_RETURN_IF_ERROR(WriteRun());
  position_ = RoundUpToIo(position_);
  run_begin_ = position_;
  in_hole_ = hole;
  return Status::Ok();
}

Status SparseSegments::Begin() {
  ++segment_;
  DEUT_ASSIGN_OR_RETURN(file_, storage_.Open(Concat(directory_, "/", SegmentName(SegmentKind::kBase, segment_)),
                                             {.create = true, .exclusive = true, .writable = true, .direct = true}));
  run_.resize(kSegmentHeaderBytes);
  EncodeSegmentHeader({.kind = SegmentKind::kBase, .number = segment_, .dc = dc_, .capacity_bytes = segment_bytes_},
                      run_.data());
  run_begin_ = 0;
  position_ = kSegmentHeaderBytes;
  in_hole_ = false;
  return Status::Ok();
}

Status SparseSegments::WriteRun() {
  if (run_.empty()) return Status::Ok();
  AlignedBuffer blocks(run_.size());  // zeros behind the run
  std::memcpy(blocks.data(), run_.data(), run_.size());
  DEUT_RETURN_IF_ERROR(file_->Write(run_begin_, blocks.data(), blocks.size()));
  written_bytes_ += blocks.size();
  run_.clear();
  return Status::Ok();
}

Status SparseSegments::End() {
  if (file_ == nullptr) return Status::Ok();
  DEUT_RETURN_IF_ERROR(WriteRun());
  const uint64_t bytes = RoundUpToIo(position_);
  DEUT_RETURN_IF_ERROR(file_->Truncate(bytes));
  file_.reset();
  extents_.push_back({.number = segment_, .kind = SegmentKind::kBase, .written_bytes = bytes});
  return Status::Ok();
}

}  // namespace deut::dc::bench

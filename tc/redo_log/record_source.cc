#include "tc/redo_log/record_source.h"

#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "tc/log_format/record_codec.h"

namespace deut::tc {
namespace {

// At most this many bytes are copied from the ring at a time, unless one record is longer.
constexpr size_t kRingCopyBytes = size_t{128} << 10;

}  // namespace

Status RecordSource::Fetch(Lsn lsn, LogRecord* record) {
  // The length of a record stands in its first word. So a record whose word alone is there is decoded again, after a
  // fill that brings the rest.
  size_t needed = kRecordWordBytes;
  for (;;) {
    if (lsn >= begin_ && lsn.value + needed <= begin_.value + bytes_.size()) {
      const size_t available = bytes_.size() - (lsn.value - begin_.value);
      DEUT_RETURN_IF_ERROR(DecodeRecord(lsn, bytes_.substr(bytes_.size() - available), record, &needed));
      if (needed <= available) {
        DEUT_DCHECK(record->end <= writer_.durable());  // a crash takes back no record that was read
        return Status::Ok();
      }
    }
    DEUT_RETURN_IF_ERROR(Fill(lsn, needed));
  }
}

Status RecordSource::Fill(Lsn lsn, size_t needed) {
  bytes_ = {};
  if (lsn.value % kRecordAlignment != 0 || lsn.value + needed > writer_.durable().value) {
    return DEUT_ERROR(kCorruption, "no record of the redo log begins at LSN ", lsn.value);
  }
  if (FillFromRing(lsn, needed)) return Status::Ok();
  return FillFromDisk(lsn, needed);
}

bool RecordSource::FillFromRing(Lsn lsn, size_t needed) {
  const size_t wanted = std::min<uint64_t>(writer_.durable().value - lsn.value, std::max(needed, kRingCopyBytes));
  EnsureSize(wanted, &ring_copy_);
  if (!ring_.TryCopy(lsn, wanted, ring_copy_.data())) return false;
  counters_.from_ring.fetch_add(1, std::memory_order_relaxed);
  begin_ = lsn;
  bytes_ = std::string_view(ring_copy_.data(), wanted);
  return true;
}

Status RecordSource::FillFromDisk(Lsn lsn, size_t needed) {
  if (segment_ == nullptr || lsn < segment_->first_lsn() || lsn >= segment_->end_lsn()) {
    segment_ = segments_.Find(lsn);
    next_offset_ = 0;
  }
  if (segment_ == nullptr) {
    return DEUT_ERROR(kNotFound, "LSN ", lsn.value, " was trimmed: the redo log begins at LSN ",
                      segments_.first_lsn().value);
  }
  // A reader in LSN order goes on at the next block. It seeks only if it jumped, or if the index leads nearer.
  const auto [seek_lsn, seek_offset] = segment_->Seek(lsn);
  if (next_offset_ == 0 || next_lsn_ > lsn || next_lsn_ < seek_lsn) {
    next_lsn_ = seek_lsn;
    next_offset_ = seek_offset;
  }
  for (;;) {
    DEUT_ASSIGN_OR_RETURN(const BlockWindow::Block block, ReadBlock(lsn));
    counters_.from_disk.fetch_add(1, std::memory_order_relaxed);
    const Lsn first = block.header.first_lsn;
    next_lsn_ = block.header.end_lsn();
    next_offset_ += block.header.block_bytes;
    if (lsn >= next_lsn_) continue;
    if (lsn.value + needed > next_lsn_.value) {
      return DEUT_ERROR(kCorruption, segment_->file().path(), " at offset ", block.header.offset,
                        ": the record at LSN ", lsn.value, " goes on beyond its block");
    }
    begin_ = first;
    bytes_ = block.payload();
    return Status::Ok();
  }
}

// Reads the block at next_offset_, which begins with next_lsn_.
Result<BlockWindow::Block> RecordSource::ReadBlock(Lsn lsn) {
  for (bool again = true;; again = false) {
    Result<BlockWindow::Block> block =
        window_.Read(segment_->file(), segment_->number(), segment_->bytes(), next_offset_);
    if (block.ok() && block->header.first_lsn == next_lsn_) return block;
    if (!block.ok() && block.status() != ErrorCode::kCorruption) return block.status();
    if (!again) {
      // A segment may be trimmed, and its file be reused, while it is read.
      if (lsn < segments_.first_lsn())
        return DEUT_ERROR(kNotFound, "LSN ", lsn.value, " was trimmed from the redo log");
      if (!block.ok()) return block.status();
      return DEUT_ERROR(kCorruption, segment_->file().path(), " at offset ", next_offset_, ": a block with LSN ",
                        block->header.first_lsn.value, " in place of ", next_lsn_.value);
    }
    window_.Clear();  // the window may hold bytes from before the block was written
  }
}

}  // namespace deut::tc

#include "tc/redo_log/read_back.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "common/testing/test_points.h"
#include "tc/redo_log/block_window.h"
#include "tc/redo_log/record_codec.h"

namespace deut::tc {
namespace {

// About this many bytes are read from a file at a time. A piece takes small blocks up to this size.
constexpr size_t kStretchBytes = size_t{128} << 10;

uint64_t AlignDown(uint64_t lsn) { return lsn / kRecordAlignment * kRecordAlignment; }
uint64_t AlignUp(uint64_t lsn) { return AlignDown(lsn + kRecordAlignment - 1); }

}  // namespace

Status ReadBack::Read(const LoggedPut& put, std::string* value) {
  const Lsn end(put.place.value + kUpdateHeaderBytes + put.key.size() + put.value_bytes);
  if (end > writer_.durable())
    return DEUT_ERROR(kCorruption, "LSN ", put.place.value, " is not below what is durable of the redo log, ",
                      writer_.durable().value);
  std::string_view found;
  std::string copied;
  if (ReadRing(put, end, &copied)) {
    from_ring_.fetch_add(1, std::memory_order_relaxed);
    DEUT_RETURN_IF_ERROR(
        DecodePut(put, std::string_view(copied).substr(put.place.value - AlignDown(put.place.value)), &found));
    value->assign(found);
    return Status::Ok();
  }
  StretchPointer stretch = Find(put.place, end);
  if (stretch != nullptr) {
    from_kept_.fetch_add(1, std::memory_order_relaxed);
  } else {
    DEUT_ASSIGN_OR_RETURN(stretch, Load(put.place, end));
    from_disk_.fetch_add(1, std::memory_order_relaxed);
    Keep(stretch);
  }
  const uint64_t skipped = put.place.value - stretch->first.value;
  DEUT_RETURN_IF_ERROR(
      DecodePut(put, std::string_view(stretch->bytes).substr(skipped, end.value - put.place.value), &found));
  value->assign(found);
  return Status::Ok();
}

bool ReadBack::ReadRing(const LoggedPut& put, Lsn end, std::string* bytes) const {
  // A record ends at a multiple of its alignment, so bytes copied beyond the value belong to the same record.
  const Lsn from(AlignDown(put.place.value));
  bytes->resize(AlignUp(end.value) - from.value);
  return ring_.TryCopy(from, bytes->size(), bytes->data());
}

ReadBack::StretchPointer ReadBack::Find(Lsn from, Lsn end) {
  MutexLock lock(mutex_);
  const auto after = kept_.upper_bound(from.value);
  if (after == kept_.begin()) return nullptr;
  Kept& kept = std::prev(after)->second;
  if (kept.stretch->end() < end) return nullptr;
  kept.used = ++uses_;
  return kept.stretch;
}

void ReadBack::Keep(StretchPointer stretch) {
  MutexLock lock(mutex_);
  Kept& kept = kept_[stretch->first.value];
  if (kept.stretch != nullptr) kept_bytes_ -= kept.stretch->bytes.size();
  kept_bytes_ += stretch->bytes.size();
  kept = Kept{.stretch = std::move(stretch), .used = ++uses_};
  while (kept_bytes_ > keep_bytes_ && kept_.size() > 1) {
    const auto oldest = std::ranges::min_element(kept_, {}, [](const auto& entry) { return entry.second.used; });
    kept_bytes_ -= oldest->second.stretch->bytes.size();
    kept_.erase(oldest);
  }
}

size_t ReadBack::kept_bytes() {
  MutexLock lock(mutex_);
  return kept_bytes_;
}

Result<ReadBack::StretchPointer> ReadBack::Load(Lsn from, Lsn end) {
  const auto trimmed = [&] {
    return DEUT_ERROR(kNotFound, "LSN ", from.value, " was trimmed: the redo log begins at LSN ",
                      segments_.first_lsn().value);
  };
  const std::shared_ptr<Segment> segment = segments_.Find(from);
  if (segment == nullptr) return trimmed();
  auto stretch = std::make_shared<Stretch>();
  BlockWindow window(kStretchBytes);
  auto [lsn, offset] = segment->Seek(from);
  stretch->first = lsn;
  DEUT_POINT("redo_log.read_back.before_read");
  // Reads up to the block with `end`, and the blocks directly behind it while the piece is small.
  const Lsn durable = writer_.durable();
  while (lsn < end || (lsn < durable && lsn < segment->end_lsn() && stretch->bytes.size() < kStretchBytes)) {
    Result<BlockWindow::Block> block = window.Read(segment->file(), segment->number(), segment->bytes(), offset);
    if (!block.ok() || block->header.first_lsn != lsn) {
      if (lsn >= end) break;
      if (!block.ok() && block.status() != ErrorCode::kCorruption) return block.status();
      // A segment may be trimmed, and its file be reused, while it is read.
      if (from < segments_.first_lsn()) return trimmed();
      if (!block.ok()) return block.status();
      return DEUT_ERROR(kCorruption, segment->file().path(), " at offset ", offset, ": a block with LSN ",
                        block->header.first_lsn.value, " in place of ", lsn.value);
    }
    lsn = block->header.end_lsn();
    offset += block->header.block_bytes;
    // Blocks that end before the place are dropped when they would make the piece too large.
    if (lsn <= from && stretch->bytes.size() + block->header.payload_bytes > kStretchBytes) {
      stretch->first = lsn;
      stretch->bytes.clear();
      continue;
    }
    stretch->bytes.append(block->payload());
  }
  return StretchPointer(std::move(stretch));
}

}  // namespace deut::tc

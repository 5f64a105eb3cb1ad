#include "tc/redo_log/read_back.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/block_window.h"

namespace deut::tc {
namespace {

// About this many bytes are read from a file at a time. A piece takes the small blocks among them.
constexpr size_t kCachedPieceBytes = size_t{128} << 10;

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
  PiecePointer piece = Find(put.place, end);
  if (piece != nullptr) {
    from_cache_.fetch_add(1, std::memory_order_relaxed);
  } else {
    DEUT_ASSIGN_OR_RETURN(piece, Load(put.place, end));
    from_disk_.fetch_add(1, std::memory_order_relaxed);
    Insert(piece);
  }
  const uint64_t skipped = put.place.value - piece->first.value;
  DEUT_RETURN_IF_ERROR(
      DecodePut(put, std::string_view(piece->bytes).substr(skipped, end.value - put.place.value), &found));
  value->assign(found);
  return Status::Ok();
}

bool ReadBack::ReadRing(const LoggedPut& put, Lsn end, std::string* bytes) const {
  // A record ends at a multiple of its alignment, so bytes copied beyond the value belong to the same record.
  const Lsn from(AlignDown(put.place.value));
  bytes->resize(AlignUp(end.value) - from.value);
  return ring_.TryCopy(from, bytes->size(), bytes->data());
}

ReadBack::PiecePointer ReadBack::Find(Lsn from, Lsn end) {
  MutexLock lock(mutex_);
  const auto after = pieces_.upper_bound(from.value);
  if (after == pieces_.begin()) return nullptr;
  CachedPiece& cached = std::prev(after)->second;
  if (cached.piece->end() < end) return nullptr;
  cached.used = ++uses_;
  return cached.piece;
}

void ReadBack::Insert(PiecePointer piece) {
  MutexLock lock(mutex_);
  CachedPiece& cached = pieces_[piece->first.value];
  if (cached.piece != nullptr) cached_bytes_ -= cached.piece->bytes.size();
  cached_bytes_ += piece->bytes.size();
  cached = CachedPiece{.piece = std::move(piece), .used = ++uses_};
  while (cached_bytes_ > max_cached_bytes_ && pieces_.size() > 1) {
    const auto oldest = std::ranges::min_element(pieces_, {}, [](const auto& entry) { return entry.second.used; });
    DEUT_DCHECK(oldest->second.piece->bytes.size() <= cached_bytes_);
    cached_bytes_ -= oldest->second.piece->bytes.size();
    pieces_.erase(oldest);
  }
}

Result<ReadBack::PiecePointer> ReadBack::Load(Lsn from, Lsn end) {
  const auto trimmed = [&] {
    return DEUT_ERROR(kNotFound, "LSN ", from.value, " was trimmed: the redo log begins at LSN ",
                      segments_.first_lsn().value);
  };
  const std::shared_ptr<Segment> segment = segments_.Find(from);
  if (segment == nullptr) return trimmed();
  auto piece = std::make_shared<Piece>();
  BlockWindow window(kCachedPieceBytes);
  auto [lsn, offset] = segment->Seek(from);
  piece->first = lsn;
  DEUT_POINT("redo_log.read_back.before_read");
  // Reads up to the block with `end`, and the blocks directly behind it that were read from the file with it. A block
  // is read as a whole, because its checksum covers all of it. The next one is taken to be as large as the last: no
  // block is read for a value that is not in it.
  const Lsn durable = writer_.durable();
  uint64_t last_block_bytes = 0;
  const auto may_add_next = [&] {
    return piece->bytes.size() <= kCachedPieceBytes && window.Holds(offset, last_block_bytes);
  };
  while (lsn < end || (lsn < durable && lsn < segment->end_lsn() && may_add_next())) {
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
    if (lsn <= from && piece->bytes.size() + block->header.payload_bytes > kCachedPieceBytes) {
      piece->first = lsn;
      piece->bytes.clear();
      continue;
    }
    last_block_bytes = block->header.block_bytes;
    piece->bytes.append(block->payload());
  }
  DEUT_DCHECK(piece->first <= from);
  DEUT_DCHECK(piece->end() == lsn);  // it has every byte from its first LSN on
  return PiecePointer(std::move(piece));
}

}  // namespace deut::tc

#include "dc/page_store/segment_appender.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "common/testing/test_points.h"
#include "dc/page_store/part_compression.h"
#include "dc/page_store/segment_files.h"

namespace deut::dc {

// The part of a batch that lies in one segment.
struct BatchSegment {
  OpenSegment open;
  uint64_t written_bytes = 0;  // the segment's written_bytes once the batch is written
  uint64_t live_bytes = 0;
};

struct SegmentAppender::Core {
  Core(SegmentFiles& segment_files, SegmentKind segment_kind, uint64_t bytes, size_t buffer)
      : files(segment_files),
        kind(segment_kind),
        short_segment_bytes(bytes),
        buffer_bytes(std::max<size_t>(RoundUpToIo(buffer), 2 * kIoAlignment)) {
    Resize(buffer_bytes);
  }
  ~Core() { files.counters().buffer_bytes.fetch_sub(memory.size() + packed.size(), std::memory_order_relaxed); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  uint64_t position() const { return flushed + used; }

  Status Begin();
  Status LookAgain();
  Status Flush(bool all);
  Status FinishCurrent();
  void MakeRoom(size_t bytes);
  // Replaces the buffer by one of `bytes` bytes with the same used content.
  void Resize(size_t bytes);
  Status Publish();
  Status CloseIfHalfDead();
  void VoidBatch();
  void CloseAll();
  Status Failed(Status error);
  Result<PageAddress> AppendToOwnSegment(const PartHeader& header, std::string_view payload);
  void PutHeader(const OpenSegment& open, char* block) const;
  void Count(std::string_view payload);
  Status BeginPacking();
  std::optional<std::string_view> Pack(Compression compression, std::string_view content);
  void GiveUpLargeRoom();

  SegmentFiles& files;
  const SegmentKind kind;
  const uint64_t short_segment_bytes;  // a part that does not fit a short segment has one of its own
  const size_t buffer_bytes;
  SpaceUse use = SpaceUse::kOrdinary;
  bool packs = false;  // a packed part was appended, so the header of the current segment states that it may have some
  AlignedBuffer packed;  // room for the payload of a packed part

  // The buffer holds the bytes from `flushed` on of the current segment's file; `flushed` is a multiple of
  // kIoAlignment.
  AlignedBuffer memory;
  size_t used = 0;
  uint64_t flushed = 0;
  uint64_t may_reach = 0;  // the offset up to which the current segment may be filled without a look at the disk
  BatchSegment current;    // no segment: the next part begins one

  std::vector<BatchSegment> full;  // segments of this batch that are completely in their files
  size_t batch_parts = 0;
  size_t batch_bytes = 0;
};

void SegmentAppender::Core::PutHeader(const OpenSegment& open, char* block) const {
  EncodeSegmentHeader({.kind = kind,
                       .number = open.segment->number,
                       .dc = files.dc(),
                       .capacity_bytes = open.capacity_bytes,
                       .packed_parts = packs},
                      block);
}

// Called before the first packed part. An earlier program may read the current segment, so that part goes into another.
Status SegmentAppender::Core::BeginPacking() {
  if (current.open.segment != nullptr) DEUT_RETURN_IF_ERROR(FinishCurrent());
  packs = true;
  return Status::Ok();
}

std::optional<std::string_view> SegmentAppender::Core::Pack(Compression compression, std::string_view content) {
  const size_t before = packed.size();
  const std::optional<std::string_view> payload = PackContent(compression, content, &packed);
  files.counters().buffer_bytes.fetch_add(packed.size() - before, std::memory_order_relaxed);
  return payload;
}

// The room of a part that is longer than the buffer is not kept.
void SegmentAppender::Core::GiveUpLargeRoom() {
  if (packed.size() <= buffer_bytes) return;
  files.counters().buffer_bytes.fetch_sub(packed.size(), std::memory_order_relaxed);
  packed = AlignedBuffer();
}

Status SegmentAppender::Core::Begin() {
  DEUT_ASSIGN_OR_RETURN(current.open, files.NewSegment(kind, use));
  current.written_bytes = 0;
  current.live_bytes = 0;
  PutHeader(current.open, memory.data());
  used = kSegmentHeaderBytes;
  flushed = 0;
  may_reach = short_segment_bytes;
  return Status::Ok();
}

// Looks at the disk before the next short segment's length of a long segment.
Status SegmentAppender::Core::LookAgain() {
  // The look counts what this appender has appended before.
  DEUT_RETURN_IF_ERROR(Flush(/*all=*/false));
  // Otherwise six appenders would fill the reserve, and with it the room for the checkpoint's file: then no checkpoint
  // can be completed, and nothing is ever freed.
  if (DEUT_STEP("X7.look_again")) DEUT_RETURN_IF_ERROR(files.CheckRoom(use));
  may_reach += short_segment_bytes;
  return Status::Ok();
}

// Writes the whole blocks of the buffer; or all of it, with the last block filled up with zeros.
Status SegmentAppender::Core::Flush(bool all) {
  const size_t bytes = all ? RoundUpToIo(used) : RoundDownToIo(used);
  if (bytes == 0) return Status::Ok();
  // The header of the file has promised that it does not become longer.
  DEUT_CHECK(flushed + bytes <= current.open.capacity_bytes);
  if (bytes > used) std::memset(memory.data() + used, 0, bytes - used);
  DEUT_RETURN_IF_ERROR(current.open.file->Write(flushed, memory.data(), bytes));
  files.counters().bytes_written.fetch_add(bytes, std::memory_order_relaxed);
  flushed += bytes;
  const size_t rest = used > bytes ? used - bytes : 0;
  if (rest > 0) std::memmove(memory.data(), memory.data() + bytes, rest);
  used = rest;
  if (memory.size() > buffer_bytes && rest <= buffer_bytes) Resize(buffer_bytes);
  return Status::Ok();
}

Status SegmentAppender::Core::FinishCurrent() {
  DEUT_RETURN_IF_ERROR(Flush(/*all=*/true));
  DEUT_CHECK(used == 0);
  current.written_bytes = flushed;
  full.push_back(std::exchange(current, BatchSegment()));
  return Status::Ok();
}

void SegmentAppender::Core::MakeRoom(size_t bytes) {
  if (used + bytes > memory.size()) Resize(used + bytes);
}

void SegmentAppender::Core::Resize(size_t bytes) {
  AlignedBuffer other(bytes);
  if (used > 0) std::memcpy(other.data(), memory.data(), used);
  std::atomic<uint64_t>& counted = files.counters().buffer_bytes;
  counted.fetch_add(other.size(), std::memory_order_relaxed);
  counted.fetch_sub(memory.size(), std::memory_order_relaxed);
  memory = std::move(other);
}

void SegmentAppender::Core::Count(std::string_view payload) {
  ++batch_parts;
  batch_bytes += PartBytesInUnits(payload.size());
}

Result<PageAddress> SegmentAppender::Core::AppendToOwnSegment(const PartHeader& header, std::string_view payload) {
  const uint64_t capacity = kSegmentHeaderBytes + RoundUpToIo(PartBytes(payload.size()));
  BatchSegment batch_segment;
  DEUT_ASSIGN_OR_RETURN(batch_segment.open, files.NewSegmentOf(kind, use, capacity));
  full.push_back(batch_segment);
  const PageAddress address =
      PageAddress::Make(batch_segment.open.segment->number, kSegmentHeaderBytes, PartBytes(payload.size()));
  AlignedBuffer whole(capacity);
  PutHeader(batch_segment.open, whole.data());
  EncodePart(header, address, payload, whole.data() + kSegmentHeaderBytes);
  DEUT_RETURN_IF_ERROR(batch_segment.open.file->Write(0, whole.data(), capacity));
  files.counters().bytes_written.fetch_add(capacity, std::memory_order_relaxed);
  full.back().written_bytes = capacity;
  full.back().live_bytes = address.length_bound();
  return address;
}

Status SegmentAppender::Core::Publish() {
  // Adds live bytes first: before a reader can find the parts (written_bytes), and before the segment is closed. In
  // another order RemoveDeadSegments could find a closed segment that seems dead.
  const auto publish = [this](const BatchSegment& batch_segment) {
    Segment& segment = *batch_segment.open.segment;
    DEUT_CHECK(!segment.closed.load());
    segment.live_bytes.fetch_add(batch_segment.live_bytes);
    DEUT_POINT("page_store.append.before_publish");
    files.SetWritten(batch_segment.open, batch_segment.written_bytes);
  };
  for (const BatchSegment& batch_segment : full) publish(batch_segment);
  if (current.open.segment != nullptr) {
    current.written_bytes = flushed;
    publish(current);
    current.live_bytes = 0;
  }
  files.counters().parts_appended.fetch_add(batch_parts, std::memory_order_relaxed);
  files.counters().bytes_appended.fetch_add(batch_bytes, std::memory_order_relaxed);
  batch_parts = batch_bytes = 0;
  for (const BatchSegment& batch_segment : std::exchange(full, {}))
    DEUT_RETURN_IF_ERROR(files.CloseSegment(batch_segment.open));
  return current.open.segment == nullptr ? Status::Ok() : files.BoundUnsynced(current.open);
}

// An open segment is neither cleaned nor removed. On a disk that is short of space, one that is half dead must not wait
// for the appender's next parts: they may come only after a checkpoint for which its bytes are needed.
// REQUIRES: nothing was appended since the last Write.
Status SegmentAppender::Core::CloseIfHalfDead() {
  if (current.open.segment == nullptr) return Status::Ok();
  // Only this appender adds live bytes to the segment, and it has none under way.
  const bool half_dead = current.open.segment->live_bytes.load() <= current.open.segment->written_bytes.load() / 2;
  if (!half_dead || !files.reserve().IsShort()) return Status::Ok();
  DEUT_CHECK(used == 0);
  return files.CloseSegment(std::exchange(current, BatchSegment()).open);
}

// Segments end where the last written batch ended.
void SegmentAppender::Core::VoidBatch() {
  used = 0;
  flushed = 0;
  batch_parts = batch_bytes = 0;
  if (memory.size() > buffer_bytes) Resize(buffer_bytes);
  CloseAll();
}

void SegmentAppender::Core::CloseAll() {
  // Errors are ignored here, because fatal() reports them.
  for (const BatchSegment& batch_segment : full) (void)files.CloseSegment(batch_segment.open);
  if (current.open.segment != nullptr) (void)files.CloseSegment(current.open);
  full.clear();
  current = BatchSegment();
}

// Handles the error of a failed step of a batch.
Status SegmentAppender::Core::Failed(Status error) {
  if (error != ErrorCode::kResourceExhausted) return files.BecomeFatal(std::move(error));
  VoidBatch();
  return error;
}

SegmentAppender::SegmentAppender(SegmentFiles& files, SegmentKind kind, uint64_t segment_bytes, size_t buffer_bytes)
    : core_(std::make_unique<Core>(files, kind, segment_bytes, buffer_bytes)) {}

SegmentAppender::~SegmentAppender() {
  if (!core_->files.is_fatal()) core_->CloseAll();
}

Result<PageAddress> SegmentAppender::AppendContent(const PartHeader& header, std::string_view content,
                                                   Compression compression) {
  DEUT_CHECK(!header.packed);
  if (compression == Compression::kNone) return Append(header, content);
  const std::optional<std::string_view> packed = core_->Pack(compression, content);
  PartHeader stored = header;
  stored.packed = packed.has_value();
  const Result<PageAddress> address = Append(stored, packed.value_or(content));
  if (packed && address.ok()) {
    StoreCounters& counters = core_->files.counters();
    counters.bytes_before_compression.fetch_add(content.size(), std::memory_order_relaxed);
    counters.bytes_after_compression.fetch_add(packed->size(), std::memory_order_relaxed);
  }
  core_->GiveUpLargeRoom();
  return address;
}

Result<PageAddress> SegmentAppender::Append(const PartHeader& header, std::string_view payload) {
  Core& core = *core_;
  DEUT_CHECK((header.kind == PartKind::kBase) == (core.kind == SegmentKind::kBase));
  if (core.files.is_fatal()) return core.files.fatal();
  if (payload.size() > kMaxPayloadBytes) {
    return DEUT_ERROR(kInvalidArgument, "a page part of ", payload.size(), " bytes; the limit is ", kMaxPayloadBytes);
  }
  if (header.packed && !core.packs) {
    if (Status begun = core.BeginPacking(); !begun.ok()) return core.Failed(std::move(begun));
  }
  const uint64_t bytes = PartBytesInUnits(payload.size());
  if (kSegmentHeaderBytes + bytes > core.short_segment_bytes) {
    Result<PageAddress> address = core.AppendToOwnSegment(header, payload);
    if (!address.ok()) return core.Failed(address.status());
    core.Count(payload);
    return address;
  }
  if (core.current.open.segment != nullptr && core.position() + bytes > core.current.open.capacity_bytes) {
    if (Status finished = core.FinishCurrent(); !finished.ok()) return core.Failed(std::move(finished));
  }
  if (core.current.open.segment == nullptr) {
    if (Status begun = core.Begin(); !begun.ok()) return core.Failed(std::move(begun));
  }
  if (core.position() + bytes > core.may_reach) {
    if (Status looked = core.LookAgain(); !looked.ok()) return core.Failed(std::move(looked));
    DEUT_CHECK(core.position() + bytes <= core.may_reach);  // a part of a long segment fits a short one
  }
  if (core.used + bytes > core.memory.size()) {
    if (Status flushed = core.Flush(/*all=*/false); !flushed.ok()) return core.Failed(std::move(flushed));
    core.MakeRoom(bytes);
  }
  DEUT_CHECK(core.used + bytes <= core.memory.size());
  const PageAddress address =
      PageAddress::Make(core.current.open.segment->number, core.position(), PartBytes(payload.size()));
  EncodePart(header, address, payload, core.memory.data() + core.used);
  core.used += bytes;
  core.current.live_bytes += address.length_bound();
  core.Count(payload);
  return address;
}

Status SegmentAppender::Write() {
  Core& core = *core_;
  if (core.files.is_fatal()) return core.files.fatal();
  if (core.batch_parts == 0) return core.CloseIfHalfDead();
  if (core.current.open.segment != nullptr) {
    if (Status flushed = core.Flush(/*all=*/true); !flushed.ok()) return core.Failed(std::move(flushed));
    if (core.flushed == core.current.open.capacity_bytes || core.files.IsTooLong(core.current.open)) {
      core.current.written_bytes = core.flushed;
      core.full.push_back(std::exchange(core.current, BatchSegment()));
    }
  }
  return core.Publish();
}

void SegmentAppender::SetSpaceUse(SpaceUse use) { core_->use = use; }

SegmentKind SegmentAppender::kind() const { return core_->kind; }
size_t SegmentAppender::batch_parts() const { return core_->batch_parts; }
size_t SegmentAppender::batch_bytes() const { return core_->batch_bytes; }
size_t SegmentAppender::buffer_bytes() const { return core_->memory.size() + core_->packed.size(); }

}  // namespace deut::dc

#include "dc/page_store/segment_store.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/sync/raise_to.h"
#include "common/testing/test_points.h"
#include "dc/page_store/part_scanner.h"
#include "dc/page_store/segment_files.h"

namespace deut::dc {

namespace {

// A segment has at most this part of the reserve (one half, one sixteenth). A full disk is emptied by copies, which
// may take half of the reserve, and 7/8 of it while no segment is dead. Space comes back only when a segment has no
// live part left, so the copy of a whole one must fit. A copied delta part takes its page's other deltas, or the base,
// along.
constexpr uint64_t kMostOfReserveForBase = 2;
constexpr uint64_t kMostOfReserveForDelta = 16;

// The length of the longest segment. Without a reserve, nothing has to fit into it.
uint64_t AtMostOfReserve(const SegmentStoreOptions& options, uint64_t part) {
  if (options.reserve_bytes == 0) return options.max_segment_bytes;
  return std::min(options.max_segment_bytes, options.reserve_bytes / part);
}

}  // namespace

struct SegmentStore::Core {
  Core(Storage& storage, Runtime& runtime, std::string directory, DcId dc, const SegmentStoreOptions& store_options)
      : options(store_options),
        files(storage, runtime, std::move(directory), dc,
              {.max_open_files = options.max_open_files,
               .max_unsynced_segments = options.max_unsynced_segments,
               .max_unsynced_bytes = options.max_unsynced_bytes,
               .segment_bytes = options.segment_bytes,
               .max_base_bytes = AtMostOfReserve(options, kMostOfReserveForBase),
               .max_delta_bytes = AtMostOfReserve(options, kMostOfReserveForDelta),
               .segments_before_growth = std::max<uint64_t>(options.segments_before_growth, 1),
               .reserve_bytes = options.reserve_bytes}) {}

  const SegmentStoreOptions options;
  SegmentFiles files;
};

namespace {

// Approximate memory of a segment's path, the allocator, the table's entry and slot, and an open file.
constexpr size_t kSegmentOverheadBytes = 320;

Status CheckOptions(const SegmentStoreOptions& options) {
  if (options.segment_bytes % kIoAlignment != 0 || options.segment_bytes < 2 * kIoAlignment ||
      options.segment_bytes > PageAddress::kMaxOffset) {
    return DEUT_ERROR(kInvalidArgument, "segments of ", options.segment_bytes, " bytes; a multiple of ", kIoAlignment,
                      " from ", 2 * kIoAlignment, " to ", PageAddress::kMaxOffset, " is right");
  }
  if (options.reserve_bytes != 0 && options.segment_bytes > options.reserve_bytes / kMostOfReserveForBase) {
    return DEUT_ERROR(kInvalidArgument, "segments of ", options.segment_bytes, " bytes, and ", options.reserve_bytes,
                      " reserved bytes of the disk; a segment may have at most half of them, because a full disk is",
                      " emptied by copying whole segments into the reserve");
  }
  if (options.max_segment_bytes > PageAddress::kMaxOffset) {
    return DEUT_ERROR(kInvalidArgument, "segments of up to ", options.max_segment_bytes, " bytes; at most ",
                      PageAddress::kMaxOffset, " are possible");
  }
  return Status::Ok();
}

// One transfer of whole blocks that covers every byte that may belong to the part at `address`.
struct Transfer {
  uint64_t begin;
  uint64_t end;
};

Result<Transfer> TransferFor(const Segment& segment, PageAddress address) {
  const uint64_t written = segment.written_bytes.load();
  if (!address.valid() || address.offset() < kSegmentHeaderBytes || address.offset() >= written) {
    return DEUT_ERROR(kCorruption, segment.path, ": offset ", address.offset(), ": no page part was written there; ",
                      written, " bytes were");
  }
  return Transfer{.begin = RoundDownToIo(address.offset()),
                  .end = std::min(RoundUpToIo(address.offset() + address.length_bound()), written)};
}

SegmentUsage UsageOfSegment(const Segment& segment) {
  // `closed` is loaded first: the other two are final, or fall, once it is true.
  const bool closed = segment.closed.load();
  return {.number = segment.number,
          .kind = segment.kind,
          .written_bytes = segment.written_bytes.load(),
          .live_bytes = segment.live_bytes.load(),
          .closed = closed};
}

}  // namespace

SegmentStore::SegmentStore(std::unique_ptr<Core> core) : core_(std::move(core)) {}
SegmentStore::~SegmentStore() = default;

Status SegmentStore::CheckLeftOverFiles() { return core_->files.CheckLeftOverFiles(); }

Result<std::unique_ptr<SegmentStore>> SegmentStore::Create(Storage& storage, Runtime& runtime,
                                                           const std::string& directory, DcId dc,
                                                           const SegmentStoreOptions& options) {
  DEUT_RETURN_IF_ERROR(CheckOptions(options));
  auto core = std::make_unique<Core>(storage, runtime, directory, dc, options);
  DEUT_RETURN_IF_ERROR(core->files.CreateDirectory());
  DEUT_RETURN_IF_ERROR(core->files.LoadNamedSegments(CheckpointNumber(), {}, 1, {}));
  return std::unique_ptr<SegmentStore>(new SegmentStore(std::move(core)));
}

Result<std::unique_ptr<SegmentStore>> SegmentStore::Open(Storage& storage, Runtime& runtime,
                                                         const std::string& directory, DcId dc,
                                                         const SegmentStoreOptions& options,
                                                         CheckpointNumber checkpoint,
                                                         std::span<const SegmentExtent> segments, uint64_t next_segment,
                                                         const SegmentCheckOptions& check) {
  DEUT_RETURN_IF_ERROR(CheckOptions(options));
  auto core = std::make_unique<Core>(storage, runtime, directory, dc, options);
  DEUT_RETURN_IF_ERROR(core->files.LoadNamedSegments(checkpoint, segments, next_segment, check));
  return std::unique_ptr<SegmentStore>(new SegmentStore(std::move(core)));
}

Result<std::unique_ptr<SegmentAppender>> SegmentStore::NewAppender(SegmentKind kind) {
  if (core_->files.is_fatal()) return fatal();
  return std::unique_ptr<SegmentAppender>(
      new SegmentAppender(core_->files, kind, core_->options.segment_bytes, core_->options.append_buffer_bytes));
}

Result<std::vector<SegmentExtent>> SegmentStore::SyncAll(CheckpointNumber checkpoint) {
  return core_->files.SyncAll(checkpoint);
}

uint64_t SegmentStore::next_segment() const { return core_->files.next_segment(); }
Status SegmentStore::fatal() const { return core_->files.fatal(); }

Status SegmentStore::Read(PageAddress address, PageId page, PartBuffer* buffer) {
  DEUT_RETURN_IF_ERROR(Begin(address, page, Opening::kWithRetries, buffer).status());
  IoRequest& request = buffer->request_;
  const Result<size_t> read = request.file->Read(request.offset, request.data, request.bytes);
  request.status = read.status();
  request.transferred = read.ok() ? *read : 0;
  return EndRead(buffer);
}

Result<bool> SegmentStore::TryBeginRead(PageAddress address, PageId page, PartBuffer* buffer) {
  return Begin(address, page, Opening::kNever, buffer);
}

Status SegmentStore::BeginRead(PageAddress address, PageId page, PartBuffer* buffer) {
  return Begin(address, page, Opening::kOnce, buffer).status();
}

Result<bool> SegmentStore::Begin(PageAddress address, PageId page, Opening opening, PartBuffer* buffer) {
  SegmentFiles& files = core_->files;
  if (files.is_fatal()) return fatal();
  // The shared pointer keeps the segment and its file usable though RemoveDeadSegments may remove both meanwhile.
  std::shared_ptr<Segment> segment = files.table().Find(address.segment());
  if (segment == nullptr) {
    return DEUT_ERROR(kNotFound, "segment ", address.segment(), " of a part of page ", page.value, " is not there");
  }
  DEUT_ASSIGN_OR_RETURN(const Transfer transfer, TransferFor(*segment, address));
  std::shared_ptr<File> file = files.open_files().Find(*segment);
  if (file == nullptr && opening == Opening::kNever) return false;
  if (file == nullptr) {
    DEUT_ASSIGN_OR_RETURN(file, files.open_files().Open(*segment, /*once=*/opening == Opening::kOnce));
  }
  const size_t wanted = transfer.end - transfer.begin;
  if (buffer->memory_.size() < wanted) buffer->memory_ = AlignedBuffer(wanted);
  buffer->file_ = std::move(file);
  buffer->segment_ = std::move(segment);
  buffer->address_ = address;
  buffer->page_ = page;
  buffer->request_ = IoRequest{.kind = IoRequest::Kind::kRead,
                               .file = buffer->file_.get(),
                               .offset = transfer.begin,
                               .data = buffer->memory_.data(),
                               .bytes = wanted};
  return true;
}

Status SegmentStore::EndRead(PartBuffer* buffer) {
  DEUT_CHECK(buffer->file_ != nullptr);  // the read was begun, and is ended once
  SegmentFiles& files = core_->files;
  // Gives up the segment and its file at the end of this function.
  const std::shared_ptr<File> file = std::move(buffer->file_);
  const std::shared_ptr<Segment> segment = std::move(buffer->segment_);
  const IoRequest& request = buffer->request_;
  DEUT_RETURN_IF_ERROR(request.status);
  const size_t read = request.transferred;
  files.counters().reads.fetch_add(1, std::memory_order_relaxed);
  files.counters().bytes_read.fetch_add(read, std::memory_order_relaxed);
  // written_bytes rises only after the bytes are in the file, so a shorter file is damaged.
  if (read < request.bytes) {
    return DEUT_ERROR(kCorruption, segment->path, ": offset ", request.offset + read, ": the file ends, ",
                      request.offset + request.bytes, " bytes at least were written");
  }
  const std::string_view bytes =
      std::string_view(buffer->memory_.data(), request.bytes).substr(buffer->address_.offset() - request.offset);
  DEUT_ASSIGN_OR_RETURN(const PartView stored, DecodePart(bytes, buffer->address_, buffer->page_, segment->path));
  DEUT_ASSIGN_OR_RETURN(buffer->part_, UnpackPart(stored, &buffer->content_, segment->path));
  return Status::Ok();
}

Status SegmentStore::BeginReadRun(PageAddress first, PageAddress last, PartRun* run) {
  DEUT_CHECK(first.segment() == last.segment() && first <= last && run->file_ == nullptr);
  SegmentFiles& files = core_->files;
  if (files.is_fatal()) return fatal();
  std::shared_ptr<Segment> segment = files.table().Find(first.segment());
  if (segment == nullptr) return DEUT_ERROR(kNotFound, "segment ", first.segment(), " is not there");
  DEUT_ASSIGN_OR_RETURN(const Transfer begin, TransferFor(*segment, first));
  DEUT_ASSIGN_OR_RETURN(const Transfer end, TransferFor(*segment, last));
  std::shared_ptr<File> file = files.open_files().Find(*segment);
  if (file == nullptr) {
    DEUT_ASSIGN_OR_RETURN(file, files.open_files().Open(*segment, /*once=*/true));
  }
  const size_t wanted = end.end - begin.begin;
  if (run->memory_.size() < wanted) run->memory_ = AlignedBuffer(wanted);
  run->file_ = std::move(file);
  run->segment_ = std::move(segment);
  run->request_ = IoRequest{.kind = IoRequest::Kind::kRead,
                            .file = run->file_.get(),
                            .offset = begin.begin,
                            .data = run->memory_.data(),
                            .bytes = wanted};
  return Status::Ok();
}

Status SegmentStore::EndReadRun(PartRun* run) {
  DEUT_CHECK(run->file_ != nullptr);  // the run was begun, and is ended once
  // Gives up the file at the end of this function. A reader keeps many runs that are read, and the files of their
  // segments may be far more than the cache of open files keeps.
  const std::shared_ptr<File> file = std::move(run->file_);
  run->request_.file = nullptr;
  const IoRequest& request = run->request_;
  DEUT_RETURN_IF_ERROR(request.status);
  StoreCounters& counters = core_->files.counters();
  counters.reads.fetch_add(1, std::memory_order_relaxed);
  counters.bytes_read.fetch_add(request.transferred, std::memory_order_relaxed);
  if (request.transferred == request.bytes) return Status::Ok();
  return DEUT_ERROR(kCorruption, run->segment_->path, ": offset ", request.offset + request.transferred,
                    ": the file ends, ", request.offset + request.bytes, " bytes at least were written");
}

Result<std::unique_ptr<IoQueue>> SegmentStore::NewQueue(size_t depth) { return core_->files.NewQueue(depth); }

Status SegmentStore::ForEachPart(uint64_t segment_number, const std::function<Status(const PartView&)>& callback) {
  return ForEachPart(segment_number, callback, nullptr);
}

Status SegmentStore::ForEachPart(uint64_t segment_number, const std::function<Status(const PartView&)>& callback,
                                 const std::function<Status(const DamagedParts&)>& on_damage) {
  SegmentFiles& files = core_->files;
  if (files.is_fatal()) return fatal();
  const std::shared_ptr<Segment> segment = files.table().Find(segment_number);
  if (segment == nullptr) return DEUT_ERROR(kNotFound, "segment ", segment_number, " is not there");
  const uint64_t written = segment->written_bytes.load();
  if (written == 0) return Status::Ok();
  DEUT_ASSIGN_OR_RETURN(const std::shared_ptr<File> file, files.open_files().Get(*segment));
  PartScanner scanner(*file, segment_number, kSegmentHeaderBytes, written);
  for (;;) {
    const Result<std::optional<PartView>> part = scanner.Next();
    if (part.ok()) {
      if (!part->has_value()) return Status::Ok();
      DEUT_RETURN_IF_ERROR(callback(**part));
      continue;
    }
    if (on_damage == nullptr || part.status() != ErrorCode::kCorruption) return part.status();
    DamagedParts damage{.begin = scanner.position(), .status = part.status()};
    DEUT_RETURN_IF_ERROR(scanner.SkipDamage().status());
    damage.end = scanner.position();
    DEUT_RETURN_IF_ERROR(on_damage(damage));
  }
}

Status SegmentStore::AddLive(uint64_t segment_number, uint64_t bytes) {
  const bool found =
      core_->files.table().With(segment_number, [&](Segment& segment) { segment.live_bytes.fetch_add(bytes); });
  if (found) return Status::Ok();
  return DEUT_ERROR(kCorruption, "page parts in segment ", segment_number, ", which is not there");
}

void SegmentStore::MarkDead(PageAddress address) {
  SegmentFiles& files = core_->files;
  // The order is that of "Races" in the header: the number is stored before the bytes are subtracted. Otherwise
  // RemoveDeadSegments could find no live bytes and an old number, and remove a segment that a running checkpoint
  // names.
  const uint64_t begun = files.checkpoint();
  const bool found = files.table().With(address.segment(), [&](Segment& segment) {
    RaiseTo(segment.last_death_checkpoint, begun);
    DEUT_POINT("page_store.mark_dead.before_live");
    const uint64_t before = segment.live_bytes.fetch_sub(address.length_bound());
    DEUT_CHECK(before >= address.length_bound());
  });
  DEUT_CHECK(found);
}

void SegmentStore::ForEachUsage(absl::FunctionRef<void(const SegmentUsage&)> callback) const {
  core_->files.table().ForEach([&](const std::shared_ptr<Segment>& segment) { callback(UsageOfSegment(*segment)); });
}

std::optional<SegmentUsage> SegmentStore::UsageOf(uint64_t segment_number) const {
  std::optional<SegmentUsage> usage;
  core_->files.table().With(segment_number, [&](Segment& segment) { usage = UsageOfSegment(segment); });
  return usage;
}

std::vector<SegmentUsage> SegmentStore::usage() const {
  std::vector<SegmentUsage> usages;
  ForEachUsage([&](const SegmentUsage& usage) {
    DEUT_DCHECK(usages.empty() || usages.back().number < usage.number);
    usages.push_back(usage);
  });
  return usages;
}

uint64_t SegmentStore::table_bytes() const {
  return core_->files.table().size() * (sizeof(Segment) + kSegmentOverheadBytes);
}

StoreTotals SegmentStore::totals() const {
  StoreTotals totals;
  core_->files.table().ForEach([&](const std::shared_ptr<Segment>& segment) {
    const bool closed = segment->closed.load();
    const uint64_t written = segment->written_bytes.load();
    const uint64_t live = segment->live_bytes.load();
    ++totals.segments;
    totals.written_bytes += written;
    totals.live_bytes += live;
    if (closed && live == 0) totals.dead_bytes += written;
  });
  totals.left_over_bytes = core_->files.left_over_bytes();
  const StoreCounters& counters = core_->files.counters();
  totals.memory_bytes = table_bytes() + counters.buffer_bytes.load(std::memory_order_relaxed);
  totals.parts_appended = counters.parts_appended.load(std::memory_order_relaxed);
  totals.bytes_appended = counters.bytes_appended.load(std::memory_order_relaxed);
  totals.bytes_written = counters.bytes_written.load(std::memory_order_relaxed);
  totals.reads = counters.reads.load(std::memory_order_relaxed);
  totals.bytes_read = counters.bytes_read.load(std::memory_order_relaxed);
  totals.bytes_before_compression = counters.bytes_before_compression.load(std::memory_order_relaxed);
  totals.bytes_after_compression = counters.bytes_after_compression.load(std::memory_order_relaxed);
  totals.syncs = counters.syncs.load(std::memory_order_relaxed);
  totals.segments_created = counters.segments_created.load(std::memory_order_relaxed);
  totals.segments_removed = counters.segments_removed.load(std::memory_order_relaxed);
  return totals;
}

uint64_t SegmentStore::segment_bytes() const { return core_->options.segment_bytes; }
uint64_t SegmentStore::next_segment_bytes() const { return core_->files.LengthFor(SegmentKind::kBase); }
uint64_t SegmentStore::file_bytes() const { return core_->files.file_bytes(); }

void SegmentStore::ReserveForCheckpoint(uint64_t bytes) { core_->files.reserve().ReserveForCheckpoint(bytes); }
uint64_t SegmentStore::reserve_bytes() const { return core_->files.reserve().bytes(); }

bool SegmentStore::IsShortOfSpace() const { return core_->files.reserve().IsShort(); }
uint64_t SegmentStore::RoomFor(SpaceUse use) const { return core_->files.RoomFor(use); }

void SegmentStore::BeginCheckpoint(CheckpointNumber k) { core_->files.BeginCheckpoint(k); }
Result<size_t> SegmentStore::RemoveDeadSegments(CheckpointNumber oldest_kept) {
  return core_->files.RemoveDeadSegments(oldest_kept);
}

}  // namespace deut::dc

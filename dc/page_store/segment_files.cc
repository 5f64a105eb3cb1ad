#include "dc/page_store/segment_files.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "common/observe/log.h"
#include "common/sync/parallel.h"
#include "common/sync/raise_to.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"
#include "dc/page_store/page_address.h"

namespace deut::dc {
namespace {

// True if the images of checkpoint `k`, and of every one begun later, cannot name a part of the segment. Loads
// live_bytes before last_death_checkpoint: see segment_store.h.
bool DeadBefore(const Segment& segment, CheckpointNumber k) {
  return segment.closed.load() && segment.live_bytes.load() == 0 && segment.last_death_checkpoint.load() < k.value;
}

constexpr uint64_t kHalfOfNumbers = PageAddress::kMaxSegment / 2;

void WarnOfNumbers(const std::string& directory, uint64_t next_segment) {
  LogWarning(directory, ": ", next_segment, " of the ", PageAddress::kMaxSegment, " numbers of segments are used up.",
             " Without numbers, nothing can be written. A larger --dc_segment uses fewer of them");
}

}  // namespace

SegmentFiles::SegmentFiles(Storage& storage, Runtime& runtime, std::string directory, DcId dc,
                           const SegmentFilesOptions& options)
    : runtime_(runtime),
      storage_(storage),
      directory_(std::move(directory)),
      dc_(dc),
      options_(options),
      table_(domain_),
      open_files_(storage, domain_, table_, open_for_reading_, options.max_open_files),
      fatal_(runtime),
      reserve_(storage, runtime, directory_, options.reserve_bytes, options.segment_bytes),
      mutex_(runtime) {}

std::string SegmentFiles::PathOf(SegmentKind kind, uint64_t number) const {
  return Concat(directory_, "/", SegmentName(kind, number));
}

Status SegmentFiles::CreateDirectory() { return storage_.CreateDirectory(directory_); }

Result<std::shared_ptr<Segment>> SegmentFiles::CheckedSegment(const SegmentExtent& extent) {
  const std::string path = PathOf(extent.kind, extent.number);
  auto segment = std::make_shared<Segment>(extent.kind, extent.number, path, extent.written_bytes);
  // Opens the file only for this check; keeping all of them open would be too many.
  auto opened = storage_.Open(path, {.direct = true});
  if (!opened.ok()) {
    if (opened.status() != ErrorCode::kNotFound) return opened.status();
    return DEUT_ERROR(kCorruption, path, ": the checkpoint names it and it is not there; nothing was changed");
  }
  File& file = **opened;
  AlignedBuffer block(kSegmentHeaderBytes);
  DEUT_ASSIGN_OR_RETURN(const size_t read, file.Read(0, block.data(), block.size()));
  DEUT_ASSIGN_OR_RETURN(const SegmentHeader header, DecodeSegmentHeader(std::string_view(block.data(), read), path));
  if (header.number != extent.number || header.kind != extent.kind || header.dc != dc_) {
    return DEUT_ERROR(kCorruption, path, ": offset 0: the header is of segment ", header.number, " of data component ",
                      header.dc.value, ", not of ", extent.number, " of ", dc_.value, ", or of another kind");
  }
  DEUT_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (extent.written_bytes > size || extent.written_bytes > header.capacity_bytes) {
    return DEUT_ERROR(kCorruption, path, ": offset ", size, ": the file ends, the checkpoint names ",
                      extent.written_bytes, " bytes of at most ", header.capacity_bytes);
  }
  return segment;
}

Result<bool> SegmentFiles::MayRemove(LeftOverFile* left_over) {
  const std::string& path = left_over->path;
  SegmentKind kind;
  uint64_t number;
  if (!ParseSegmentName(path.substr(directory_.size() + 1), &kind, &number)) return false;
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage_.Open(path, {.direct = true}));
  DEUT_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  left_over->bytes = std::max(size, options_.segment_bytes);
  AlignedBuffer block(kSegmentHeaderBytes);
  DEUT_ASSIGN_OR_RETURN(const size_t read, file->Read(0, block.data(), block.size()));
  // A crash may have come before or during the write of the header. All non-zero bytes of a header lie in its first
  // sector. So the missing bytes are zeros, or the whole header is missing.
  std::memset(block.data() + read, 0, block.size() - read);
  const std::string_view bytes(block.data(), block.size());
  if (std::ranges::all_of(bytes, [](char c) { return c == 0; })) return true;
  const Result<SegmentHeader> header = DecodeSegmentHeader(bytes, path);
  if (!header.ok()) {
    if (header.status() == ErrorCode::kVersionMismatch) return header.status();
    LogError(header.status().message(), "; no checkpoint names it, and the file is not changed");
    return false;
  }
  if (header->dc != dc_ || header->number != number || header->kind != kind) {
    return DEUT_ERROR(kCorruption, path, ": offset 0: the header is of segment ", header->number, " of data component ",
                      header->dc.value, ", not of ", number, " of ", dc_.value,
                      ", or of another kind; files of two folders are mixed; nothing was changed");
  }
  return true;
}

Status SegmentFiles::LoadNamedSegments(CheckpointNumber checkpoint, std::span<const SegmentExtent> segments,
                                       uint64_t next_segment, const SegmentCheckOptions& check) {
  DEUT_ASSIGN_OR_RETURN(const std::vector<std::string> names, storage_.List(directory_));
  opened_ = checkpoint;
  checkpoint_.store(checkpoint.value);
  std::set<std::string> named;
  std::set<uint64_t> numbers;
  for (const SegmentExtent& extent : segments) {
    if (extent.number == 0 || extent.number > PageAddress::kMaxSegment || extent.written_bytes % kIoAlignment != 0 ||
        extent.written_bytes < kSegmentHeaderBytes || !named.insert(SegmentName(extent.kind, extent.number)).second ||
        !numbers.insert(extent.number).second) {
      return DEUT_ERROR(kCorruption, directory_, ": the checkpoint names segment ", extent.number, " with ",
                        extent.written_bytes, " bytes, or twice");
    }
    next_segment = std::max(next_segment, extent.number + 1);
  }
  std::vector<std::shared_ptr<Segment>> checked(segments.size());
  DEUT_RETURN_IF_ERROR(ForEachInParallel(runtime_, check.threads, segments.size(), [&](size_t i) {
    DEUT_ASSIGN_OR_RETURN(checked[i], CheckedSegment(segments[i]));
    return check.on_checked();
  }));
  uint64_t file_bytes = 0;
  for (std::shared_ptr<Segment>& segment : checked) {
    file_bytes += segment->written_bytes.load();
    segment->closed.store(true);
    segment->last_death_checkpoint.store(checkpoint.value);
    segment->last_naming_checkpoint.store(checkpoint.value);
    table_.Add(std::move(segment));
  }
  file_bytes_.store(file_bytes);
  std::vector<LeftOverFile> left_over;
  for (const std::string& name : names) {
    SegmentKind kind;
    uint64_t number;
    if (!ParseSegmentName(name, &kind, &number)) continue;
    next_segment = std::max(next_segment, number + 1);
    if (named.contains(name)) continue;
    left_over.push_back(LeftOver(Concat(directory_, "/", name)));
  }
  const MutexLock lock(mutex_);
  left_over_ = std::move(left_over);
  next_segment_ = std::max<uint64_t>(next_segment, 1);
  if (next_segment_ > kHalfOfNumbers) WarnOfNumbers(directory_, next_segment_);
  return Status::Ok();
}

Status SegmentFiles::CheckLeftOverFiles() {
  std::vector<LeftOverFile> files;
  {
    const MutexLock lock(mutex_);
    files = left_over_;
  }
  for (LeftOverFile& file : files) DEUT_RETURN_IF_ERROR(MayRemove(&file).status());
  const MutexLock lock(mutex_);
  left_over_ = std::move(files);  // with their lengths
  return Status::Ok();
}

bool SegmentFiles::HasDeadSegment() const {
  bool dead = false;
  table_.ForEach([&](const std::shared_ptr<Segment>& segment) {
    dead = dead || (segment->closed.load() && segment->live_bytes.load() == 0);
  });
  return dead;
}

uint64_t SegmentFiles::LengthFor(SegmentKind kind) const {
  const uint64_t longest = kind == SegmentKind::kBase ? options_.max_base_bytes : options_.max_delta_bytes;
  uint64_t bytes = options_.segment_bytes;
  while (bytes <= longest / 2 && file_bytes() / options_.segments_before_growth >= 2 * bytes) bytes *= 2;
  return bytes;
}

Status SegmentFiles::CheckRoom(SpaceUse use) {
  return reserve_.Check(use, [this] { return HasDeadSegment(); });
}

uint64_t SegmentFiles::RoomFor(SpaceUse use) const {
  return reserve_.RoomFor(use, [this] { return HasDeadSegment(); });
}

void SegmentFiles::SetWritten(const OpenSegment& open, uint64_t written_bytes) {
  Segment& segment = *open.segment;
  // A reader has measured its transfer against the number that stood here before.
  const uint64_t before = segment.written_bytes.load();
  DEUT_CHECK(before <= written_bytes && written_bytes <= open.capacity_bytes);
  segment.written_bytes.store(written_bytes);
  file_bytes_.fetch_add(written_bytes - before, std::memory_order_relaxed);
}

Result<OpenSegment> SegmentFiles::NewSegment(SegmentKind kind, SpaceUse use) {
  return NewSegmentOf(kind, use, reserve_.LengthWithRoom(LengthFor(kind)));
}

Result<OpenSegment> SegmentFiles::NewSegmentOf(SegmentKind kind, SpaceUse use, uint64_t bytes) {
  DEUT_RETURN_IF_ERROR(CheckRoom(use));
  return MakeSegment(kind, bytes);
}

Result<OpenSegment> SegmentFiles::MakeSegment(SegmentKind kind, uint64_t capacity_bytes) {
  DEUT_IN_FLIGHT("dc.segment_open");
  uint64_t number;
  {
    const MutexLock lock(mutex_);
    if (next_segment_ > PageAddress::kMaxSegment) {
      return DEUT_ERROR(kResourceExhausted, directory_, ": segment numbers are used up, at ", PageAddress::kMaxSegment);
    }
    number = next_segment_++;
  }
  if (number == kHalfOfNumbers) WarnOfNumbers(directory_, number);
  const std::string path = PathOf(kind, number);
  Result<std::unique_ptr<File>> file =
      storage_.Open(path, {.create = true, .exclusive = true, .writable = true, .direct = true});
  const MutexLock lock(mutex_);
  if (!file.ok()) {
    left_over_.push_back(LeftOver(path));  // the file may exist all the same
    return file.status();
  }
  OpenSegment open{.segment = std::make_shared<Segment>(kind, number, path, 0),
                   .file = std::move(*file),
                   .capacity_bytes = capacity_bytes};
  names_made_.fetch_add(1);
  table_.Add(open.segment);
  const bool is_new = writable_.emplace(number, open).second;
  DEUT_CHECK(is_new);  // else the file of another segment would never be synced
  counters_.segments_created.fetch_add(1, std::memory_order_relaxed);
  return open;
}

Status SegmentFiles::CloseSegment(const OpenSegment& open) {
  DEUT_IN_FLIGHT("dc.segment_close");
  Segment& segment = *open.segment;
  const bool was_closed = segment.closed.exchange(true);
  DEUT_CHECK(!was_closed);  // its appender may have removed it already
  if (segment.written_bytes.load() == 0) {
    DEUT_CHECK(segment.live_bytes.load() == 0);
    {
      const MutexLock lock(mutex_);
      table_.Remove(segment.number);
      writable_.erase(segment.number);
    }
    open_files_.Close(segment);
    if (const Status removed = RemoveFile(segment.path); !removed.ok()) {
      const MutexLock lock(mutex_);
      left_over_.push_back(LeftOver(segment.path));
    } else {
      counters_.segments_removed.fetch_add(1, std::memory_order_relaxed);
    }
    return Status::Ok();
  }
  {
    const MutexLock lock(mutex_);
    if (writable_.size() <= options_.max_unsynced_segments && UnsyncedBytes() <= options_.max_unsynced_bytes) {
      return Status::Ok();
    }
  }
  DEUT_RETURN_IF_ERROR(SyncSegment(segment, *open.file));
  DropSynced();
  return Status::Ok();
}

uint64_t SegmentFiles::UnsyncedBytes() const {
  uint64_t bytes = 0;
  for (const auto& [number, open] : writable_) {
    const uint64_t synced = open.segment->synced_bytes.load();  // the smaller one first: both only rise
    bytes += open.segment->written_bytes.load() - synced;
  }
  return bytes;
}

Status SegmentFiles::BoundUnsynced(const OpenSegment& open) {
  const uint64_t synced = open.segment->synced_bytes.load();
  if (open.segment->written_bytes.load() - synced < options_.max_unsynced_bytes / 4) return Status::Ok();
  return SyncSegment(*open.segment, *open.file);
}

Status SegmentFiles::SyncSegment(Segment& segment, File& file) {
  const uint64_t written = segment.written_bytes.load();
  if (segment.synced_bytes.load() >= written) return Status::Ok();
  DEUT_POINT("page_store.sync.before");
  if (DEUT_STEP("X6.sync_segments")) {
    if (const Status synced = file.Sync(); !synced.ok()) return BecomeFatal(synced);
  }
  counters_.syncs.fetch_add(1, std::memory_order_relaxed);
  RaiseTo(segment.synced_bytes, written);
  // The smaller one is loaded first: both only rise.
  const uint64_t synced_bytes = segment.synced_bytes.load();
  DEUT_CHECK(synced_bytes <= segment.written_bytes.load());
  return Status::Ok();
}

Status SegmentFiles::SyncNames() {
  const uint64_t made = names_made_.load();
  if (names_synced_.load() >= made) return Status::Ok();
  if (DEUT_STEP("X6.sync_segment_names")) {
    if (const Status synced = storage_.SyncDirectory(directory_); !synced.ok()) return BecomeFatal(synced);
  }
  counters_.syncs.fetch_add(1, std::memory_order_relaxed);
  RaiseTo(names_synced_, made);
  const uint64_t names_synced = names_synced_.load();  // before names_made_: both only rise
  DEUT_CHECK(names_synced <= names_made_.load());
  return Status::Ok();
}

void SegmentFiles::DropSynced() {
  const MutexLock lock(mutex_);
  std::erase_if(writable_, [](const auto& each) {
    const Segment& segment = *each.second.segment;
    return segment.closed.load() && segment.synced_bytes.load() >= segment.written_bytes.load();
  });
}

Result<std::vector<SegmentExtent>> SegmentFiles::SyncAll(CheckpointNumber checkpoint) {
  if (is_fatal()) return fatal();
  // A part that died since the capture has the number begun last. With a later number here, its segment would seem
  // dead before the checkpoint, and would not be named.
  DEUT_CHECK(checkpoint.value == checkpoint_.load());
  std::vector<SegmentExtent> extents;
  table_.ForEach([&](const std::shared_ptr<Segment>& segment) {
    const uint64_t written = segment->written_bytes.load();
    if (written == 0 || DeadBefore(*segment, checkpoint)) return;
    DEUT_CHECK(written % kIoAlignment == 0);  // else LoadNamedSegments would refuse the checkpoint
    RaiseTo(segment->last_naming_checkpoint, checkpoint.value);
    extents.push_back({.number = segment->number, .kind = segment->kind, .written_bytes = written});
  });
  // Every segment that was written before is in `writable_`, or is synced already.
  std::vector<OpenSegment> unsynced;
  {
    const MutexLock lock(mutex_);
    for (const auto& [number, open] : writable_) unsynced.push_back(open);
  }
  for (const OpenSegment& open : unsynced) DEUT_RETURN_IF_ERROR(SyncSegment(*open.segment, *open.file));
  DEUT_RETURN_IF_ERROR(SyncNames());
  DropSynced();
  return extents;
}

uint64_t SegmentFiles::next_segment() const {
  const MutexLock lock(mutex_);
  return next_segment_;
}

uint64_t SegmentFiles::left_over_bytes() const {
  const MutexLock lock(mutex_);
  uint64_t bytes = 0;
  for (const LeftOverFile& file : left_over_) bytes += file.bytes;
  return bytes;
}

void SegmentFiles::BeginCheckpoint(CheckpointNumber k) {
  // MarkDead stores the number begun last as that of the newest checkpoint that may name the part.
  DEUT_CHECK(k.value >= checkpoint_.load() && k > opened_);
  RaiseTo(checkpoint_, k.value);
}

Status SegmentFiles::RemoveFile(const std::string& path) {
  DEUT_IN_FLIGHT("dc.segment_removal");
  Status removed = storage_.Remove(path);
  return removed == ErrorCode::kNotFound ? Status::Ok() : removed;
}

Result<size_t> SegmentFiles::RemoveDeadSegments(CheckpointNumber oldest_kept) {
  if (is_fatal()) return fatal();
  if (checkpoint_.load() == opened_.value) return size_t{0};  // no checkpoint was begun by this incarnation
  const CheckpointNumber oldest =
      DEUT_OMITTED("S2.segments_of_two_generations") ? CheckpointNumber(UINT64_MAX) : oldest_kept;
  std::vector<std::shared_ptr<Segment>> removable;
  table_.ForEach([&](const std::shared_ptr<Segment>& segment) {
    // A segment that a checkpoint names without needing it is kept as long as that checkpoint, so that a start finds
    // every named segment. A condition that holds for a segment here goes on to hold: only SyncAll changes the last
    // naming checkpoint, and it is not called meanwhile.
    if (!DeadBefore(*segment, oldest) || segment->last_naming_checkpoint.load() >= oldest.value) return;
    removable.push_back(segment);
  });
  size_t count = 0;
  Status first_error;
  for (const std::shared_ptr<Segment>& segment : removable) {
    if (Status removed = RemoveFile(segment->path); !removed.ok()) {
      if (first_error.ok()) first_error = std::move(removed);
      continue;
    }
    {
      const MutexLock lock(mutex_);
      if (!table_.Remove(segment->number)) continue;  // another thread has removed it
      writable_.erase(segment->number);
    }
    // Only an appender and a recovery add live bytes, both before the segment is closed.
    DEUT_CHECK(segment->live_bytes.load() == 0);
    file_bytes_.fetch_sub(segment->written_bytes.load(), std::memory_order_relaxed);
    open_files_.Close(*segment);
    ++count;
  }
  std::vector<LeftOverFile> left_over;
  {
    const MutexLock lock(mutex_);
    left_over.swap(left_over_);
  }
  for (LeftOverFile& file : left_over) {
    const Result<bool> ours = MayRemove(&file);
    const bool understood = ours.ok() ? *ours : ours.status() == ErrorCode::kNotFound;  // no such file: nothing is lost
    // A file that was not understood is never removed.
    if (!understood && DEUT_STEP("V.keep_what_is_not_understood")) continue;
    if (Status removed = RemoveFile(file.path); removed.ok()) {
      ++count;
      continue;
    } else if (first_error.ok()) {
      first_error = std::move(removed);
    }
    const MutexLock lock(mutex_);
    left_over_.push_back(std::move(file));
  }
  counters_.segments_removed.fetch_add(count, std::memory_order_relaxed);
  domain_.Collect();
  if (!first_error.ok()) return first_error;
  return count;
}

}  // namespace deut::dc

#include "tc/redo_log/segment_set.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/aligned_buffer.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

// Period at which the helper retries allocation while the disk is full, and checks whether the spares beyond the
// usual number are still wanted.
constexpr Duration kShortageRetryPause = milliseconds(100);
// Freed segments are kept as spares up to this many times the number that is allocated ahead. Reuse of a file costs
// nothing; a new file is written twice.
constexpr size_t kKeptPerSpare = 2;
// A short segment that does not fit is retried, smaller by this fraction: a file system itself needs some of the
// space that it reports as free.
constexpr uint64_t kShrinkDivisor = 16;

}  // namespace

SegmentSet::SegmentSet(SegmentSetOptions options, Runtime& runtime, Storage& storage,
                       std::vector<std::shared_ptr<Segment>> live, uint64_t next_number,
                       std::function<void()> on_change, std::function<void(const Status&)> on_failure)
    : options_(std::move(options)),
      runtime_(runtime),
      storage_(storage),
      on_change_(std::move(on_change)),
      on_failure_(std::move(on_failure)),
      mutex_(runtime),
      live_(live.begin(), live.end()),
      full_log_(runtime),
      next_number_(next_number),
      first_lsn_((live.empty() ? kFirstLsn : live.front()->first_lsn()).value) {}

SegmentSet::~SegmentSet() { Stop(); }

std::string SegmentSet::PathOf(uint64_t number) const { return Concat(options_.directory, "/", SegmentName(number)); }

Result<std::unique_ptr<File>> SegmentSet::OpenFile(const std::string& path, bool create) {
  return storage_.Open(path, OpenOptions{.create = create,
                                         .exclusive = create,
                                         .writable = true,
                                         .direct = true,
                                         .sync_writes = DEUT_STEP("D2.dsync")});
}

void SegmentSet::AddSpare(std::shared_ptr<Segment> segment) {
  {
    MutexLock lock(mutex_);
    // The numbers of files have no gap, or no later start would believe the log.
    DEUT_CHECK(spares_.empty() || spares_.back()->number() + 1 == segment->number());
    spares_.push_back(std::move(segment));
    spare_count_.store(spares_.size(), std::memory_order_release);
  }
  on_change_();
}

Status SegmentSet::CreateSpare() {
  DEUT_RETURN_IF_ERROR(Create(next_number_, options_.segment_bytes));
  ++next_number_;
  return Status::Ok();
}

Status SegmentSet::CreateShortSpare() {
  DEUT_ASSIGN_OR_RETURN(const uint64_t free, storage_.FreeBytes(options_.directory));
  uint64_t bytes = std::min(options_.segment_bytes, RoundDownToIo(free));
  Status created = DEUT_ERROR(kResourceExhausted, options_.directory, ": only ", free,
                              " bytes are free, a segment needs ", kShortestSegment);
  for (; bytes >= kShortestSegment; bytes -= RoundUpToIo(bytes / kShrinkDivisor)) {
    created = Create(next_number_, bytes);
    if (created != ErrorCode::kResourceExhausted) break;
  }
  DEUT_RETURN_IF_ERROR(created);
  ++next_number_;
  return Status::Ok();
}

Status SegmentSet::Create(uint64_t number, uint64_t bytes) {
  const std::string path = PathOf(number);
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<File> file, OpenFile(path, /*create=*/true));
  Status allocated = file->Allocate(bytes);
  if (allocated.ok()) allocated = file->Sync();
  if (!allocated.ok()) {
    file.reset();
    // An incomplete file must neither keep the space nor block the next attempt.
    DEUT_RETURN_IF_ERROR(storage_.Remove(path));
    DEUT_RETURN_IF_ERROR(storage_.SyncDirectory(options_.directory));
    return allocated;
  }
  if (DEUT_STEP("D2.sync_directory")) {
    Status synced = storage_.SyncDirectory(options_.directory);
    if (!synced.ok()) {
      file.reset();
      // The next attempt creates the file anew.
      DEUT_RETURN_IF_ERROR(storage_.Remove(path));
      return synced;
    }
  }
  AddSpare(std::make_shared<Segment>(number, std::move(file), bytes, /*created_by_this_process=*/true));
  return Status::Ok();
}

Status SegmentSet::Recycle(const std::shared_ptr<Segment>& segment) {
  DEUT_CHECK(renamed_ == 0);  // a second renamed file would take the place of the first among the spares
  const uint64_t number = next_number_;
  DEUT_RETURN_IF_ERROR(storage_.Rename(PathOf(segment->number()), PathOf(number)));
  DEUT_RETURN_IF_ERROR(storage_.SyncDirectory(options_.directory));
  ++next_number_;
  renamed_ = number;
  return OpenRenamed().status();
}

Result<bool> SegmentSet::OpenRenamed() {
  if (renamed_ == 0) return false;
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<File> file, OpenFile(PathOf(renamed_), /*create=*/false));
  const uint64_t number = std::exchange(renamed_, 0);
  recycled_.fetch_add(1, std::memory_order_relaxed);
  AddSpare(
      std::make_shared<Segment>(number, std::move(file), options_.segment_bytes, /*created_by_this_process=*/true));
  return true;
}

Result<bool> SegmentSet::TrimOne() {
  std::shared_ptr<Segment> segment;
  {
    MutexLock lock(mutex_);
    if (live_.size() < 2 || live_[1]->first_lsn() > trim_to_ || live_[1]->first_lsn() >= trim_durable_) return false;
    segment = std::move(live_.front());
    live_.pop_front();
    DEUT_CHECK(segment->end_lsn() == live_.front()->first_lsn());
    first_lsn_.store(live_.front()->first_lsn().value, std::memory_order_seq_cst);
  }
  // Find does not return it any more. A reader that still holds it reads on from the removed file.
  const bool recycle = segment.use_count() == 1 && segment->created_by_this_process() &&
                       segment->bytes() == options_.segment_bytes &&
                       spare_count() < std::max<uint64_t>(kKeptPerSpare * options_.spares, Target());
  if (recycle) {
    DEUT_RETURN_IF_ERROR(Recycle(segment));
  } else {
    DEUT_RETURN_IF_ERROR(storage_.Remove(PathOf(segment->number())));
    DEUT_RETURN_IF_ERROR(storage_.SyncDirectory(options_.directory));
    removed_.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

Result<bool> SegmentSet::FillOne() {
  if (spare_count() >= options_.spares) {
    disk_full_.store(false, std::memory_order_relaxed);
    full_log_.End(
        [&] { return Concat("disk: the redo log in ", options_.directory, " has its spare segments again"); });
    if (spare_count() >= Target()) return DropOne();
  }
  DEUT_RETURN_IF_ERROR(CreateSpare());
  return true;
}

Result<bool> SegmentSet::DropOne() {
  const uint64_t wanted = std::max<uint64_t>(kKeptPerSpare * options_.spares, Target());
  if (spare_count() <= wanted) return false;
  // A commit may claim the counted bytes at any moment, also after Target() has answered.
  const bool claims = demand_ != nullptr && DEUT_STEP("D5.keep_promised");
  if (claims && !demand_->ClaimSpare()) return false;
  DEUT_POINT("redo_log.segments.before_drop");
  std::shared_ptr<Segment> segment;
  {
    MutexLock lock(mutex_);
    if (spares_.size() > wanted) {
      segment = std::move(spares_.back());
      spares_.pop_back();
      spare_count_.store(spares_.size(), std::memory_order_release);
    }
  }
  if (claims) demand_->GiveBackSpare();
  if (segment == nullptr) return false;  // the log thread has taken one
  // The newest spare goes, so that the numbers have no gap. No block with this number was ever written.
  const uint64_t number = segment->number();
  DEUT_CHECK(number + 1 == next_number_);
  const Status removed = storage_.Remove(PathOf(number));
  if (removed == ErrorCode::kResourceExhausted) AddSpare(std::move(segment));  // the next attempt removes it
  DEUT_RETURN_IF_ERROR(removed);
  // The number is free as soon as the file is gone. If the sync below fails for a shortage, the next file has to take
  // it, or the log would have a gap, with which no later start believes it.
  next_number_ = number;
  DEUT_RETURN_IF_ERROR(storage_.SyncDirectory(options_.directory));
  removed_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void SegmentSet::HelperLoop() {
  for (;;) {
    // The word is loaded first: a stop after that load changes it, and the wait below returns at once.
    const uint32_t seen = work_word_.load(std::memory_order_seq_cst);
    DEUT_POINT("redo_log.segments.before_stop_check");
    if (stopping_.load(std::memory_order_seq_cst)) return;
    // Spares are taken in the order of their numbers, so the renamed file is opened before a new one is created.
    bool is_opening = true;
    Result<bool> worked = OpenRenamed();
    if (worked.ok() && !*worked) {
      worked = TrimOne();
      // A shortage inside TrimOne, before a file has the next number, cannot be retried: the segment is already out
      // of live_.
      is_opening = renamed_ != 0;
      if (worked.ok() && !*worked) {
        worked = FillOne();
        is_opening = true;
      }
    }
    const bool full = is_opening && worked.status() == ErrorCode::kResourceExhausted;
    const bool lacks_spares = full && spare_count() < options_.spares;
    if (full || (worked.ok() && *worked)) disk_full_.store(lacks_spares, std::memory_order_relaxed);
    if (full) shortages_.fetch_add(1, std::memory_order_seq_cst);
    if (full && !lacks_spares) {  // ordinary commits go on; the commit that wants more is told
      on_change_();
      worked = false;
    }
    if (lacks_spares) {
      full_log_.Begin([&] {
        const Result<uint64_t> free = storage_.FreeBytes(options_.directory);
        return Concat("disk: no room for a segment of the redo log in ", options_.directory, ": it takes ",
                      options_.segment_bytes, " bytes, ", free.ok() ? *free : 0, " are free; ", spare_bytes(),
                      " bytes are left in segments, then commits are refused; ", worked.status().message());
      });
      on_change_();
      worked = false;
    }
    if (!worked.ok()) {
      on_failure_(worked.status());
      return;
    }
    if (*worked) continue;
    // Segments beyond the spares are wanted only for a while, and no notification says when that ends.
    const bool look_again = full || spare_count() > kKeptPerSpare * options_.spares;
    runtime_.Wait(work_word_, seen, look_again ? runtime_.Now() + kShortageRetryPause : kNoDeadline);
  }
}

void SegmentSet::Notify() {
  work_word_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.Wake(work_word_, 1);
}

void SegmentSet::Start() {
  helper_ = runtime_.StartThread("log_segments", [this] { HelperLoop(); });
}

void SegmentSet::Stop() {
  if (helper_ == nullptr) return;
  stopping_.store(true, std::memory_order_seq_cst);
  Notify();
  helper_.reset();
}

std::shared_ptr<Segment> SegmentSet::TakeSpare() {
  std::shared_ptr<Segment> segment;
  {
    MutexLock lock(mutex_);
    if (spares_.empty()) return nullptr;
    segment = std::move(spares_.front());
    spares_.pop_front();
    spare_count_.store(spares_.size(), std::memory_order_release);
  }
  Notify();
  return segment;
}

void SegmentSet::Open(std::shared_ptr<Segment> segment, Lsn first_lsn) {
  segment->Begin(first_lsn);
  MutexLock lock(mutex_);
  // Recovery walks the files by number and expects each to begin where the one before ends.
  DEUT_CHECK(live_.empty() || live_.back()->number() + 1 == segment->number());
  if (!live_.empty()) live_.back()->End(first_lsn);
  live_.push_back(std::move(segment));
  first_lsn_.store(live_.front()->first_lsn().value, std::memory_order_seq_cst);
}

std::shared_ptr<Segment> SegmentSet::Find(Lsn lsn) {
  MutexLock lock(mutex_);
  const auto after =
      std::upper_bound(live_.begin(), live_.end(), lsn,
                       [](Lsn l, const std::shared_ptr<Segment>& segment) { return l < segment->first_lsn(); });
  if (after == live_.begin()) return nullptr;
  DEUT_DCHECK(lsn < after[-1]->end_lsn());
  return after[-1];
}

Lsn SegmentSet::FirstLsnAfterTrimTo(Lsn lsn) {
  const std::shared_ptr<Segment> segment = Find(lsn);
  return segment == nullptr ? first_lsn() : segment->first_lsn();
}

Lsn SegmentSet::FirstLsnOfNewest(uint64_t count) {
  MutexLock lock(mutex_);
  if (live_.empty()) return kFirstLsn;
  return live_[live_.size() - std::clamp<uint64_t>(count, 1, live_.size())]->first_lsn();
}

void SegmentSet::TrimTo(Lsn redo_start, Lsn durable) {
  DEUT_CHECK(redo_start <= durable);
  {
    MutexLock lock(mutex_);
    trim_to_ = std::max(trim_to_, redo_start);
    trim_durable_ = std::max(trim_durable_, durable);
  }
  Notify();
}

uint64_t SegmentSet::live_count() {
  MutexLock lock(mutex_);
  return live_.size();
}

}  // namespace deut::tc

#include "tc/redo_log/log_space.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/runtime/blocking_hook.h"
#include "common/testing/test_points.h"
#include "tc/log_format/block_format.h"

namespace deut::tc {
namespace {

constexpr uint32_t kFullDiskRetryMs = 200;
constexpr uint32_t kLaggingRetryMs = 5;
constexpr uint64_t kLaggingReserveDivisor = 4;
// Period at which a waiting claim checks whether the log still runs, and whether other commits took the new segments.
constexpr Duration kSpaceRecheckPeriod = milliseconds(100);

uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit; }

}  // namespace

void SpaceClaim::GiveBack() { std::exchange(space_, nullptr)->GiveBack(log_bytes_ + extra_bytes_); }
void SpaceClaim::KeepExtraUntil(Lsn end) { space_->KeepSurplus(end, extra_bytes_); }

LogSpace::LogSpace(LogSpaceOptions options, Runtime& runtime, Storage& storage, LogRing& ring, const LogWriter& writer,
                   SegmentSet& segments, const LogFailure& failure)
    : options_(std::move(options)),
      usable_bytes_(options_.segment_bytes - kSegmentHeaderBytes),
      runtime_(runtime),
      storage_(storage),
      ring_(ring),
      writer_(writer),
      segments_(segments),
      failure_(failure),
      mutex_(runtime) {
  DEUT_CHECK(options_.segment_bytes > kSegmentHeaderBytes);
}

Status LogSpace::CheckRunning() const {
  if (failure_.failed()) return DEUT_ERROR(kUnavailable, "the redo log has failed: ", failure_.status().ToString());
  if (writer_.stopping()) return DEUT_ERROR(kUnavailable, "the redo log is stopping");
  return Status::Ok();
}

uint64_t LogSpace::free_bytes() const {
  // In this order a segment that is opened between the two looks is not counted at all, instead of twice.
  const bool spares_first = DEUT_OMITTED("D5.room_first");
  const uint64_t first = spares_first ? segments_.spare_bytes() : writer_.segment_room();
  DEUT_POINT("redo_log.space.first_look");
  return first + (spares_first ? writer_.segment_room() : segments_.spare_bytes());
}

bool LogSpace::Fits(uint64_t claimed, uint64_t bytes, Figures* figures) const {
  // In this order: bytes that the log thread takes in between count as pending and are missing from the free bytes,
  // so the answer errs to "no".
  const uint64_t consumed = writer_.consumed().value;
  figures->free = free_bytes();
  figures->pending = claimed > consumed ? claimed - consumed : 0;
  // While allocation merely lags behind, most of the reserve may be used, because the next segment will come soon.
  // The bytes that a start needs stay: perhaps the disk is full and the helper does not know yet.
  figures->full = segments_.disk_full();
  const uint64_t whole = options_.reserve_bytes;
  figures->reserve = figures->full
                         ? whole
                         : std::max(whole / kLaggingReserveDivisor, std::min(whole, 2 * SegmentSet::kShortestSegment));
  return figures->free >= figures->pending + bytes + figures->reserve;
}

bool LogSpace::TryClaim(uint64_t bytes) {
  uint64_t claimed = ring_.claimed();
  for (;;) {
    Figures figures;
    if (!Fits(claimed, bytes, &figures)) return false;
    DEUT_POINT("redo_log.space.before_claim");
    if (DEUT_OMITTED("D5.claim") || ring_.TryClaim(&claimed, bytes)) return true;
  }
}

Status LogSpace::Refusal(uint64_t bytes) const {
  Figures figures;
  (void)Fits(ring_.claimed(), bytes, &figures);
  return DEUT_ERROR(
             kResourceExhausted,
             figures.full ? "the disk of the redo log is full" : "the redo log waits for the allocation of a segment",
             " (", options_.directory, "): ", figures.free, " bytes are left of what was allocated, ", figures.pending,
             " of them are taken and ", figures.reserve, " are kept in reserve, for ", bytes, " more",
             figures.full ? Concat("; reads go on, and commits again once ", options_.segment_bytes,
                                   " bytes are free there, or the data component has made stable what the log holds")
                          : "")
      .WithRetryAfter(figures.full ? kFullDiskRetryMs : kLaggingRetryMs);
}

Status LogSpace::Check(uint64_t bytes) {
  DEUT_RETURN_IF_ERROR(CheckRunning());
  Figures figures;
  if (Fits(ring_.claimed(), bytes, &figures)) return Status::Ok();
  GiveBackTakenSurplus();
  return Fits(ring_.claimed(), bytes, &figures) ? Status::Ok() : Refusal(bytes);
}

Result<SpaceClaim> LogSpace::Claim(const Footprint& footprint, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckRunning());
  const uint64_t extra = footprint.has_chunks ? SurplusOf(footprint) : 0;
  const uint64_t bytes = footprint.log_bytes + extra;
  if (!TryClaim(bytes)) {
    GiveBackTakenSurplus();
    if (!TryClaim(bytes)) {
      if (!footprint.has_chunks || DEUT_OMITTED("D5.demand")) return Refusal(bytes);
      DEUT_RETURN_IF_ERROR(WaitAndClaim(bytes, deadline));
    }
  }
  return SpaceClaim(this, footprint.log_bytes, extra);
}

uint64_t LogSpace::SurplusOf(const Footprint& footprint) const {
  if (DEUT_OMITTED("D5.surplus")) return 0;
  // The rest at the end of a segment is shorter than the block of the next record, which may be another
  // transaction's.
  const uint64_t largest = std::max<uint64_t>(footprint.largest_block, BlockBytesFor(options_.chunk_bytes));
  const uint64_t tail = largest - kBlockAlignment;
  // Every record fits an empty segment, whatever is lost at the end of one.
  DEUT_DCHECK(tail < usable_bytes_);
  DEUT_DCHECK(footprint.log_bytes <= footprint.disk_bytes);
  const uint64_t ends = RoundUp(footprint.disk_bytes, usable_bytes_ - tail) + 1;
  return footprint.disk_bytes - footprint.log_bytes + ends * tail;
}

uint64_t LogSpace::Demand() {
  GiveBackTakenSurplus();
  return DemandNow();
}

uint64_t LogSpace::DemandNow() const {
  // Loads in the order that the header states.
  const uint64_t consumed = writer_.consumed().value, room = writer_.segment_room();
  const uint64_t waiting = waiting_bytes_.load(std::memory_order_seq_cst), claimed = ring_.claimed();
  // Bytes in the ring are promised, as are bytes that are not appended yet.
  const uint64_t promised_from = DEUT_OMITTED("D5.keep_promised") ? ring_.tail().value : consumed;
  const uint64_t pending = claimed > promised_from ? claimed - promised_from : 0;
  if (waiting + pending == 0) return 0;
  const uint64_t wanted = waiting + pending + options_.reserve_bytes;
  const uint64_t segments = wanted > room ? RoundUp(wanted - room, usable_bytes_) : 0;
  return segments > segments_.spares() ? segments - segments_.spares() : 0;
}

Status LogSpace::CheckDisk(uint64_t bytes) const {
  const uint64_t target = segments_.spares() + DemandNow(), there = segments_.spare_count();
  if (target <= there) return Status::Ok();
  const uint64_t wanted = (target - there) * options_.segment_bytes + options_.reserve_bytes;
  DEUT_ASSIGN_OR_RETURN(const uint64_t free, storage_.FreeBytes(options_.directory));
  if (wanted <= free) return Status::Ok();
  DEUT_ASSIGN_OR_RETURN(const uint64_t capacity, storage_.CapacityBytes(options_.directory));
  if (bytes + options_.reserve_bytes > capacity) {
    return DEUT_ERROR(kInvalidArgument, "a commit of ", bytes, " bytes never has room on the disk of the redo log (",
                      options_.directory, "): that has ", capacity, " bytes in all, of which ", options_.reserve_bytes,
                      " are kept in reserve. Write less in one transaction, or give the redo "
                      "log a larger disk");
  }
  return DEUT_ERROR(kResourceExhausted, "a commit of ", bytes, " bytes has no room on the disk of the redo log (",
                    options_.directory, "): ", wanted, " bytes more would have to be allocated, ", free,
                    " are free. Smaller commits go on")
      .WithRetryAfter(kFullDiskRetryMs);
}

Status LogSpace::WaitAndClaim(uint64_t bytes, Deadline deadline) {
  BlockingHook::NotifyBlocking();
  waiting_bytes_.fetch_add(bytes, std::memory_order_seq_cst);
  const Status claimed = WaitForSegments(bytes, deadline);
  waiting_bytes_.fetch_sub(bytes, std::memory_order_seq_cst);
  segments_.DemandChanged();  // lets the helper remove segments that are not needed after all
  return claimed;
}

Status LogSpace::WaitForSegments(uint64_t bytes, Deadline deadline) {
  const uint64_t shortages = segments_.shortages();
  // The file system is asked without the mutex, because commits take the mutex.
  DEUT_RETURN_IF_ERROR(CheckDisk(bytes));
  for (;;) {
    DEUT_RETURN_IF_ERROR(CheckRunning());
    {
      MutexLock lock(mutex_);
      GiveBackTakenSurplusLocked();
      if (TryClaim(bytes)) return Status::Ok();
      if (segments_.shortages() == shortages) {
        if (runtime_.Now() >= deadline) {
          return DEUT_ERROR(kDeadlineExceeded, "a commit of ", bytes,
                            " bytes waits for segments of the redo log to be allocated");
        }
        segments_.DemandChanged();
        changed_.WaitUntil(mutex_, std::min<Deadline>(deadline, runtime_.Now() + kSpaceRecheckPeriod));
        continue;
      }
    }
    Status short_of = CheckDisk(bytes);
    return short_of.ok() ? Refusal(bytes) : short_of;
  }
}

void LogSpace::Changed() {
  MutexLock lock(mutex_);
  changed_.NotifyAll(runtime_);
}

void LogSpace::KeepSurplus(Lsn end, uint64_t bytes) {
  DEUT_DCHECK(end <= ring_.tail());  // the commit that has claimed it is appended
  MutexLock lock(mutex_);
  surplus_.push_back({end, bytes});
  GiveBackTakenSurplusLocked();
}

void LogSpace::GiveBackTakenSurplus() {
  MutexLock lock(mutex_);
  GiveBackTakenSurplusLocked();
}

void LogSpace::GiveBackTakenSurplusLocked() {
  const Lsn consumed = writer_.consumed();
  std::erase_if(surplus_, [&](const Surplus& surplus) {
    if (surplus.end > consumed) return false;
    GiveBack(surplus.bytes);
    return true;
  });
}

}  // namespace deut::tc

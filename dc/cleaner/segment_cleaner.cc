#include "dc/cleaner/segment_cleaner.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/check.h"
#include "common/io/storage.h"
#include "common/observe/log.h"
#include "common/testing/flight_board.h"
#include "common/testing/test_points.h"
#include "dc/cleaner/victim_queue.h"
#include "dc/page_store/part_format.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/space_use.h"

namespace deut::dc {
namespace {

// Pause for a segment that could not be read, or from which nothing could be moved because its pages are being
// written repeatedly.
constexpr Duration kRetryAfter = std::chrono::seconds(5);
// The age from which a pass is renewed. A pass takes some milliseconds for 100,000 segments.
constexpr Duration kPassAge = std::chrono::seconds(5);
// Within a wait, the cleaner looks at the disk this often.
constexpr Duration kLongestWait = std::chrono::seconds(1);
// The cleaner waits after this many bytes that it has read and written.
constexpr uint64_t kPacedBytes = 1 << 20;
// A live delta part takes its page's other deltas along, or the base: up to about this many bytes for each of its own.
constexpr uint64_t kCopiedOfDelta = 8;

// Returns true if less than 2/3 is live.
bool IsWorthCleaning(const SegmentUsage& usage) { return usage.live_bytes < usage.written_bytes / 3 * 2; }
// Returns true if at least a tenth is dead, and a copy would be smaller. A copy alone loses its header and the rest
// of its last block again. Without that condition, a small segment whose parts are all live would be copied
// repeatedly, each time with the little room that had come back, and no other segment ever.
bool IsWorthCleaningWhenShort(const SegmentUsage& usage) {
  const uint64_t copy = (kSegmentHeaderBytes + usage.live_bytes + kIoAlignment - 1) / kIoAlignment * kIoAlignment;
  return usage.live_bytes < usage.written_bytes / 10 * 9 && copy < usage.written_bytes;
}
// This many small segments of one kind become fewer, even if only a header and the rest of a block is dead in each,
// and even if the copy begins another segment.
constexpr size_t kMinSmallSegments = 3;

// Returns true if `room` is enough to empty the segment. A segment with at most as many live bytes as a short one is
// always tried: its copy may find its place in a segment that is open already.
bool HasRoom(const SegmentUsage& usage, uint64_t short_segment_bytes, uint64_t room) {
  const uint64_t copied = usage.live_bytes * (usage.kind == SegmentKind::kDelta ? kCopiedOfDelta : 1);
  return usage.live_bytes <= short_segment_bytes || copied <= room;
}

Status Ending() { return DEUT_ERROR(kCancelled, "the cleaner is ending"); }

}  // namespace

SegmentCleaner::SegmentCleaner(Runtime& runtime, MappingTable& pages, ReclamationDomain& domain, SegmentStore& store,
                               uint64_t segment_bytes, const CleanerOptions& options,
                               std::function<void(const Status&)> on_error)
    : runtime_(runtime),
      pages_(pages),
      domain_(domain),
      store_(store),
      options_(options),
      segment_bytes_(segment_bytes),
      on_error_(std::move(on_error)),
      mutex_(runtime) {
  if (options.interval != Duration()) thread_ = runtime.StartThread("dc-cleaner", [this] { Run(); });
}

SegmentCleaner::~SegmentCleaner() {
  stop_.store(true, std::memory_order_relaxed);
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wakes_);
  thread_.reset();
}

void SegmentCleaner::Run() {
  while (!stop_.load(std::memory_order_relaxed)) {
    const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
    const Status cleaned = Clean();
    if (const Status fatal = store_.fatal(); !fatal.ok()) return on_error_(fatal);
    if (!cleaned.ok() && cleaned != ErrorCode::kCancelled && !failing_) {
      LogWarning("segments cannot be cleaned: ", cleaned.message());
    }
    failing_ = !cleaned.ok();
    if (stop_.load(std::memory_order_relaxed)) return;
    runtime_.Wait(wakes_, wakes, runtime_.Now() + options_.interval);
  }
}

Status SegmentCleaner::Clean() {
  DEUT_CHECK(!domain_.guard_held());
  const MutexLock lock(mutex_);
  const uint64_t next_segment = store_.next_segment();
  Pass pass;
  while (const std::optional<SegmentUsage> victim = ChooseVictim(next_segment, &pass)) {
    DEUT_RETURN_IF_ERROR(CleanOne(*victim, &pass));
  }
  // Where space is short, segments that the rewriter writes to are closed if they are half dead.
  if (rewriter_ != nullptr) DEUT_RETURN_IF_ERROR(rewriter_->Write());
  if (pass.without_room.number == 0 || !IsShort(pass)) return Status::Ok();
  return DEUT_ERROR(kResourceExhausted, "segment ", pass.without_room.number, " with ", pass.without_room.live_bytes,
                    " live of ", pass.without_room.written_bytes, " bytes is worth cleaning, but copies may take only ",
                    store_.RoomFor(SpaceUse::kReclaim), " bytes of the disk; free some space on it");
}

bool SegmentCleaner::Count(const SegmentUsage& usage, Sums* sums) const {
  if (!usage.closed) return false;
  // A segment without live bytes is removed without cleaning.
  if (usage.live_bytes == 0) {
    sums->dead += usage.written_bytes;
    return false;
  }
  // If a segment whose live parts are damaged counted, it would make others seem worth cleaning for ever.
  const auto retry = retry_after_.find(usage.number);
  if (retry != retry_after_.end() && retry->second == MonotonicTime::max()) return false;
  sums->written += usage.written_bytes;
  sums->live += usage.live_bytes;
  return true;
}

SegmentCleaner::Pass SegmentCleaner::LookAtAll(uint64_t next_segment) {
  const MonotonicTime now = runtime_.Now();
  absl::erase_if(retry_after_, [&](const auto& each) { return each.second <= now; });
  Pass pass;
  pass.victims = VictimQueue(next_segment);
  pass.begun = pass.looked = now;
  pass.file_bytes = store_.file_bytes();
  const uint64_t room = store_.RoomFor(SpaceUse::kReclaim);
  // The emptiest segments that are worth cleaning when the disk is short of space: large ones, and small ones by kind.
  SegmentUsage best_when_short, best_small_base, best_small_delta;
  size_t small_bases = 0, small_deltas = 0;
  const auto take = [](const SegmentUsage& usage, SegmentUsage* best) {
    if (best->number == 0 || IsEmptier(usage, *best)) *best = usage;
  };
  store_.ForEachUsage([&](const SegmentUsage& usage) DEUT_REQUIRES(mutex_) {
    if (!Count(usage, &pass.sums)) return;
    if (usage.number >= next_segment || retry_after_.contains(usage.number)) return;
    if (!HasRoom(usage, segment_bytes_, room)) {
      if (IsWorthCleaningWhenShort(usage)) take(usage, &pass.without_room);
      return;
    }
    if (IsWorthCleaning(usage)) pass.victims.Add(usage);
    if (IsWorthCleaningWhenShort(usage)) take(usage, &best_when_short);
    if (usage.written_bytes > segment_bytes_ / 2) return;
    const bool base = usage.kind == SegmentKind::kBase;
    ++(base ? small_bases : small_deltas);
    take(usage, base ? &best_small_base : &best_small_delta);
  });
  if (small_bases >= kMinSmallSegments) take(best_small_base, &best_when_short);
  if (small_deltas >= kMinSmallSegments) take(best_small_delta, &best_when_short);
  pass.best_when_short = best_when_short;
  pass.hurried = IsHurried(pass.sums);
  return pass;
}

bool SegmentCleaner::IsFresh(const Pass& pass) const {
  const uint64_t now = store_.file_bytes(), then = pass.file_bytes;
  return runtime_.Now() < pass.begun + kPassAge && (now > then ? now - then : then - now) <= slack_bytes() / 4;
}

bool SegmentCleaner::IsShort(const Pass& pass) const {
  // Short segments: with the slack of a large store, gigabytes would be copied before the first checkpoint frees any.
  return pass.sums.dead < options_.slack_segments * segment_bytes_ && store_.IsShortOfSpace();
}

std::optional<SegmentUsage> SegmentCleaner::NextVictimOf(Pass* pass) {
  Sums& sums = pass->sums;
  while (sums.written > sums.live + sums.live / 2 + slack_bytes()) {
    const std::optional<SegmentUsage> seen = pass->victims.Pop();
    if (!seen.has_value()) return std::nullopt;
    // Its parts may have died since the pass.
    const std::optional<SegmentUsage> usage = store_.UsageOf(seen->number);
    const uint64_t live = usage.has_value() ? usage->live_bytes : 0;
    DEUT_CHECK(live <= seen->live_bytes);
    sums.live -= seen->live_bytes - live;
    if (live != 0) return usage;
    sums.written -= seen->written_bytes;
    sums.dead += seen->written_bytes;
  }
  return std::nullopt;
}

std::optional<SegmentUsage> SegmentCleaner::ChooseVictim(uint64_t next_segment, Pass* pass) {
  // When the disk is short of space, every choice has a pass of its own: which segments are worth cleaning then depends
  // on all of them, and on the room that there is.
  if (IsFresh(*pass) && !store_.IsShortOfSpace()) {
    if (std::optional<SegmentUsage> victim = NextVictimOf(pass)) return victim;
  }
  // The earlier pass has no victim left, or none is needed by its sums. Only a new one may end the cleaning.
  *pass = LookAtAll(next_segment);
  if (IsShort(*pass) && pass->best_when_short.number != 0) return pass->best_when_short;
  return NextVictimOf(pass);
}

Status SegmentCleaner::CleanOne(const SegmentUsage& victim, Pass* pass) {
  DEUT_IN_FLIGHT("dc.cleaning");
  DEUT_CHECK(victim.number != 0 && victim.live_bytes > 0);
  if (rewriter_ == nullptr) {
    DEUT_ASSIGN_OR_RETURN(rewriter_, PageRewriter::Create(pages_, domain_, store_));
  }
  Status damage;
  Status copied = CopyLive(victim, pass, &damage);
  NoteStatistics();
  domain_.Collect();
  DEUT_RETURN_IF_ERROR(store_.fatal());
  if (copied == ErrorCode::kResourceExhausted || copied == ErrorCode::kCancelled) return copied;
  if (!copied.ok()) {  // retried later; others may be readable now
    retry_after_[victim.number] = runtime_.Now() + kRetryAfter;
    return copied;
  }
  const std::optional<SegmentUsage> now = store_.UsageOf(victim.number);
  const uint64_t left = now.has_value() ? now->live_bytes : 0;
  // A victim is closed, so nothing is appended to it, and its parts can only die.
  DEUT_CHECK(left <= victim.live_bytes);
  if (left == 0) {
    segments_.fetch_add(1, std::memory_order_relaxed);
    freed_.fetch_add(victim.written_bytes - std::min(victim.live_bytes, victim.written_bytes),
                     std::memory_order_relaxed);
    // The copies count as live bytes of another segment, also while that is not closed. So the sums ask for no more
    // cleaning than a new pass would, apart from segments that other appenders have closed meanwhile.
    pass->sums.written -= victim.written_bytes - std::min(victim.live_bytes, victim.written_bytes);
    pass->sums.dead += victim.written_bytes;
  } else {
    NoteLeft(victim, left, damage);
  }
  return Status::Ok();
}

void SegmentCleaner::NoteLeft(const SegmentUsage& victim, uint64_t left, const Status& damage) {
  // Copies that lost against a flush are tried again at once.
  if (left < victim.live_bytes) return;
  if (damage.ok()) {
    retry_after_[victim.number] = runtime_.Now() + kRetryAfter;
    return;
  }
  LogError("a segment cannot be emptied, ", left, " live bytes stay: ", damage.message());
  unreadable_.fetch_add(1, std::memory_order_relaxed);
  retry_after_[victim.number] = MonotonicTime::max();
}

Status SegmentCleaner::CopyLive(const SegmentUsage& victim, Pass* pass, Status* damage) {
  PageRewriter& rewriter = *rewriter_;
  scanned_.fetch_add(victim.written_bytes, std::memory_order_relaxed);
  uint64_t position = 0;  // everything before this offset has been read
  const auto done = [&] { return position + rewriter.statistics().bytes_read + rewriter.statistics().bytes_written; };
  uint64_t paced = done();
  // Waits if at least `bytes` were read and written since the last wait.
  const auto pace = [&](uint64_t bytes) DEUT_REQUIRES(mutex_) -> Status {
    DEUT_CHECK(done() >= paced);
    if (done() - paced < bytes) return Status::Ok();
    return Pace(done() - std::exchange(paced, done()), pass);
  };
  const auto note_damage = [&](const Status& status) {
    if (damage->ok()) *damage = status;
  };
  DEUT_POINT("cleaner.before_scan");
  const Status scanned = store_.ForEachPart(
      victim.number,
      [&](const PartView& part) DEUT_REQUIRES(mutex_) -> Status {
        if (stop_.load(std::memory_order_relaxed)) return Ending();
        position = part.address.offset() + PartBytesInUnits(part.payload.size());
        const Status added = rewriter.Add(part);
        // Another part of the page's image is damaged. The other pages of this segment can be copied all the same.
        if (added == ErrorCode::kCorruption) {
          note_damage(added);
        } else {
          DEUT_RETURN_IF_ERROR(added);
        }
        if (rewriter.full()) DEUT_RETURN_IF_ERROR(rewriter.Write());
        return pace(kPacedBytes);
      },
      [&](const DamagedParts& parts) DEUT_REQUIRES(mutex_) -> Status {
        note_damage(parts.status);
        position = parts.end;
        return pace(kPacedBytes);
      });
  // Parts that were read before an error are copied all the same.
  DEUT_RETURN_IF_ERROR(rewriter.Write());
  if (scanned == ErrorCode::kCorruption) {  // the file is too short: nothing follows
    note_damage(scanned);
  } else if (scanned != ErrorCode::kNotFound) {  // the segment was removed meanwhile, because its last part has died
    DEUT_RETURN_IF_ERROR(scanned);
  }
  position = victim.written_bytes;
  return pace(/*bytes=*/1);
}

bool SegmentCleaner::IsUrgent(Pass* pass) {
  // A long segment takes a while, so the disk may become short of space meanwhile.
  if (store_.IsShortOfSpace()) return true;
  const MonotonicTime now = runtime_.Now();
  if (now >= pass->looked + kPassAge) {
    Sums sums;
    store_.ForEachUsage([&](const SegmentUsage& usage) DEUT_REQUIRES(mutex_) { (void)Count(usage, &sums); });
    pass->hurried = IsHurried(sums);
    pass->looked = now;
  }
  return pass->hurried;
}

Status SegmentCleaner::Pace(uint64_t bytes, Pass* pass) {
  if (options_.bytes_per_second != 0) {
    const MonotonicTime until =
        runtime_.Now() + std::chrono::microseconds(bytes * 1'000'000 / options_.bytes_per_second);
    for (;;) {
      const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
      const MonotonicTime now = runtime_.Now();
      if (stop_.load(std::memory_order_relaxed) || now >= until || IsUrgent(pass)) break;
      runtime_.Wait(wakes_, wakes, std::min(until, now + kLongestWait));
    }
  }
  return stop_.load(std::memory_order_relaxed) ? Ending() : Status::Ok();
}

void SegmentCleaner::NoteStatistics() {
  const PageRewriterStatistics& of_rewriter = rewriter_->statistics();
  read_.store(of_rewriter.bytes_read, std::memory_order_relaxed);
  written_.store(of_rewriter.bytes_written, std::memory_order_relaxed);
  lost_.store(of_rewriter.copies_lost, std::memory_order_relaxed);
}

CleanerStatistics SegmentCleaner::statistics() const {
  CleanerStatistics statistics;
  statistics.segments = segments_.load(std::memory_order_relaxed);
  statistics.bytes_read = scanned_.load(std::memory_order_relaxed) + read_.load(std::memory_order_relaxed);
  statistics.bytes_written = written_.load(std::memory_order_relaxed);
  statistics.bytes_freed = freed_.load(std::memory_order_relaxed);
  statistics.copies_lost = lost_.load(std::memory_order_relaxed);
  statistics.unreadable = unreadable_.load(std::memory_order_relaxed);
  return statistics;
}

}  // namespace deut::dc

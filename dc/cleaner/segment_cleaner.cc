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
#include "dc/page_store/segment_format.h"

namespace deut::dc {
namespace {

// Pause for a segment that could not be read, or from which nothing could be moved because its pages are being
// written repeatedly.
constexpr Duration kRetryAfter = std::chrono::seconds(5);

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
  while (const std::optional<Victim> victim = ChooseVictim(next_segment, &pass)) {
    DEUT_RETURN_IF_ERROR(CleanOne(*victim, &pass));
  }
  return Status::Ok();
}

SegmentCleaner::Pass SegmentCleaner::LookAtAll(uint64_t next_segment) {
  const MonotonicTime now = runtime_.Now();
  absl::erase_if(retry_after_, [&](const auto& each) { return each.second <= now; });
  Pass pass;
  // The emptiest segments that are worth cleaning when the disk is short of space: large ones, and small ones by kind.
  SegmentUsage best_when_short, best_small_base, best_small_delta;
  size_t small_bases = 0, small_deltas = 0;
  const auto take = [](const SegmentUsage& usage, SegmentUsage* best) {
    if (best->number == 0 || IsBetterVictim(usage, *best)) *best = usage;
  };
  store_.ForEachUsage([&](const SegmentUsage& usage) DEUT_REQUIRES(mutex_) {
    if (!usage.closed) return;
    // A segment without live bytes is removed without cleaning.
    if (usage.live_bytes == 0) {
      pass.dead += usage.written_bytes;
      return;
    }
    pass.written += usage.written_bytes;
    pass.live += usage.live_bytes;
    if (usage.number >= next_segment || retry_after_.contains(usage.number)) return;
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
  return pass;
}

bool SegmentCleaner::IsShort(const Pass& pass) const { return pass.dead < slack_bytes() && store_.IsShortOfSpace(); }

SegmentCleaner::Victim SegmentCleaner::VictimOf(const Pass& pass, const SegmentUsage& usage, bool is_short) const {
  return {.number = usage.number,
          .written_bytes = usage.written_bytes,
          .live_bytes = usage.live_bytes,
          .urgent = is_short || pass.written > 2 * pass.live + 2 * slack_bytes()};
}

std::optional<SegmentCleaner::Victim> SegmentCleaner::NextVictimOf(Pass* pass) {
  while (pass->written > pass->live + pass->live / 2 + slack_bytes()) {
    const std::optional<SegmentUsage> seen = pass->victims.Pop();
    if (!seen.has_value()) return std::nullopt;
    // Its parts may have died since the pass.
    const std::optional<SegmentUsage> usage = store_.UsageOf(seen->number);
    const uint64_t live = usage.has_value() ? usage->live_bytes : 0;
    DEUT_CHECK(live <= seen->live_bytes);
    pass->live -= seen->live_bytes - live;
    if (live != 0) return VictimOf(*pass, *usage, /*is_short=*/false);
    pass->written -= seen->written_bytes;
    pass->dead += seen->written_bytes;
  }
  return std::nullopt;
}

std::optional<SegmentCleaner::Victim> SegmentCleaner::ChooseVictim(uint64_t next_segment, Pass* pass) {
  // When the disk is short of space, every choice has a pass of its own: which segments are worth cleaning then depends
  // on all of them.
  if (!IsShort(*pass)) {
    if (std::optional<Victim> victim = NextVictimOf(pass)) return victim;
  }
  // The earlier pass has no victim left, or none is needed by its sums. Only a new one may end the cleaning.
  *pass = LookAtAll(next_segment);
  const bool is_short = IsShort(*pass);
  if (is_short && pass->best_when_short.number != 0) return VictimOf(*pass, pass->best_when_short, is_short);
  std::optional<Victim> victim = NextVictimOf(pass);
  if (victim.has_value()) victim->urgent = victim->urgent || is_short;
  return victim;
}

Status SegmentCleaner::CleanOne(const Victim& victim, Pass* pass) {
  DEUT_IN_FLIGHT("dc.cleaning");
  DEUT_CHECK(victim.number != 0 && victim.live_bytes > 0);
  if (rewriter_ == nullptr) {
    DEUT_ASSIGN_OR_RETURN(rewriter_, PageRewriter::Create(pages_, domain_, store_));
  }
  const Status copied = CopyLive(victim);
  NoteStatistics();
  domain_.Collect();
  DEUT_RETURN_IF_ERROR(store_.fatal());
  if (copied == ErrorCode::kResourceExhausted || copied == ErrorCode::kCancelled) return copied;
  if (!copied.ok() && copied != ErrorCode::kCorruption) {  // retried later; others may be readable now
    retry_after_[victim.number] = runtime_.Now() + kRetryAfter;
    return copied;
  }
  if (!copied.ok()) {
    LogError("a segment cannot be cleaned: ", copied.message());
    unreadable_.fetch_add(1, std::memory_order_relaxed);
    retry_after_[victim.number] = MonotonicTime::max();
    return Status::Ok();
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
    pass->written -= victim.written_bytes - std::min(victim.live_bytes, victim.written_bytes);
    pass->dead += victim.written_bytes;
  } else if (left == victim.live_bytes) {
    retry_after_[victim.number] = runtime_.Now() + kRetryAfter;
  }
  return Status::Ok();
}

Status SegmentCleaner::CopyLive(const Victim& victim) {
  PageRewriter& rewriter = *rewriter_;
  scanned_.fetch_add(victim.written_bytes, std::memory_order_relaxed);
  uint64_t before = rewriter.statistics().bytes_written;
  const auto write = [&]() -> Status {
    DEUT_RETURN_IF_ERROR(rewriter.Write());
    const uint64_t now = rewriter.statistics().bytes_written;
    DEUT_CHECK(now >= before);
    // The cleaner reads at least the bytes that it writes, and in addition the dead parts between them.
    const uint64_t copied = now - std::exchange(before, now);
    return Pace(copied + copied * victim.written_bytes / std::max<uint64_t>(victim.live_bytes, 1), victim.urgent);
  };
  DEUT_POINT("cleaner.before_scan");
  Status status = store_.ForEachPart(victim.number, [&](const PartView& part) -> Status {
    if (stop_.load(std::memory_order_relaxed)) return Ending();
    DEUT_RETURN_IF_ERROR(rewriter.Add(part));
    return rewriter.full() ? write() : Status::Ok();
  });
  // The segment was removed meanwhile, because its last part has died.
  if (status == ErrorCode::kNotFound) status = Status::Ok();
  // Parts that were read before the error are copied all the same.
  const Status written = write();
  return status.ok() ? written : status;
}

Status SegmentCleaner::Pace(uint64_t bytes, bool urgent) {
  // A long segment takes a while, so the disk may become short of space meanwhile.
  if (options_.bytes_per_second != 0 && !urgent && !store_.IsShortOfSpace()) {
    const MonotonicTime until =
        runtime_.Now() + std::chrono::microseconds(bytes * 1'000'000 / options_.bytes_per_second);
    for (;;) {
      const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
      if (stop_.load(std::memory_order_relaxed) || runtime_.Now() >= until) break;
      runtime_.Wait(wakes_, wakes, until);
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

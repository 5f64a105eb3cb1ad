#include "dc/scrubber/segment_scrubber.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/observe/log.h"

namespace deut::dc {
namespace {

// Bytes read between two waits.
constexpr uint64_t kStepBytes = 256 << 10;
// Damaged places that are remembered, so that each is reported once; a disk with more is lost anyway.
constexpr size_t kMaxReported = 4096;
constexpr size_t kMaxPagesInMessage = 8;
constexpr uint64_t kIdsPerGuard = 4096;

Status Ending() { return DEUT_ERROR(kCancelled, "the scrubber is ending"); }

}  // namespace

SegmentScrubber::SegmentScrubber(Runtime& runtime, const MappingTable& pages, ReclamationDomain& domain,
                                 SegmentStore& store, const ScrubberOptions& options, ScrubbedCheckpoints checkpoints)
    : runtime_(runtime),
      pages_(pages),
      domain_(domain),
      store_(store),
      options_(options),
      checkpoints_(std::move(checkpoints)),
      mutex_(runtime) {
  if (options.bytes_per_second != 0) thread_ = runtime.StartThread("dc-scrub", [this] { Run(); });
}

SegmentScrubber::~SegmentScrubber() {
  stop_.store(true, std::memory_order_seq_cst);
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wakes_);
  thread_.reset();
}

void SegmentScrubber::Run() {
  while (!stop_.load(std::memory_order_seq_cst)) {
    if (!Scrub().ok()) return;
    WaitUntil(runtime_.Now() + options_.pause);
  }
}

void SegmentScrubber::WaitUntil(MonotonicTime until) {
  for (;;) {
    const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
    if (stop_.load(std::memory_order_seq_cst) || runtime_.Now() >= until) return;
    runtime_.Wait(wakes_, wakes, until);
  }
}

Status SegmentScrubber::Pace(uint64_t bytes) {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (options_.bytes_per_second != 0) {
    WaitUntil(runtime_.Now() + std::chrono::microseconds(bytes * 1'000'000 / options_.bytes_per_second));
  }
  return stop_.load(std::memory_order_seq_cst) ? Ending() : Status::Ok();
}

Status SegmentScrubber::Scrub() {
  DEUT_CHECK(!domain_.guard_held());
  const MutexLock lock(mutex_);
  DEUT_RETURN_IF_ERROR(ScrubCheckpoints(
      checkpoints_.folder, [this](uint64_t bytes) { return Pace(bytes); },
      [this](CheckpointNumber number, const Status& damage)
          DEUT_REQUIRES(mutex_) { ReportCheckpoint(number, damage); }));
  for (const SegmentUsage& usage : store_.usage()) DEUT_RETURN_IF_ERROR(ScrubOne(usage));
  rounds_.fetch_add(1, std::memory_order_relaxed);
  return stop_.load(std::memory_order_seq_cst) ? Ending() : Status::Ok();
}

Status SegmentScrubber::ScrubOne(const SegmentUsage& usage) {
  const uint64_t segment = usage.number;
  const std::string name = SegmentName(usage.kind, segment);
  uint64_t paced = 0;
  uint64_t end = 0;
  const auto look = [&](const PartView& part) DEUT_REQUIRES(mutex_) -> Status {
    DEUT_CHECK(part.address.offset() >= end);  // ForEachPart visits parts in the order of their offsets
    end = part.address.offset() + PartBytesInUnits(part.payload.size());
    if (const auto content = UnpackPart(part, &content_, name); !content.ok()) {
      ReportDamage(segment, part.address.offset(), end, content.status());
    }
    if (end < paced + kStepBytes) return Status::Ok();
    // The file of a segment that was removed meanwhile takes room on the disk until the scrubber closes it.
    if (!store_.UsageOf(segment).has_value()) return DEUT_ERROR(kNotFound, "segment ", segment, " was removed");
    return Pace(end - std::exchange(paced, end));
  };
  const auto damage = [&](const DamagedParts& parts) DEUT_REQUIRES(mutex_) -> Status {
    ReportDamage(segment, parts.begin, parts.end, parts.status);
    end = parts.end;
    return Status::Ok();
  };
  Status scanned = store_.ForEachPart(segment, look, damage);
  DEUT_RETURN_IF_ERROR(store_.fatal());
  if (scanned == ErrorCode::kCancelled) return scanned;
  // A segment that was removed meanwhile needs no check. A shortage of file descriptors says nothing about the disk:
  // the next round reads the segment.
  if (!scanned.ok() && scanned != ErrorCode::kNotFound && scanned != ErrorCode::kResourceExhausted)
    ReportDamage(segment, end, UINT64_MAX, scanned);
  DEUT_CHECK(end >= paced);
  return Pace(end - paced);
}

void SegmentScrubber::ReportCheckpoint(CheckpointNumber number, const Status& damage) {
  checkpoints_.on_damaged_checkpoint();
  const bool full = reported_checkpoints_.size() >= kMaxReported;
  if (full || !reported_checkpoints_.emplace(damage.message()).second) return;
  errors_.fetch_add(1, std::memory_order_relaxed);
  LogError("checkpoint ", number.value, " is damaged, found by scrubbing: ", damage.message(),
           "; the next two checkpoints are complete ones, and need no file of it; what to do: look at the disk, stop ",
           "the data component and run `deut dc verify` on its directory");
}

void SegmentScrubber::ReportDamage(uint64_t segment, uint64_t begin, uint64_t end, const Status& damage) {
  if (reported_.size() >= kMaxReported || !reported_.emplace(segment, begin).second) return;
  errors_.fetch_add(1, std::memory_order_relaxed);
  LogError("damage in the page store, segment ", segment, ", found by scrubbing: ", damage.message(), "; ",
           PagesIn(segment, begin, end),
           "; what to do: look at the disk, stop the data component and run `deut dc verify` on its directory");
}

std::string SegmentScrubber::PagesIn(uint64_t segment, uint64_t begin, uint64_t end) const {
  std::string pages;
  size_t count = 0;
  // One guard for kIdsPerGuard ids: a guard over all ids would keep retired memory for too long.
  for (uint64_t first = 1; first <= pages_.last_id(); first += kIdsPerGuard) {
    const ReclamationDomain::Guard guard(domain_);
    for (uint64_t number = first; number < std::min(first + kIdsPerGuard, pages_.last_id() + 1); ++number) {
      const PageId id(static_cast<uint32_t>(number));
      if (!pages_.HasImage(id)) continue;
      const ImageParts parts = pages_.Image(id);
      for (const PageAddress part : parts.all()) {
        if (part.segment() != segment || part.offset() < begin || part.offset() >= end) continue;
        if (++count <= kMaxPagesInMessage) ConcatTo(&pages, count == 1 ? "" : ", ", id.value);
      }
    }
  }
  if (count == 0) return "no page's image lies there now";
  return Concat("the image on disk of ", count, count == 1 ? " page" : " pages", " lies there: ", pages,
                count > kMaxPagesInMessage ? ", ..." : "");
}

ScrubberStatistics SegmentScrubber::statistics() const {
  return {.rounds = rounds_.load(std::memory_order_relaxed),
          .bytes = bytes_.load(std::memory_order_relaxed),
          .errors = errors_.load(std::memory_order_relaxed)};
}

}  // namespace deut::dc

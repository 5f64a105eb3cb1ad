#include "tc/dc_link/redo_start_mover.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace deut::tc {
namespace {

// Granularity of the redo start.
constexpr uint64_t kGranularityBytes = 1 << 20;

}  // namespace

RedoStartMover::RedoStartMover(RedoLog& log, const ActiveFloorSource& active_floor, const DcLinkOptions& options)
    : log_(log),
      active_floor_(active_floor),
      options_(options),
      tracker_(std::min(kGranularityBytes, options.redo_start_bytes)) {}

Status RedoStartMover::Begin(MonotonicTime now) {
  if (tracker_.begun() || now < next_) return Status::Ok();
  next_ = now + options_.redo_start_period;
  DEUT_RETURN_IF_ERROR(log_.TrimKeptForOutcomes(kNoDeadline));
  // The order of these two is the rule (redo_start_tracker.h).
  const Lsn floor = active_floor_.OldestFirstRecord();
  tracker_.Begin(floor, log_.tail());
  return Status::Ok();
}

Status RedoStartMover::Finish(Lsn read_up_to, const DcPosition& stable) {
  const std::optional<Lsn> lsn = tracker_.Finish(read_up_to, stable.stable);
  if (!lsn || lsn->value < log_.redo_start().lsn.value + options_.redo_start_bytes) return Status::Ok();
  return log_.AdvanceRedoStart(RedoStart{*lsn, {stable}}, kNoDeadline);
}

}  // namespace deut::tc

#include "tc/dc_link/redo_start_tracker.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

// True if all updates of the commit are at or before the position.
bool Covers(Position position, Lsn commit) { return position >= Position{commit, UINT32_MAX}; }

}  // namespace

void RedoStartTracker::ReportsFrom(Position position) {
  if (!reports_from_) reports_from_ = position;
}

void RedoStartTracker::OnCommitRead(Lsn commit, Lsn first) {
  DEUT_DCHECK(first <= commit);
  if (commit <= last_reported_) return;
  last_reported_ = commit;
  // A transaction's first record counts, not its commit record: its chunks are resent from there.
  const Lsn lowest = DEUT_OMITTED("S2.first_record") ? commit : first;
  if (!intervals_.empty() && lowest.value <= intervals_.back().first.value + granularity_bytes_) {
    intervals_.back().last_commit = commit;
    intervals_.back().first = std::min(intervals_.back().first, lowest);
    return;
  }
  intervals_.push_back(CommitInterval{commit, lowest});
}

void RedoStartTracker::Begin(Lsn floor, Lsn tail_afterwards) {
  DEUT_CHECK(!begun());
  DEUT_CHECK(floor <= tail_afterwards);  // the floor is bounded by an earlier tail
  floor_ = DEUT_OMITTED("S2.active_floor") ? tail_afterwards : floor;
  tail_ = tail_afterwards;
}

std::optional<Lsn> RedoStartTracker::Finish(Lsn read_up_to, Position stable) {
  if (!tail_) return std::nullopt;
  if (read_up_to < *tail_ && DEUT_STEP("S2.read_to_tail")) return std::nullopt;
  tail_.reset();
  if (!reports_from_ || stable < *reports_from_) return std::nullopt;
  while (!intervals_.empty() && Covers(stable, intervals_.front().last_commit)) intervals_.pop_front();
  // Commits up to here may just have been dropped, and are not reported twice. If the DC comes back with a lower stable
  // position, because its folder was put back from a copy, the log must be kept for it until they are stable again.
  reports_from_ = std::max(*reports_from_, stable);
  Lsn lowest = floor_;
  for (const CommitInterval& interval : intervals_) lowest = std::min(lowest, interval.first);
  return lowest;
}

}  // namespace deut::tc

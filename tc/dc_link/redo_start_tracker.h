// RedoStartTracker: computes the redo start (rule S2). It is the lowest first-record LSN of any transaction that is
// active, or whose commit lies beyond the DC's stable position. The log below it may be trimmed.
//
// The race. A transaction that ends during the computation must be found among the active ones or among the commits.
// Steps:
//   Begin    (1) floor = OldestFirstRecord() (itself: tail first, then the active ones); (2) tail = the log's tail
//   Finish   only when every commit record below `tail` has been reported by OnCommitRead
//   Assume a transaction with a record below `floor` that (1) did not find active. It had reserved its commit LSN
//   before it left the active ones, so below `tail`: it has been reported. (Or it never commits, and its records are
//   not needed.) A transaction that began after (1) lies above the floor. So min(floor, first LSNs of the reported
//   commits beyond stable) is a lower bound of the needed log, for good.
//
// An entry stands for consecutive commits whose first records lie close together. It is dropped when its last commit
// is stable. That keeps a little more log than needed, and one entry per `granularity_bytes` of log.
// Thread-safety: one thread. Ownership: owns its entries.
#ifndef TC_DC_LINK_REDO_START_TRACKER_H_
#define TC_DC_LINK_REDO_START_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "common/base/ids.h"

namespace deut::tc {

class RedoStartTracker {
 public:
  explicit RedoStartTracker(uint64_t granularity_bytes) : granularity_bytes_(granularity_bytes) {}

  // Commits beyond `position` will be reported, in order. Commits that the DC holds as applied but not stable at the
  // first Hello are not reported: until they are stable, the redo start stays where it is. Only the first call
  // counts. The same holds for commits that were stable and are so no longer, because the DC's folder was put back from
  // a copy.
  void ReportsFrom(Position position);

  // The commit record at `commit` was read; its transaction's first record is at `first`, which is at or before it.
  // Repeated reports are ignored.
  void OnCommitRead(Lsn commit, Lsn first);

  // REQUIRES: no computation is under way; the tail was loaded after the floor.
  void Begin(Lsn floor, Lsn tail_afterwards);
  bool begun() const { return tail_.has_value(); }
  // Returns the redo start, if Begin was called, every record below its tail has been read, and the stable position
  // allows one. Ends the computation when it has an answer or can have none.
  std::optional<Lsn> Finish(Lsn read_up_to, Position stable);

  size_t entries() const { return intervals_.size(); }

 private:
  struct CommitInterval {
    Lsn last_commit;
    Lsn first;  // the lowest first record of its commits
  };

  const uint64_t granularity_bytes_;
  std::optional<Position> reports_from_;  // commits up to here may be missing in intervals_
  std::deque<CommitInterval> intervals_;
  Lsn last_reported_;
  Lsn floor_;
  std::optional<Lsn> tail_;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_REDO_START_TRACKER_H_

// RedoStartMover: computes the redo start from time to time, and logs it when it has advanced far enough (rule S2).
// redo_start_tracker.h has the race that a computation must not lose.
// Thread-safety: one thread. Ownership: owns the tracker; log, source and options outlive it.
// Errors: those of the log.
#ifndef TC_DC_LINK_REDO_START_MOVER_H_
#define TC_DC_LINK_REDO_START_MOVER_H_

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/time.h"
#include "tc/dc_link/active_floor_source.h"
#include "tc/dc_link/dc_link_options.h"
#include "tc/dc_link/redo_start_tracker.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class RedoStartMover {
 public:
  RedoStartMover(RedoLog& log, const ActiveFloorSource& active_floor, const DcLinkOptions& options);

  // Commits are reported to it as they are read from the log.
  RedoStartTracker& tracker() { return tracker_; }

  // Begins a computation, unless one is under way or the last one began less than redo_start_period ago. Also trims
  // what the log kept for outcomes.
  Status Begin(MonotonicTime now);
  // Every record below `read_up_to` has been reported, if it is a commit. Ends the computation if that is far enough.
  // Logs the redo start with the DC's stable position if it has advanced by redo_start_bytes.
  Status Finish(Lsn read_up_to, const DcPosition& stable);

 private:
  RedoLog& log_;
  const ActiveFloorSource& active_floor_;
  const DcLinkOptions& options_;
  RedoStartTracker tracker_;
  MonotonicTime next_{};
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_REDO_START_MOVER_H_

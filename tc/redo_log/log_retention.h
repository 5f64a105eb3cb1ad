// LogRetention: decides from where the log is kept: from the redo start on (S2), and before it for the ids of commits,
// for at most keep_time and at most keep_bytes of files. A full disk ends the latter.
//
// States of a redo start: appended (AppendRedoStart) -> durable (NoteDurable, once its record is). Only a durable one
// allows a cut. Both only rise: a later one may be noted first, and an earlier one then changes nothing.
// Thread-safety: any thread. The mutex is held while a record is appended, never over input or output. No commit takes
// it. Ownership: all constructor arguments outlive it.
#ifndef TC_REDO_LOG_LOG_RETENTION_H_
#define TC_REDO_LOG_LOG_RETENTION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "tc/log_format/log_record.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/segment_set.h"
#include "tc/redo_log/watermarks.h"

namespace deut::tc {

// See RedoLogOptions.
struct LogRetentionOptions {
  Duration keep_time{0};
  uint64_t keep_bytes = 0;
  uint64_t segment_bytes = 0;
};

class LogRetention {
 public:
  // `recovered`: the redo start that the recovered log says.
  LogRetention(const LogRetentionOptions& options, Runtime& runtime, LogRing& ring, SegmentSet& segments,
               Watermarks& watermarks, RedoStart recovered);

  // Appends the record and returns its LSN. INVALID_ARGUMENT: the redo start goes back, lies beyond the durable log, or
  // names more than kMaxKnownDcs positions.
  Result<Lsn> AppendRedoStart(const RedoStart& redo_start);
  // The record of `redo_start` is durable.
  void NoteDurable(const RedoStart& redo_start);
  RedoStart redo_start() const;  // the last durable one

  // Returns the LSN below which no record is needed any more. It is at most the redo start.
  Lsn CutNow();

  // As RedoLog::set_before_trim.
  void set_before_trim(std::function<Timestamp(Lsn cut)> before_trim) { before_trim_ = std::move(before_trim); }
  // Returns the outcome horizon to be logged before the log is cut. 0: none.
  Timestamp HorizonBeforeTrim(Lsn cut) const { return before_trim_ ? before_trim_(cut) : Timestamp{0}; }

 private:
  // The log's tail at past times, for keep_time.
  struct TailAt {
    MonotonicTime at;
    Lsn lsn;
  };

  const LogRetentionOptions options_;
  Runtime& runtime_;
  LogRing& ring_;
  SegmentSet& segments_;
  Watermarks& watermarks_;
  std::function<Timestamp(Lsn cut)> before_trim_;
  mutable Mutex mutex_;
  RedoStart durable_ DEUT_GUARDED_BY(mutex_);
  RedoStart appended_ DEUT_GUARDED_BY(mutex_);
  std::deque<TailAt> tails_ DEUT_GUARDED_BY(mutex_);
  Lsn keep_from_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOG_RETENTION_H_

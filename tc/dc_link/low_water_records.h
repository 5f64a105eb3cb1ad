// LowWaterRecords: when a LOW_WATER record is appended to the redo log (rule X1). One is wanted once per stream start, and whenever low-water
// has passed a commit that the last one did not cover; at most one per period of time or stretch of log. A quiet system so gets
// exactly one after its last commit, and then none. They travel to the DC in their place of the log, read back like everything else.
// Thread-safety: one thread.
#ifndef TC_DC_LINK_LOW_WATER_RECORDS_H_
#define TC_DC_LINK_LOW_WATER_RECORDS_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/ids.h"
#include "common/runtime/time.h"
#include "tc/dc_link/low_water_source.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

class LowWaterRecords {
 public:
  LowWaterRecords(RedoLog& log, const LowWaterSource& source, Duration period, uint64_t log_bytes)
      : log_(log), source_(source), period_(period), log_bytes_(log_bytes) {}

  void OnStreamStart() { stream_started_ = true; }
  // A commit of this timestamp was handed on for shipping; low-water has passed it (S1).
  void OnShipped(Timestamp timestamp) { highest_shipped_ = std::max(highest_shipped_, timestamp); }

  bool wanted() const { return stream_started_ || (highest_shipped_ >= last_ && highest_shipped_.value != 0); }
  // When a wanted one may be appended, if the log does not grow meanwhile.
  MonotonicTime not_before() const { return next_; }

  // Appends one if it is wanted and may be appended now.
  struct Appended {
    Lsn lsn;
    Timestamp low_water;
  };
  std::optional<Appended> MaybeAppend(MonotonicTime now) {
    if (!wanted()) return std::nullopt;
    if (now < next_ && log_.tail().value < next_tail_) return std::nullopt;
    // Read before the append: every commit below it has its LSN reserved, so precedes the record in the log (L1).
    const Timestamp low_water = source_.low_water();
    const AppendResult appended = log_.AppendLowWater(low_water);
    last_ = low_water;
    stream_started_ = false;
    next_ = now + period_;
    next_tail_ = appended.end.value + log_bytes_;
    return Appended{appended.lsn, low_water};
  }

 private:
  RedoLog& log_;
  const LowWaterSource& source_;
  const Duration period_;
  const uint64_t log_bytes_;
  bool stream_started_ = false;
  Timestamp highest_shipped_;
  Timestamp last_;  // L of the last record appended by this object: covers timestamps below it
  MonotonicTime next_{};
  uint64_t next_tail_ = 0;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_LOW_WATER_RECORDS_H_

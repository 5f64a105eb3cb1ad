// LowWaterRecords: decides when a low-water record is due (X1). It is due when low-water has passed a commit that the
// last record did not cover, but at most every 10 ms or 1 MiB of log. So exactly one record follows the last commit
// of a system that has gone quiet, and then none.
// A record L covers a commit c if c < L: all commits below L precede the record in the log.
// Thread-safety: NoteCommit from any thread, latch-free; the rest by one thread (the low-water thread).
// A commit is noted before it leaves the transactions that hold low-water back. So low-water cannot pass a commit
// that was not noted.
#ifndef TC_REDO_LOG_LOW_WATER_RECORDS_H_
#define TC_REDO_LOG_LOW_WATER_RECORDS_H_

#include <atomic>
#include <cstdint>

#include "common/base/ids.h"
#include "common/runtime/time.h"
#include "common/testing/test_points.h"

namespace deut::tc {

class LowWaterRecords {
 public:
  static constexpr Duration kInterval = milliseconds(10);
  static constexpr uint64_t kLogBytes = uint64_t{1} << 20;

  // Notes that a commit with updates and this timestamp was appended.
  void NoteCommit(Timestamp timestamp) {
    uint64_t highest = highest_commit_.load(std::memory_order_seq_cst);
    while (highest < timestamp.value) {
      DEUT_POINT("redo_log.low_water.before_cas");
      if (DEUT_CAS_FAILS("redo_log.low_water.cas")) {
        highest = highest_commit_.load(std::memory_order_seq_cst);
        continue;
      }
      if (highest_commit_.compare_exchange_weak(highest, timestamp.value, std::memory_order_seq_cst)) break;
    }
  }

  // True if a record with `low_water` should be appended now, with the log's tail at `tail`.
  bool Due(Timestamp low_water, Lsn tail, MonotonicTime now) const {
    if (low_water <= last_ || highest_commit_.load(std::memory_order_seq_cst) < last_.value) return false;
    return now >= last_time_ + kInterval || tail.value >= last_tail_.value + kLogBytes;
  }

  // Notes that a record was appended, because it was due or because a stream to a DC started.
  void Appended(Timestamp low_water, Lsn tail, MonotonicTime now) {
    last_ = low_water;
    last_tail_ = tail;
    last_time_ = now;
  }

  // True if a record will be due later even without another commit. The low-water thread then continues its rounds.
  bool Pending() const { return highest_commit_.load(std::memory_order_seq_cst) >= last_.value; }

 private:
  // No transaction has timestamp 0, so no record is due for an empty log.
  std::atomic<uint64_t> highest_commit_{0};
  Timestamp last_{1};
  Lsn last_tail_;
  MonotonicTime last_time_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOW_WATER_RECORDS_H_

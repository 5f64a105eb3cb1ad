// LowWaterRecords: when a low-water record is due (X1): when low-water has passed a commit that the last record did not cover, at most every
// 10 ms or 1 MiB of log; so exactly one follows the last commit of a system that has gone quiet, and then none.
// A commit c is covered by a record L if c < L: all commits below L precede the record in the log.
// Thread-safety: NoteCommit from any thread, latch-free; the rest by one thread (the low-water thread). A commit is noted before it leaves
// the transactions that hold low-water back, so that low-water cannot pass one that was not noted.
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

  // A commit with this timestamp, with updates, was appended.
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

  // One was appended (because it was due, or because a stream to a DC started).
  void Appended(Timestamp low_water, Lsn tail, MonotonicTime now) {
    last_ = low_water;
    last_tail_ = tail;
    last_time_ = now;
  }

  // True if a record will be due later though nothing more is committed: the low-water thread goes on with its rounds.
  bool Pending() const { return highest_commit_.load(std::memory_order_seq_cst) >= last_.value; }

 private:
  // Timestamp 0 is nobody's, so an empty log owes no record.
  std::atomic<uint64_t> highest_commit_{0};
  Timestamp last_{1};
  Lsn last_tail_;
  MonotonicTime last_time_;
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_LOW_WATER_RECORDS_H_

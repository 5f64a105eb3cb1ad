// TimestampReservation: decides which timestamps may be drawn (D3). The log reserves timestamps durably, in blocks,
// before any of a block is drawn. A restart begins above the highest reservation, so no two transactions ever have
// the same timestamp.
// The first thread with a timestamp beyond the last block appends the next reservation. It and all others with such a
// timestamp wait until that record is durable. A block has so many timestamps (RedoLogOptions::timestamp_block) that
// these waits do not count.
// Thread-safety: Ensure from any thread; one load while the block lasts. The lock is held to append, never while the
// log writes. Ownership: runtime, ring and writer outlive it.
#ifndef TC_REDO_LOG_TIMESTAMP_RESERVATION_H_
#define TC_REDO_LOG_TIMESTAMP_RESERVATION_H_

#include <atomic>
#include <cstdint>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/log_writer.h"

namespace deut::tc {

class TimestampReservation {
 public:
  // Everything below `durable_below` is reserved.
  TimestampReservation(Runtime& runtime, LogRing& ring, LogWriter& writer, uint64_t block, Timestamp durable_below)
      : runtime_(runtime),
        ring_(ring),
        writer_(writer),
        block_(block),
        durable_(durable_below.value),
        mutex_(runtime),
        appended_below_(durable_below) {}

  // As RedoLog::EnsureReserved.
  Status Ensure(Timestamp timestamp, Deadline deadline) {
    if (timestamp < durable_below()) [[likely]]
      return Status::Ok();
    return Reserve(timestamp, deadline);
  }

  // All timestamps below it are durably reserved.
  Timestamp durable_below() const { return Timestamp{durable_.load(std::memory_order_seq_cst)}; }

 private:
  Status Reserve(Timestamp timestamp, Deadline deadline);

  Runtime& runtime_;
  LogRing& ring_;
  LogWriter& writer_;
  const uint64_t block_;
  std::atomic<uint64_t> durable_;  // only rises
  Mutex mutex_;
  Timestamp appended_below_ DEUT_GUARDED_BY(mutex_);  // the limit in the last record
  Lsn appended_ DEUT_GUARDED_BY(mutex_);              // where that record is
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_TIMESTAMP_RESERVATION_H_

// TimestampReservation: decides which timestamps may be drawn (D3). The log reserves timestamps durably, in blocks,
// before any of a block is drawn. A restart begins above the highest reservation, so no two transactions ever have
// the same timestamp.
//
// States
//   durable == requested: no reservation is in flight
//   requested = durable + block: by compare-and-swap. The winner appends the record and registers itself; the losers
//   have nothing to do
//   durable = requested: by the log thread
// The next block is requested when half of the last one is used.
// Thread-safety: Ensure from any thread, latch-free. It waits only when the log is slower than half a block of
// timestamps. Ownership: runtime, ring and writer outlive it.
#ifndef TC_REDO_LOG_TIMESTAMP_RESERVATION_H_
#define TC_REDO_LOG_TIMESTAMP_RESERVATION_H_

#include <atomic>
#include <cstdint>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "tc/redo_log/durability_callback.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/log_writer.h"

namespace deut::tc {

class TimestampReservation final : private DurabilityCallback {
 public:
  // Everything below `durable_limit` is reserved.
  TimestampReservation(Runtime& runtime, LogRing& ring, LogWriter& writer, uint64_t block, Timestamp durable_limit)
      : runtime_(runtime),
        ring_(ring),
        writer_(writer),
        block_(block),
        durable_(durable_limit.value),
        requested_(durable_limit.value) {}

  // As RedoLog::EnsureReserved.
  Status Ensure(Timestamp timestamp, Deadline deadline) {
    if (timestamp.value + block_ / 2 < durable_.load(std::memory_order_seq_cst)) [[likely]]
      return Status::Ok();
    return EnsureSlowly(timestamp, deadline);
  }

  // All timestamps below it are durably reserved.
  Timestamp durable_below() const { return Timestamp{durable_.load(std::memory_order_seq_cst)}; }

 private:
  Status EnsureSlowly(Timestamp timestamp, Deadline deadline);
  void Request(uint64_t limit);
  void OnDurable(const Status& status) override;

  Runtime& runtime_;
  LogRing& ring_;
  LogWriter& writer_;
  const uint64_t block_;
  std::atomic<uint64_t> durable_;
  std::atomic<uint64_t> requested_;
  std::atomic<uint32_t> changed_{0};  // futex word: raised with every answer of the log
  std::atomic<bool> failed_{false};
  Status failure_;  // written before failed_ is set
};

}  // namespace deut::tc

#endif  // TC_REDO_LOG_TIMESTAMP_RESERVATION_H_

#include "tc/redo_log/timestamp_reservation.h"

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/log_format/record_codec.h"

namespace deut::tc {

Status TimestampReservation::EnsureSlowly(Timestamp timestamp, Deadline deadline) {
  for (;;) {
    const uint32_t seen = changed_.load(std::memory_order_seq_cst);
    const uint64_t limit = durable_.load(std::memory_order_seq_cst);
    DEUT_DCHECK(limit <= requested_.load(std::memory_order_seq_cst));
    if (timestamp.value + block_ / 2 >= limit) Request(limit);
    if (timestamp.value < limit || DEUT_OMITTED("D3.reserve_first")) return Status::Ok();
    if (failed_.load(std::memory_order_seq_cst)) return failure_;
    if (!runtime_.Wait(changed_, seen, deadline)) {
      return DEUT_ERROR(kDeadlineExceeded, "the reservation of timestamps from ", limit, " on is not durable yet");
    }
  }
}

void TimestampReservation::Request(uint64_t limit) {
  for (;;) {
    uint64_t expected = requested_.load(std::memory_order_seq_cst);
    if (expected != limit) return;  // a reservation is in flight already
    DEUT_POINT("redo_log.reservation.before_cas");
    if (!DEUT_CAS_FAILS("redo_log.reservation.cas") &&
        requested_.compare_exchange_strong(expected, limit + block_, std::memory_order_seq_cst)) {
      break;
    }
  }
  const Lsn lsn = ring_.AppendOwn(RecordType::kReserveTimestamps, EncodeTimestampBody(Timestamp(limit + block_)));
  if (writer_.NotifyWhenDurable(lsn, this, Urgency::kUrgent)) OnDurable(Status::Ok());
}

void TimestampReservation::OnDurable(const Status& status) {
  if (status.ok()) {
    const uint64_t limit = requested_.load(std::memory_order_seq_cst);
    // One reservation is in flight at a time, so the record that is durable now is the one that was requested last.
    DEUT_CHECK(limit == durable_.load(std::memory_order_seq_cst) + block_);
    durable_.store(limit, std::memory_order_seq_cst);
  } else {
    failure_ = status;
    failed_.store(true, std::memory_order_seq_cst);
  }
  changed_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(changed_);
}

}  // namespace deut::tc

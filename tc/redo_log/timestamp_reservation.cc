#include "tc/redo_log/timestamp_reservation.h"

#include "common/sync/raise_to.h"
#include "common/testing/test_points.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/blocking_durability_wait.h"

namespace deut::tc {

Status TimestampReservation::Reserve(Timestamp timestamp, Deadline deadline) {
  Timestamp limit;
  Lsn lsn;
  {
    MutexLock lock(mutex_);
    if (timestamp >= appended_below_) {
      DEUT_POINT("redo_log.reservation.before_append");
      appended_below_ = Timestamp(timestamp.value + block_);
      appended_ = ring_.AppendOwn(RecordType::kReserveTimestamps, EncodeTimestampBody(appended_below_));
    }
    limit = appended_below_;
    lsn = appended_;
  }
  const bool waits = DEUT_STEP("D3.reserve_first");
  const Status durable =
      BlockingDurabilityWait(runtime_, writer_, Urgency::kUrgent).Wait(lsn, waits ? deadline : runtime_.Now());
  if (!durable.ok()) return waits ? durable : Status::Ok();
  RaiseTo(durable_, limit.value);  // another thread may have waited for a later record meanwhile
  return Status::Ok();
}

}  // namespace deut::tc

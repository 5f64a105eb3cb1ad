#include "dc/server/apply_stream.h"

#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {

ApplyStream::ApplyStream(const ApplyEnvironment& environment, const Sender& sender, ApplyLogListener* listener)
    : environment_(environment),
      sender_(sender),
      listener_(listener),
      gate_(environment.runtime),
      mutex_(environment.runtime) {
  gate_.Open();
}

Status ApplyStream::Send(const LogBatch& batch) {
  Status status;
  {
    const CallDrain::Call call(gate_);
    if (!call.entered()) {
      // After a Pause, Close sets the reason, and Close always follows. So a fenced TC gets that error and no other.
      const MutexLock lock(mutex_);
      while (!closed_) closed_now_.Wait(mutex_);
      DEUT_CHECK(!reason_.ok());
      return reason_;
    }
    status = Apply(batch);
  }
  if (!status.ok()) Close(status);
  return status;
}

Status ApplyStream::Apply(const LogBatch& batch) {
  const Fencing::Admission admission(environment_.fencing, sender_);
  DEUT_RETURN_IF_ERROR(admission.status());
  DEUT_RETURN_IF_ERROR(batch.Validate());
  environment_.on_log_durable(batch.durable);
  const Position applied = environment_.applied.load();
  if (batch.from > applied && DEUT_STEP("X5.no_gap")) {
    return DEUT_ERROR(kPositionGap, "the batch starts at (", batch.from.commit.value, ", ", batch.from.sequence,
                      "), applied is (", applied.commit.value, ", ", applied.sequence, ")");
  }
  DEUT_POINT("dc.apply.before_batch");
  DEUT_RETURN_IF_ERROR(environment_.records.operations().ApplyBatch(batch, applied));
  // The position moves after the updates: a checkpoint that reads it finds every update up to it in the trees (X6).
  environment_.applied.Advance(batch.to);
  ApplyAck ack;
  ack.incarnation = environment_.fencing.incarnation();
  ack.applied = environment_.applied.load();
  DEUT_CHECK(ack.applied >= batch.to);
  ack.stable = environment_.records.stable();
  // The stable position was read first: both only rise. (X6: a checkpoint's position is one that was applied.)
  DEUT_CHECK(ack.stable <= environment_.applied.load());
  ack.free_bytes = environment_.free_bytes();
  environment_.on_applied(ack.applied);
  listener_->OnAck(ack);
  return Status::Ok();
}

void ApplyStream::Close(const Status& reason) {
  DEUT_CHECK(!reason.ok());
  const MutexLock lock(mutex_);
  if (closed_) return;
  gate_.Close();
  closed_ = true;
  reason_ = reason;
  closed_now_.NotifyAll(environment_.runtime);
  listener_->OnClosed(reason);
}

ApplyStreamHandle::ApplyStreamHandle(std::shared_ptr<ApplyStream> stream) : stream_(std::move(stream)) {}

ApplyStreamHandle::~ApplyStreamHandle() {
  stream_->Close(DEUT_ERROR(kCancelled, "the log stream was closed by its owner"));
}

Status ApplyStreamHandle::Send(const LogBatch& batch, Deadline /*deadline*/) { return stream_->Send(batch); }

}  // namespace deut::dc

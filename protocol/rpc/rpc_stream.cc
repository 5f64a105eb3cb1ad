#include "protocol/rpc/rpc_stream.h"

#include "common/base/check.h"
#include "protocol/rpc/rpc_status.h"

namespace deut {

RpcStreamBase::~RpcStreamBase() { DEUT_CHECK(!open_); }

void* RpcStreamBase::Begin(Operation operation) {
  state_.fetch_or(operation, std::memory_order_relaxed);
  Event* event = &start_;
  if (operation == kRead) event = &read_;
  if (operation == kWrite) event = &write_;
  if (operation == kFinish) event = &finish_;
  return static_cast<RpcEvent*>(event);
}

void RpcStreamBase::Ended(Operation operation, bool ok) {
  Runtime& runtime = runtime_;
  if (!ok) state_.fetch_or(operation << kFailedShift, std::memory_order_relaxed);
  const uint32_t before = state_.fetch_and(~(operation | kSleeps), std::memory_order_acq_rel);
  if ((before & kSleeps) != 0) runtime.WakeAll(state_);
}

RpcStreamBase::Outcome RpcStreamBase::Await(Operation operation, Deadline deadline) {
  if (outstanding(operation)) spin_.Find(runtime_, deadline, [&] { return !outstanding(operation); });
  uint32_t state = state_.load(std::memory_order_acquire);
  while ((state & operation) != 0) {
    if ((state & kSleeps) == 0) {
      if (!state_.compare_exchange_weak(state, state | kSleeps, std::memory_order_acquire)) continue;
      state |= kSleeps;
    }
    const bool in_time = runtime_.Wait(state_, state, deadline);
    state = state_.load(std::memory_order_acquire);
    if (!in_time && (state & operation) != 0) return Outcome::kTimeout;
  }
  return (state & (operation << kFailedShift)) != 0 ? Outcome::kFailed : Outcome::kDone;
}

// Once one operation of a call has failed, the call is over, so the others end at once. If one does not, this cancels
// the call.
void RpcStreamBase::Settle(Operation operation) {
  if (Await(operation, runtime_.Now() + seconds(1)) != Outcome::kTimeout) return;
  context_.TryCancel();
  Await(operation, kNoDeadline);
}

void RpcStreamBase::Break(Status reason) {
  if (!open_) return;
  open_ = false;
  for (const Operation operation : {kStart, kRead, kWrite}) Settle(operation);
  grpc::Status end;
  StartFinish(&end);
  Settle(kFinish);
  nothing_run_ = context_.GetServerTrailingMetadata().count(kNothingRunKey) != 0;
  status_ = reason.ok() ? peer_->FromRpc(end) : std::move(reason);
  if (status_.ok()) status_ = DEUT_ERROR(kUnavailable, peer_->name(), " has ended the stream");
}

void RpcStreamBase::Close() {
  if (!open_) return;
  context_.TryCancel();
  Break(DEUT_ERROR(kCancelled, "closed by this side"));
}

Status RpcStreamBase::TimedOut(const char* what) const {
  return DEUT_ERROR(kDeadlineExceeded, "the deadline passed while ", what, " (", peer_->name(), ")");
}

}  // namespace deut

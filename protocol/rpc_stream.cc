#include "protocol/rpc_stream.h"

#include "common/base/check.h"
#include "protocol/rpc_status.h"

namespace deut {

RpcStreamBase::~RpcStreamBase() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

RpcStreamBase::Outcome RpcStreamBase::Await(Operation operation, Deadline deadline) {
  while (outstanding(operation)) {
    void* tag = nullptr;
    bool ok = false;
    switch (queue_.AsyncNext(&tag, &ok, ToRpcTime(runtime_, deadline))) {
      case grpc::CompletionQueue::TIMEOUT:
        return Outcome::kTimeout;
      case grpc::CompletionQueue::SHUTDOWN:
        DEUT_CHECK(false);  // only the destructor shuts the queue down
        break;
      case grpc::CompletionQueue::GOT_EVENT: {
        const auto done = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(tag));
        outstanding_ &= ~done;
        if (!ok) failed_ |= done;
        break;
      }
    }
  }
  return (failed_ & operation) != 0 ? Outcome::kFailed : Outcome::kDone;
}

// A call of which one operation has failed is over, so the others end at once; should one not, the call is cancelled.
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
  Begin(kFinish);
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

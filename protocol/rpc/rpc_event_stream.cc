#include "protocol/rpc/rpc_event_stream.h"

#include "common/base/check.h"

namespace deut {

void RpcEventStreamBase::Stop() {
  stop_.store(true, std::memory_order_seq_cst);
  MutexLock lock(mutex_);
  if (context_ != nullptr) context_->TryCancel();
}

grpc::Status RpcEventStreamBase::Run(grpc::ClientContext* context,
                                     absl::FunctionRef<void(grpc::ClientContext* context)> prepare) {
  {
    MutexLock lock(mutex_);
    context_ = context;
    reading_ = writing_ = ended_ = false;
  }
  if (stopping()) context->TryCancel();  // else Stop finds the context and cancels it
  prepare(context);
  over_.Reset();
  StartCall(&started_);
  over_.Wait(runtime_, kNoDeadline);
  grpc::Status end;
  over_.Reset();
  StartFinish(&end, &finished_);
  over_.Wait(runtime_, kNoDeadline);
  MutexLock lock(mutex_);
  context_ = nullptr;
  return end;
}

void RpcEventStreamBase::SignalIfOverLocked() {
  if (ended_ && !reading_ && !writing_) over_.Signal(runtime_);
}

void RpcEventStreamBase::EndLocked() {
  if (ended_) return;
  ended_ = true;
  writing_ = StopWritingLocked();
}

void RpcEventStreamBase::Started(bool ok) {
  MutexLock lock(mutex_);
  if (!ok) {
    ended_ = true;  // nothing has been written, and nothing will be
    return SignalIfOverLocked();
  }
  reading_ = true;
  OnOpenLocked();
  StartRead(&read_);
}

void RpcEventStreamBase::Read(bool ok) {
  if (ok && OnRead()) return StartRead(&read_);
  MutexLock lock(mutex_);
  reading_ = false;
  EndLocked();
  SignalIfOverLocked();
}

void RpcEventStreamBase::Written(bool ok) {
  MutexLock lock(mutex_);
  if (ok && !ended_) return OnWrittenLocked();
  // If the failed write is the first sign of the stream's end, the pending read gives the next one.
  EndLocked();
  DEUT_CHECK(writing_);  // this write was in flight until now
  writing_ = false;
  OnLastWriteLocked(ok);
  SignalIfOverLocked();
}

}  // namespace deut

#include "protocol/rpc/rpc_call.h"

#include "common/testing/test_points.h"

namespace deut {

RpcCallBase::RpcCallBase(Runtime& runtime, RpcExecutor& executor, StreamWatchdog& watchdog)
    : presence_(executor), runtime_(runtime), executor_(executor), mutex_(runtime), write_watch_(watchdog, [this] {
        context_.TryCancel();
      }) {
  context_.AsyncNotifyWhenDone(static_cast<RpcEvent*>(&ended_));
}

void RpcCallBase::Accepted(bool ok) {
  DEUT_POINT("rpc_call.accepted");
  if (!ok) {
    // The server has shut down before a call came. So neither `ended` nor the finish will come, and their references
    // are dropped.
    references_.fetch_sub(2, std::memory_order_relaxed);
    return;
  }
  OnAccepted();
}

void RpcCallBase::PeerDone(bool /*ok*/) {
  DEUT_POINT("rpc_call.over");
  OnPeerGone();
}

void RpcCallBase::FinishSent(bool /*ok*/) { DEUT_POINT("rpc_call.over"); }

void RpcCallBase::StartRead() {
  Retain();
  StartReading(&read_);
}

bool RpcCallBase::BeginWrite(bool wait) {
  MutexLock lock(mutex_);
  while (wait && writing_ && !broken_ && !ending_) {
    executor_.BeforeBlocking();
    writable_.Wait(mutex_);
  }
  if (writing_ || broken_ || ending_) return false;
  writing_ = true;
  write_watch_.Start();
  Retain();
  return true;
}

void RpcCallBase::Written(bool ok) {
  write_watch_.Stop();
  {
    MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) broken_ = true;
    writable_.NotifyAll(runtime_);
    if (ending_) return FinishLocked();
  }
  OnWritten(ok);
}

bool RpcCallBase::broken() {
  MutexLock lock(mutex_);
  return broken_ || ending_;
}

void RpcCallBase::End(const grpc::Status& status) {
  MutexLock lock(mutex_);
  if (ending_) return;
  ending_ = true;
  status_ = status;
  writable_.NotifyAll(runtime_);
  if (!writing_) FinishLocked();
}

void RpcCallBase::FinishLocked() {
  StartFinish(status_, &finished_);
  DEUT_POINT("rpc_call.finishing");
}

}  // namespace deut

#include "protocol/data/apply_log_handler.h"

#include <utility>

#include "common/runtime/blocking_hook.h"
#include "protocol/rpc/rpc_status.h"
#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/namespace.h"

namespace deut {

void ApplyLogHandler::RequestNextCall(const DataComponentHost& host, const Request& request) {
  auto* const call = new ApplyLogHandler(host, request);
  request(&call->context(), call->stream(), call->accepted());
}

ApplyLogHandler::ApplyLogHandler(const DataComponentHost& host, const Request& request)
    : RpcCall(host.runtime, host.executor, host.writes),
      host_(host),
      request_(request),
      component_time_limit_(host.writes.limit()),
      mutex_(host.runtime),
      hang_up_watch_(host.writes, [this] { context().TryCancel(); }) {}

void ApplyLogHandler::OnAccepted() {
  RequestNextCall(host_, request_);
  if (const Status entered = host_.streams.Enter(context(), &quota_slot_); !entered.ok())
    return End(ToRpcStatus(entered));
  StartRead();
}

void ApplyLogHandler::OnRead(bool ok) {
  const std::function<void()> hook = [this] { executor().BeforeBlocking(); };
  const BlockingHook blocking_hook(hook);
  if (log_ == nullptr) {
    Status status;
    if (ok && Open(&status)) return StartRead();
    return End(ToRpcStatus(status));
  }
  const Status sent = ok ? Forward() : Status::Ok();
  if (ok && sent.ok()) return StartRead();
  Finish(sent);
}

bool ApplyLogHandler::Open(Status* status) {
  const wire::ApplyLogRequest& request = incoming();
  if (!request.has_open()) {
    *status = DEUT_ERROR(kInvalidArgument, "request: the first message of a log stream has to be `open`");
    return false;
  }
  // OpenApplyLog waits until the component has closed the previous stream and applied the batch that it was working on.
  executor().BeforeBlocking();
  auto log = host_.component.OpenApplyLog(FromWire(request.open().sender()), this,
                                          FromRpcTime(runtime_, context().raw_deadline()));
  wire::ApplyLogAnswer answer;
  ToWire(log.status(), answer.mutable_opened());
  {
    MutexLock lock(mutex_);
    writing_ = true;
  }
  if (!Write(answer) || !log.ok()) return false;
  log_ = std::move(log).value();
  {
    MutexLock lock(mutex_);
    state_ = State::kOpen;
  }
  WriteNext();
  return true;
}

Status ApplyLogHandler::Forward() {
  if (!incoming().has_batch())
    return DEUT_ERROR(kInvalidArgument, "request: a log stream that is open takes batches only");
  DEUT_RETURN_IF_ERROR(FromWire(incoming().mutable_batch(), &batch_));
  if (batch_.entries.size() >= kLargeBatch) executor().BeforeBlocking();
  return log_->Send(batch_, runtime_.Now() + component_time_limit_);
}

void ApplyLogHandler::Finish(const Status& reason) {
  {
    MutexLock lock(mutex_);
    if (!reason.ok()) SetClosedLocked(reason);
    state_ = State::kFinished;
    // The message that is being written may be the reason. If this thread wrote another one meanwhile, the reason would
    // be dropped.
    while (writing_) {
      executor().BeforeBlocking();
      written_.Wait(mutex_);
    }
  }
  log_.reset();
  // Only this thread writes from here on.
  wire::ApplyLogAnswer answer;
  for (bool more = true; more;) {
    {
      MutexLock lock(mutex_);
      more = NextLocked(&answer);
    }
    if (more && !Write(answer)) break;
  }
  End(grpc::Status::OK);
}

bool ApplyLogHandler::NextLocked(wire::ApplyLogAnswer* answer) {
  answer->Clear();
  if (ack_) {
    ToWire(*ack_, answer->mutable_ack());
    ack_.reset();
    return true;
  }
  if (!closed_ || std::exchange(reason_written_, true)) return false;
  ToWire(*closed_, answer->mutable_closed());
  return true;
}

void ApplyLogHandler::WriteNext() {
  wire::ApplyLogAnswer answer;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kOpen || writing_ || !NextLocked(&answer)) return;
    writing_ = true;
  }
  if (!Write(answer, /*wait=*/false)) WriteOver();
}

void ApplyLogHandler::WriteOver() {
  MutexLock lock(mutex_);
  writing_ = false;
  // After the reason is written, the peer must hang up, and the pending read then sees it. The watch bounds that time.
  if (reason_written_) hang_up_watch_.Start();
  written_.NotifyAll(runtime_);
}

void ApplyLogHandler::OnWritten(bool ok) {
  WriteOver();
  if (ok) WriteNext();
}

void ApplyLogHandler::OnAck(const ApplyAck& ack) {
  {
    MutexLock lock(mutex_);
    ack_ = ack;
  }
  WriteNext();
}

void ApplyLogHandler::OnClosed(const Status& status) {
  {
    MutexLock lock(mutex_);
    SetClosedLocked(status);
  }
  WriteNext();
}

void ApplyLogHandler::SetClosedLocked(const Status& status) {
  if (closed_) return;
  closed_ = status.ok() ? DEUT_ERROR(kUnavailable, "the data component has ended the log stream") : status;
}

}  // namespace deut

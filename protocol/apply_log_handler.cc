#include "protocol/apply_log_handler.h"

#include <memory>
#include <utility>

#include "protocol/convert_data_component.h"
#include "protocol/rpc_polling.h"
#include "protocol/rpc_status.h"

namespace deut {

ApplyLogHandler::ApplyLogHandler(Runtime& runtime, DataComponent& component, StreamWatchdog& watchdog,
                                 grpc::ServerContext* context, Stream* stream)
    : runtime_(runtime),
      component_(component),
      context_(context),
      stream_(stream),
      patience_(watchdog.limit()),
      write_watch_(watchdog, [context] { context->TryCancel(); }),
      mutex_(runtime) {}

grpc::Status ApplyLogHandler::Run() {
  wire::ApplyLogRequest request;
  if (!stream_->Read(&request)) return grpc::Status::OK;
  if (!request.has_open()) {
    return ToRpcStatus(DEUT_ERROR(kInvalidArgument, "request: the first message of a log stream has to be `open`"));
  }
  auto log =
      component_.OpenApplyLog(FromWire(request.open().sender()), this, FromRpcTime(runtime_, context_->raw_deadline()));
  wire::ApplyLogAnswer answer;
  ToWire(log.status(), answer.mutable_opened());
  if (!Write(answer) || !log.ok()) {
    if (log.ok()) log->reset();
    return grpc::Status::OK;
  }
  const std::unique_ptr<Thread> writer = runtime_.StartThread("dc-acks", [this] { WriteAnswers(); });
  const Status end = Forward(**log);
  if (!end.ok()) SetClosed(end);
  log->reset();
  {
    MutexLock lock(mutex_);
    finished_ = true;
  }
  Notify();
  writer->Join();
  return grpc::Status::OK;
}

Status ApplyLogHandler::Forward(ApplyLogStream& log) {
  wire::ApplyLogRequest request;
  LogBatch batch;
  while (stream_->Read(&request)) {
    CountStreamRead();
    if (!request.has_batch())
      return DEUT_ERROR(kInvalidArgument, "request: a log stream that is open takes batches only");
    DEUT_RETURN_IF_ERROR(FromWire(request.mutable_batch(), &batch));
    DEUT_RETURN_IF_ERROR(log.Send(batch, runtime_.Now() + patience_));
  }
  return Status::Ok();
}

// The writer thread.
void ApplyLogHandler::WriteAnswers() {
  for (;;) {
    const uint32_t changes = changes_.load(std::memory_order_seq_cst);
    std::optional<ApplyAck> ack;
    std::optional<Status> closed;
    bool finished = false;
    {
      MutexLock lock(mutex_);
      ack.swap(ack_);
      closed = closed_;
      finished = finished_;
    }
    if (ack) {
      wire::ApplyLogAnswer answer;
      ToWire(*ack, answer.mutable_ack());
      if (!Write(answer)) return;
    }
    if (closed) {
      wire::ApplyLogAnswer answer;
      ToWire(*closed, answer.mutable_closed());
      Write(answer);
      // From now on it is the peer's to hang up, and Read's to see it.
      write_watch_.Start();
      return;
    }
    if (finished) return;
    if (!ack) runtime_.Wait(changes_, changes, kNoDeadline);
  }
}

bool ApplyLogHandler::Write(const wire::ApplyLogAnswer& answer) {
  write_watch_.Start();
  const bool written = stream_->Write(answer);
  write_watch_.Stop();
  return written;
}

void ApplyLogHandler::Notify() {
  changes_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(changes_);
}

void ApplyLogHandler::SetClosed(const Status& status) {
  MutexLock lock(mutex_);
  if (!closed_)
    closed_ = status.ok() ? DEUT_ERROR(kUnavailable, "the data component has ended the log stream") : status;
}

void ApplyLogHandler::OnAck(const ApplyAck& ack) {
  {
    MutexLock lock(mutex_);
    ack_ = ack;
  }
  Notify();
}

void ApplyLogHandler::OnClosed(const Status& status) {
  SetClosed(status);
  Notify();
}

}  // namespace deut

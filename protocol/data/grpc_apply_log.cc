#include "protocol/data/grpc_apply_log.h"

#include <utility>

#include "protocol/wire/convert_data_component.h"
#include "protocol/wire/namespace.h"

namespace deut {
Result<std::unique_ptr<ApplyLogStream>> GrpcApplyLog::Open(Runtime& runtime, std::shared_ptr<const RpcPeer> peer,
                                                           RpcEventLoop& loop, wire::DataComponent::Stub& stub,
                                                           const Sender& sender, ApplyLogListener* listener,
                                                           Deadline deadline) {
  std::unique_ptr<GrpcApplyLog> log(new GrpcApplyLog(runtime, std::move(peer), loop, listener));
  ToWire(sender, log->outgoing_.mutable_open()->mutable_sender());
  log->thread_ = runtime.StartThread("dc-apply", [&log = *log, &stub] { log.OpenAndEnd(stub); });
  if (!log->settled_.Wait(runtime, deadline)) {
    log->StopBecause(
        DEUT_ERROR(kDeadlineExceeded, log->peer_->name(), ": the deadline passed while opening the log stream"));
    log->thread_->Join();
  }
  if (!log->accepted_) return log->Reason();
  return std::unique_ptr<ApplyLogStream>(std::move(log));
}

GrpcApplyLog::~GrpcApplyLog() {
  StopBecause(DEUT_ERROR(kCancelled, "the log stream was closed by its sender"));
  thread_->Join();
}

Status GrpcApplyLog::Send(const LogBatch& batch, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckSendable(batch));
  for (;;) {
    uint32_t state = write_state_.load(std::memory_order_seq_cst);
    if (state == kClosed) return Reason();
    if (state == kIdle) {
      if (write_state_.compare_exchange_strong(state, kWriting, std::memory_order_seq_cst)) break;
      continue;
    }
    if (!runtime_.Wait(write_state_, state, deadline)) {
      Status late = DEUT_ERROR(kDeadlineExceeded, peer_->name(), " did not take a log batch before the deadline");
      StopBecause(late);
      return late;
    }
  }
  outgoing_.Clear();
  ToWire(batch, outgoing_.mutable_batch());
  StartWrite();
  return Status::Ok();
}

void GrpcApplyLog::SetReason(Status reason) {
  MutexLock lock(mutex_);
  if (reason_.ok()) reason_ = std::move(reason);
}

void GrpcApplyLog::StopBecause(Status reason) {
  SetReason(std::move(reason));
  Stop();
}

Status GrpcApplyLog::Reason() {
  MutexLock lock(mutex_);
  return reason_.ok() ? DEUT_ERROR(kUnavailable, peer_->name(), " has ended the log stream") : reason_;
}

bool GrpcApplyLog::OnRead() {
  switch (incoming_.answer_case()) {
    case wire::ApplyLogAnswer::kOpened:
      if (accepted_ || incoming_.opened().code() != 0) {
        StopBecause(FromWire(incoming_.opened()));
        break;
      }
      accepted_ = true;
      settled_.Signal(runtime_);
      break;
    case wire::ApplyLogAnswer::kAck:
      if (accepted_) listener_->OnAck(FromWire(incoming_.ack()));
      break;
    case wire::ApplyLogAnswer::kClosed:
      StopBecause(FromWire(incoming_.closed()));
      break;
    case wire::ApplyLogAnswer::ANSWER_NOT_SET:
      StopBecause(DEUT_ERROR(kCorruption, peer_->name(), ": a message of the log stream holds nothing known"));
      break;
  }
  return true;
}

void GrpcApplyLog::OnWrittenLocked() {
  write_state_.store(kIdle, std::memory_order_seq_cst);
  runtime_.WakeAll(write_state_);
}

bool GrpcApplyLog::StopWritingLocked() { return write_state_.exchange(kEnding, std::memory_order_seq_cst) == kWriting; }

void GrpcApplyLog::OpenAndEnd(wire::DataComponent::Stub& stub) {
  const grpc::Status end = RunStream([&stub](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
    return stub.PrepareAsyncApplyLog(context, queue);
  });
  SetReason(peer_->FromRpc(end));
  // This comes after SetReason: a failing Send returns the reason, so it waits until there is one.
  write_state_.store(kClosed, std::memory_order_seq_cst);
  runtime_.WakeAll(write_state_);
  if (accepted_) {
    listener_->OnClosed(Reason());
  } else {
    settled_.Signal(runtime_);
  }
}

}  // namespace deut

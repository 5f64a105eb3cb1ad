#include "protocol/grpc_apply_log.h"

#include <utility>

#include "common/base/check.h"
#include "protocol/convert_data_component.h"

namespace deut {
Result<std::unique_ptr<ApplyLogStream>> GrpcApplyLog::Open(Runtime& runtime, std::shared_ptr<const RpcPeer> peer,
                                                           RpcEventLoop& loop, wire::DataComponent::Stub& stub,
                                                           const Sender& sender, ApplyLogListener* listener,
                                                           Deadline deadline) {
  std::unique_ptr<GrpcApplyLog> log(new GrpcApplyLog(runtime, std::move(peer), listener));
  ToWire(sender, log->outgoing_.mutable_open()->mutable_sender());
  log->stream_ = stub.PrepareAsyncApplyLog(&log->context_, loop.queue());
  log->thread_ = runtime.StartThread("dc-apply", [&log = *log] { log.Run(); });
  if (!log->settled_.Wait(runtime, deadline)) {
    log->SetReason(
        DEUT_ERROR(kDeadlineExceeded, log->peer_->name(), ": the deadline passed while opening the log stream"));
    log->context_.TryCancel();
    log->thread_->Join();
  }
  if (!log->accepted_) return log->Reason();
  return std::unique_ptr<ApplyLogStream>(std::move(log));
}

GrpcApplyLog::~GrpcApplyLog() {
  SetReason(DEUT_ERROR(kCancelled, "the log stream was closed by its sender"));
  context_.TryCancel();
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
      SetReason(late);
      context_.TryCancel();
      return late;
    }
  }
  outgoing_.Clear();
  ToWire(batch, outgoing_.mutable_batch());
  stream_->Write(outgoing_, static_cast<RpcEvent*>(&written_));
  return Status::Ok();
}

bool GrpcApplyLog::EndWriting() { return write_state_.exchange(kEnding, std::memory_order_seq_cst) == kWriting; }

void GrpcApplyLog::SetReason(Status reason) {
  MutexLock lock(mutex_);
  if (reason_.ok()) reason_ = std::move(reason);
}

Status GrpcApplyLog::Reason() {
  MutexLock lock(mutex_);
  return reason_.ok() ? DEUT_ERROR(kUnavailable, peer_->name(), " has ended the log stream") : reason_;
}

void GrpcApplyLog::HandleAnswer() {
  switch (incoming_.answer_case()) {
    case wire::ApplyLogAnswer::kOpened:
      if (accepted_ || incoming_.opened().code() != 0) {
        SetReason(FromWire(incoming_.opened()));
        context_.TryCancel();
        return;
      }
      accepted_ = true;
      settled_.Signal(runtime_);
      return;
    case wire::ApplyLogAnswer::kAck:
      if (accepted_) listener_->OnAck(FromWire(incoming_.ack()));
      return;
    case wire::ApplyLogAnswer::kClosed:
      SetReason(FromWire(incoming_.closed()));
      context_.TryCancel();
      return;
    case wire::ApplyLogAnswer::ANSWER_NOT_SET:
      SetReason(DEUT_ERROR(kCorruption, peer_->name(), ": a message of the log stream holds nothing known"));
      context_.TryCancel();
      return;
  }
}

void GrpcApplyLog::SignalIfOverLocked() {
  if (ended_ && !reading_ && !writing_) over_.Signal(runtime_);
}

void GrpcApplyLog::Started(bool ok) {
  MutexLock lock(mutex_);
  if (!ok) {
    ended_ = true;
    EndWriting();  // nothing has been written
    SignalIfOverLocked();
    return;
  }
  reading_ = true;
  stream_->Write(outgoing_, static_cast<RpcEvent*>(&written_));
  stream_->Read(&incoming_, static_cast<RpcEvent*>(&read_));
}

void GrpcApplyLog::Read(bool ok) {
  if (ok) {
    HandleAnswer();
    stream_->Read(&incoming_, static_cast<RpcEvent*>(&read_));
    return;
  }
  MutexLock lock(mutex_);
  reading_ = false;
  if (!ended_) writing_ = EndWriting();
  ended_ = true;
  SignalIfOverLocked();
}

void GrpcApplyLog::Written(bool ok) {
  MutexLock lock(mutex_);
  if (ended_) {
    writing_ = false;
  } else if (ok) {
    write_state_.store(kIdle, std::memory_order_seq_cst);
    runtime_.WakeAll(write_state_);
  } else {
    // The stream has ended, perhaps with a reason that is still to be read. Cancelling the stream would drop that
    // reason.
    ended_ = true;
    EndWriting();
  }
  SignalIfOverLocked();
}

void GrpcApplyLog::Run() {
  stream_->StartCall(static_cast<RpcEvent*>(&started_));
  over_.Wait(runtime_, kNoDeadline);
  grpc::Status end;
  over_.Reset();
  stream_->Finish(&end, static_cast<RpcEvent*>(&finished_));
  over_.Wait(runtime_, kNoDeadline);
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

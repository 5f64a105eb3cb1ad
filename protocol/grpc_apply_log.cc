#include "protocol/grpc_apply_log.h"

#include <utility>

#include "common/base/check.h"
#include "protocol/convert_data_component.h"

namespace deut {
namespace {

enum Completed : uintptr_t { kStarted = 1, kRead, kWritten, kFinished };

void* Tag(Completed what) { return reinterpret_cast<void*>(uintptr_t{what}); }

}  // namespace

Result<std::unique_ptr<ApplyLogStream>> GrpcApplyLog::Open(Runtime& runtime, std::shared_ptr<const RpcPeer> peer,
                                                           wire::DataComponent::Stub& stub, const Sender& sender,
                                                           ApplyLogListener* listener, Deadline deadline) {
  std::unique_ptr<GrpcApplyLog> log(new GrpcApplyLog(runtime, std::move(peer), listener));
  ToWire(sender, log->outgoing_.mutable_open()->mutable_sender());
  log->stream_ = stub.PrepareAsyncApplyLog(&log->context_, &log->events_);
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
  events_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (events_.Next(&tag, &ok)) {
  }
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
  stream_->Write(outgoing_, Tag(kWritten));
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

void GrpcApplyLog::Run() {
  stream_->StartCall(Tag(kStarted));
  bool reading = false;
  bool writing = false;  // known only once the write side is closed
  bool ended = false;
  void* tag = nullptr;
  bool ok = false;
  while (!ended || reading || writing) {
    DEUT_CHECK(events_.Next(&tag, &ok));
    switch (static_cast<Completed>(reinterpret_cast<uintptr_t>(tag))) {
      case kStarted:
        if (!ok) {
          ended = true;
          EndWriting();  // nothing has been written
          break;
        }
        reading = true;
        stream_->Write(outgoing_, Tag(kWritten));
        stream_->Read(&incoming_, Tag(kRead));
        break;
      case kRead:
        if (ok) {
          HandleAnswer();
          stream_->Read(&incoming_, Tag(kRead));
          break;
        }
        reading = false;
        if (!ended) writing = EndWriting();
        ended = true;
        break;
      case kWritten:
        if (ended) {
          writing = false;
          break;
        }
        if (ok) {
          write_state_.store(kIdle, std::memory_order_seq_cst);
          runtime_.WakeAll(write_state_);
          break;
        }
        // The stream has ended, perhaps with a reason that is still to be read: cancelling it would drop the reason.
        ended = true;
        EndWriting();
        break;
      case kFinished:
        break;
    }
  }
  grpc::Status end;
  stream_->Finish(&end, Tag(kFinished));
  DEUT_CHECK(events_.Next(&tag, &ok) && tag == Tag(kFinished));
  SetReason(peer_->FromRpc(end));
  // Only now: a Send that fails says the reason, so it waits until there is one.
  write_state_.store(kClosed, std::memory_order_seq_cst);
  runtime_.WakeAll(write_state_);
  if (accepted_) {
    listener_->OnClosed(Reason());
  } else {
    settled_.Signal(runtime_);
  }
}

}  // namespace deut

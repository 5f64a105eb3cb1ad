#include "protocol/grpc_data_stream.h"

#include <utility>

#include "common/base/check.h"

namespace deut {
GrpcDataStream::GrpcDataStream(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, RpcEventLoop& loop)
    : runtime_(runtime),
      peer_(std::move(peer)),
      channel_(peer_->NewChannel(RpcTraffic::kShort)),
      stub_(wire::DataComponent::NewStub(channel_)),
      multiplexer_(runtime, RequestMultiplexer::Limits()),
      loop_(loop),
      mutex_(runtime) {
  thread_ = runtime.StartThread("dc-data", [this] { Run(); });
}

GrpcDataStream::~GrpcDataStream() {
  stop_.store(true, std::memory_order_seq_cst);
  {
    MutexLock lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }
  wake_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wake_);
  thread_->Join();
}

void GrpcDataStream::Submit(absl::Span<DataRequest* const> requests) {
  switch (multiplexer_.Submit(requests)) {
    case RequestMultiplexer::Next::kNotSender:
      return;
    case RequestMultiplexer::Next::kSend:
      SendNext();
      return;
    case RequestMultiplexer::Next::kWakeStream:
      wake_.fetch_add(1, std::memory_order_seq_cst);
      runtime_.WakeAll(wake_);
      return;
  }
}

void GrpcDataStream::SendNext() {
  if (multiplexer_.TakeMessage(&outgoing_)) stream_->Write(outgoing_, static_cast<RpcEvent*>(&written_));
}

void GrpcDataStream::Run() {
  Status end = DEUT_ERROR(kUnavailable, peer_->name(), ": the connection is being closed");
  while (!stopping()) {
    const uint32_t wake = wake_.load(std::memory_order_seq_cst);
    if (!multiplexer_.HasQueued()) {
      if (!stopping()) runtime_.Wait(wake_, wake, kNoDeadline);
      continue;
    }
    Status status = RunStream();
    multiplexer_.FailAll(status.ok() ? DEUT_ERROR(kUnavailable, peer_->name(), " has ended the stream") : status);
  }
  DEUT_CHECK(!multiplexer_.StopSending());
  multiplexer_.FailAll(end);
}

Status GrpcDataStream::RunStream() {
  grpc::ClientContext context;
  {
    MutexLock lock(mutex_);
    context_ = &context;
    reading_ = writing_ = ended_ = false;
  }
  if (stopping()) context.TryCancel();  // else the destructor finds the context and cancels it
  AwaitConnection(runtime_, *channel_, kNoDeadline);
  stream_ = stub_->PrepareAsyncData(&context, loop_.queue());
  over_.Reset();
  stream_->StartCall(static_cast<RpcEvent*>(&started_));
  over_.Wait(runtime_, kNoDeadline);
  grpc::Status end;
  over_.Reset();
  stream_->Finish(&end, static_cast<RpcEvent*>(&finished_));
  over_.Wait(runtime_, kNoDeadline);
  {
    MutexLock lock(mutex_);
    context_ = nullptr;
  }
  stream_.reset();
  return peer_->FromRpc(end);
}

void GrpcDataStream::SignalIfOverLocked() {
  if (ended_ && !reading_ && !writing_) over_.Signal(runtime_);
}

void GrpcDataStream::Started(bool ok) {
  MutexLock lock(mutex_);
  if (!ok) {
    ended_ = true;
    SignalIfOverLocked();
    return;
  }
  reading_ = true;
  stream_->Read(&incoming_, static_cast<RpcEvent*>(&read_));
  if (multiplexer_.Up() == RequestMultiplexer::Next::kSend) SendNext();
}

void GrpcDataStream::Read(bool ok) {
  if (ok) {
    multiplexer_.Answered(&incoming_);
    stream_->Read(&incoming_, static_cast<RpcEvent*>(&read_));
    return;
  }
  MutexLock lock(mutex_);
  reading_ = false;
  if (!ended_) writing_ = multiplexer_.StopSending();
  ended_ = true;
  SignalIfOverLocked();
}

void GrpcDataStream::Written(bool ok) {
  MutexLock lock(mutex_);
  if (ok && !ended_) {
    SendNext();
    return;
  }
  // The role returns with the end of its write. If this is the first sign of the end, the pending read ends next.
  if (!ended_) DEUT_CHECK(multiplexer_.StopSending());
  ended_ = true;
  writing_ = false;
  multiplexer_.ReleaseSenderRole();
  context_->TryCancel();
  SignalIfOverLocked();
}

}  // namespace deut

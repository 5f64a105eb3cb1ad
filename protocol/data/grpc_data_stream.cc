#include "protocol/data/grpc_data_stream.h"

#include <utility>

#include "common/base/check.h"
#include "protocol/wire/namespace.h"

namespace deut {
GrpcDataStream::GrpcDataStream(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, RpcEventLoop& loop)
    : RpcEventStream(runtime, loop),
      peer_(std::move(peer)),
      channel_(peer_->NewChannel(RpcTraffic::kShort)),
      stub_(wire::DataComponent::NewStub(channel_)),
      multiplexer_(runtime, RequestMultiplexer::Limits()) {
  thread_ = runtime.StartThread("dc-data", [this] { OpenWhenWanted(); });
}

GrpcDataStream::~GrpcDataStream() {
  Stop();
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
  if (multiplexer_.TakeMessage(&outgoing_)) StartWrite();
}

void GrpcDataStream::OpenWhenWanted() {
  Status end = DEUT_ERROR(kUnavailable, peer_->name(), ": the connection is being closed");
  while (!stopping()) {
    const uint32_t wake = wake_.load(std::memory_order_seq_cst);
    if (!multiplexer_.HasQueued()) {
      if (!stopping()) runtime_.Wait(wake_, wake, kNoDeadline);
      continue;
    }
    AwaitConnection(runtime_, *channel_, kNoDeadline);
    Status status = peer_->FromRpc(RunStream([this](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
      return stub_->PrepareAsyncData(context, queue);
    }));
    multiplexer_.FailAll(status.ok() ? DEUT_ERROR(kUnavailable, peer_->name(), " has ended the stream") : status);
  }
  DEUT_CHECK(!multiplexer_.StopSending());
  multiplexer_.FailAll(end);
}

void GrpcDataStream::OnOpenLocked() {
  if (multiplexer_.Up() == RequestMultiplexer::Next::kSend) SendNext();
}

bool GrpcDataStream::OnRead() {
  multiplexer_.Answered(&incoming_);
  return true;
}

void GrpcDataStream::OnLastWriteLocked(bool /*ok*/) {
  multiplexer_.ReleaseSenderRole();
  CancelLocked();
}

}  // namespace deut

#include "protocol/grpc_data_stream.h"

#include <utility>

#include "common/base/check.h"

namespace deut {
namespace {

enum Completed : uintptr_t { kStarted = 1, kRead, kWritten, kFinished };

void* Tag(Completed what) { return reinterpret_cast<void*>(uintptr_t{what}); }

}  // namespace

GrpcDataStream::GrpcDataStream(Runtime& runtime, std::shared_ptr<const RpcPeer> peer)
    : runtime_(runtime),
      peer_(std::move(peer)),
      channel_(peer_->NewChannel(RpcTraffic::kShort)),
      stub_(wire::DataComponent::NewStub(channel_)),
      multiplexer_(runtime, RequestMultiplexer::Limits()),
      context_mutex_(runtime) {
  thread_ = runtime.StartThread("dc-data", [this] { Run(); });
}

GrpcDataStream::~GrpcDataStream() {
  stop_.store(true, std::memory_order_seq_cst);
  {
    MutexLock lock(context_mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }
  wake_.fetch_add(1, std::memory_order_seq_cst);
  runtime_.WakeAll(wake_);
  thread_->Join();
  events_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (events_.Next(&tag, &ok)) {
  }
}

void GrpcDataStream::Submit(absl::Span<DataRequest* const> requests) {
  switch (multiplexer_.Submit(requests)) {
    case RequestMultiplexer::Next::kNothing:
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
  if (multiplexer_.TakeMessage(&outgoing_)) stream_->Write(outgoing_, Tag(kWritten));
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
    multiplexer_.Down(status.ok() ? DEUT_ERROR(kUnavailable, peer_->name(), " has ended the stream") : status);
  }
  DEUT_CHECK(!multiplexer_.StopSending());
  multiplexer_.Down(end);
}

Status GrpcDataStream::RunStream() {
  grpc::ClientContext context;
  {
    MutexLock lock(context_mutex_);
    context_ = &context;
  }
  if (stopping()) context.TryCancel();  // else the destructor sees the context
  AwaitConnection(runtime_, *channel_, kNoDeadline);
  stream_ = stub_->PrepareAsyncData(&context, &events_);
  stream_->StartCall(Tag(kStarted));

  bool reading = false;
  bool writing = false;  // known only once sending has stopped
  bool ended = false;
  void* tag = nullptr;
  bool ok = false;
  while (!ended || reading || writing) {
    DEUT_CHECK(events_.Next(&tag, &ok));
    switch (static_cast<Completed>(reinterpret_cast<uintptr_t>(tag))) {
      case kStarted:
        ended = !ok;
        if (!ok) break;
        reading = true;
        stream_->Read(&incoming_, Tag(kRead));
        if (multiplexer_.Up() == RequestMultiplexer::Next::kSend) SendNext();
        break;
      case kRead:
        if (ok) {
          multiplexer_.Answered(&incoming_);
          stream_->Read(&incoming_, Tag(kRead));
          break;
        }
        reading = false;
        if (!ended) writing = multiplexer_.StopSending();
        ended = true;
        break;
      case kWritten:
        if (ok && !ended) {
          SendNext();
          break;
        }
        // The role comes back with its write. If that is the first sign of the end, the pending read is the next.
        if (!ended) DEUT_CHECK(multiplexer_.StopSending());
        ended = true;
        writing = false;
        multiplexer_.GiveUpRole();
        context.TryCancel();
        break;
      case kFinished:
        break;
    }
  }
  grpc::Status end;
  stream_->Finish(&end, Tag(kFinished));
  DEUT_CHECK(events_.Next(&tag, &ok) && tag == Tag(kFinished));
  {
    MutexLock lock(context_mutex_);
    context_ = nullptr;
  }
  stream_.reset();
  return peer_->FromRpc(end);
}

}  // namespace deut

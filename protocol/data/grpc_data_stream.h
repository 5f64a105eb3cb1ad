// GrpcDataStream: one Data stream to a data component, on a channel of its own. It is opened on demand, and again after
// it has broken.
//
// Submit never waits for the network. A thread that finds the sender's role free starts a write, which gRPC finishes in
// the background. The event loop runs the rest: the end of a write sends the requests queued meanwhile, and answers
// finish their requests (request_multiplexer.h).
// When the stream breaks, all requests sent or queued finish with the reason (usually UNAVAILABLE). A later Submit
// makes the stream's thread, which only opens and ends streams, open it again. This class never retries a request.
// Lifetime of the gRPC stream object, events and lock: rpc_event_stream.h. The right to write is the multiplexer's
// sender's role. A holder always starts a write, which ends in one event, or gives the role up.
// Thread-safety: any thread may call Submit and Abandon. Ownership: borrows the loop.
#ifndef PROTOCOL_DATA_GRPC_DATA_STREAM_H_
#define PROTOCOL_DATA_GRPC_DATA_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/channel.h"
#include "protocol/data/request_multiplexer.h"
#include "protocol/data_component.h"
#include "protocol/rpc/rpc_event.h"
#include "protocol/rpc/rpc_event_stream.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/wire/data_component.grpc.pb.h"
#include "protocol/wire/namespace.h"

namespace deut {

class GrpcDataStream final : private RpcEventStream<wire::DataRequests, wire::DataAnswers> {
 public:
  // Borrows the loop.
  GrpcDataStream(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, RpcEventLoop& loop);
  // Finishes unanswered requests with UNAVAILABLE. REQUIRES: no thread is inside Submit or Abandon.
  ~GrpcDataStream();
  GrpcDataStream(const GrpcDataStream&) = delete;
  GrpcDataStream& operator=(const GrpcDataStream&) = delete;

  void Submit(absl::Span<DataRequest* const> requests);
  void Abandon(DataRequest* request) { multiplexer_.Abandon(request); }

 private:
  void OnOpenLocked() override DEUT_REQUIRES(mutex_);
  bool OnRead() override;
  void OnWrittenLocked() override DEUT_REQUIRES(mutex_) { SendNext(); }
  bool StopWritingLocked() override DEUT_REQUIRES(mutex_) { return multiplexer_.StopSending(); }
  void OnLastWriteLocked(bool ok) override DEUT_REQUIRES(mutex_);

  // The body of the stream's thread.
  void OpenWhenWanted();
  // REQUIRES: the caller has the sender's role. Passes the role to the event of the write, or gives it up.
  void SendNext();

  const std::shared_ptr<const RpcPeer> peer_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<wire::DataComponent::Stub> stub_;
  RequestMultiplexer multiplexer_;
  std::atomic<uint32_t> wake_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_DATA_GRPC_DATA_STREAM_H_

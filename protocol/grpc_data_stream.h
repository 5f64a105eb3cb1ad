// GrpcDataStream: one Data stream to a data component, on a channel of its own, opened when it is needed and again when it has broken.
//
// Submit never waits for the network: whoever finds the sender's role free starts a write, which gRPC finishes in the background; the
// stream's thread goes on with what has been queued meanwhile, and finishes requests when answers come (request_multiplexer.h).
// When the stream breaks, everything sent or queued is finished with the reason (UNAVAILABLE as a rule); what is submitted afterwards
// makes the thread open it again. Nothing is repeated here.
// Lifetime of the gRPC stream object: made by the thread before Up; used by the holder of the sender's role; deleted by the thread after
//   StopSending and, if the role was held, after the end of its write. A holder always starts a write that ends in one event, or gives up.
// Thread-safety: Submit and Abandon from any thread.
#ifndef PROTOCOL_GRPC_DATA_STREAM_H_
#define PROTOCOL_GRPC_DATA_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_stream.h"
#include "protocol/data_component.grpc.pb.h"
#include "protocol/data_component.h"
#include "protocol/request_multiplexer.h"
#include "protocol/rpc_peer.h"

namespace deut {

class GrpcDataStream {
 public:
  GrpcDataStream(Runtime& runtime, std::shared_ptr<const RpcPeer> peer);
  // What is unanswered is finished with UNAVAILABLE. REQUIRES: nobody is inside Submit or Abandon.
  ~GrpcDataStream();
  GrpcDataStream(const GrpcDataStream&) = delete;
  GrpcDataStream& operator=(const GrpcDataStream&) = delete;

  void Submit(absl::Span<DataRequest* const> requests);
  void Abandon(DataRequest* request) { multiplexer_.Abandon(request); }

 private:
  using Stream = grpc::ClientAsyncReaderWriter<wire::DataRequests, wire::DataAnswers>;

  void Run();
  // From opening to the end of one stream; says why it ended.
  Status RunStream();
  // REQUIRES: the caller has the sender's role; passes it to the event of the write, or gives it up.
  void SendNext();
  bool stopping() const { return stop_.load(std::memory_order_seq_cst); }

  Runtime& runtime_;
  const std::shared_ptr<const RpcPeer> peer_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<wire::DataComponent::Stub> stub_;
  RequestMultiplexer multiplexer_;
  grpc::CompletionQueue events_;
  std::unique_ptr<Stream> stream_;  // see above
  wire::DataRequests outgoing_;     // the role holder's
  wire::DataAnswers incoming_;      // the thread's

  Mutex context_mutex_;
  grpc::ClientContext* context_ DEUT_GUARDED_BY(context_mutex_) = nullptr;  // of the current stream, for cancelling it
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> wake_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_DATA_STREAM_H_

// GrpcDataStream: one Data stream to a data component, on a channel of its own. It is opened on demand, and again after
// it has broken.
//
// Submit never waits for the network. A thread that finds the sender's role free starts a write, which gRPC finishes in
// the background. The event loop runs the rest: the end of a write sends the requests queued meanwhile, and answers
// finish their requests (request_multiplexer.h).
// When the stream breaks, all requests sent or queued finish with the reason (usually UNAVAILABLE). A later Submit
// makes the stream's thread, which only opens and ends streams, open it again. This class never retries a request.
// Lifetime of the gRPC stream object: the thread makes it before Up, and the holder of the sender's role uses it. The
// thread deletes it after StopSending and, if the role was held, after the end of that write. A holder always starts a
// write that ends in one event, or gives the role up.
// Events: one read is in flight while the stream is open, and at most one write. Both may end at the same time, on two
// threads. They change reading_, writing_, ended_ and the sender's role under the lock. Without it, the end of the read
// could find the role taken and wait for the end of a write. Meanwhile the end of a write could give the role up, and
// no write would start any more. Answers are filled in without the lock.
// Thread-safety: any thread may call Submit and Abandon. Ownership: borrows the loop.
#ifndef PROTOCOL_GRPC_DATA_STREAM_H_
#define PROTOCOL_GRPC_DATA_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/async_stream.h"
#include "protocol/data_component.grpc.pb.h"
#include "protocol/data_component.h"
#include "protocol/request_multiplexer.h"
#include "protocol/rpc_event.h"
#include "protocol/rpc_peer.h"

namespace deut {

class GrpcDataStream {
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
  using Stream = grpc::ClientAsyncReaderWriter<wire::DataRequests, wire::DataAnswers>;

  class Event final : public RpcEvent {
   public:
    using Handler = void (GrpcDataStream::*)(bool ok);
    Event(GrpcDataStream& stream, Handler handler) : stream_(stream), handler_(handler) {}
    void Done(bool ok) override { (stream_.*handler_)(ok); }
    bool MayBlock() const override { return false; }

   private:
    GrpcDataStream& stream_;
    const Handler handler_;
  };

  void Started(bool ok);
  void Read(bool ok);
  void Written(bool ok);
  void Finished(bool /*ok*/) { over_.Signal(runtime_); }
  // Signals over_ if no operation is in flight and none will start.
  void SignalIfOverLocked() DEUT_REQUIRES(mutex_);

  void Run();
  // Runs one stream from its opening to its end, and returns why it ended.
  Status RunStream();
  // REQUIRES: the caller has the sender's role. Passes the role to the event of the write, or gives it up.
  void SendNext();
  bool stopping() const { return stop_.load(std::memory_order_seq_cst); }

  Runtime& runtime_;
  const std::shared_ptr<const RpcPeer> peer_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<wire::DataComponent::Stub> stub_;
  RequestMultiplexer multiplexer_;
  RpcEventLoop& loop_;
  std::unique_ptr<Stream> stream_;  // see the file's comment
  wire::DataRequests outgoing_;     // belongs to the holder of the sender's role
  wire::DataAnswers incoming_;      // belongs to the read in flight, or to the thread that runs its end
  Event started_{*this, &GrpcDataStream::Started};
  Event read_{*this, &GrpcDataStream::Read};
  Event written_{*this, &GrpcDataStream::Written};
  Event finished_{*this, &GrpcDataStream::Finished};
  deut::Event over_;  // neither the stream nor its Finish has an operation in flight

  Mutex mutex_;
  grpc::ClientContext* context_ DEUT_GUARDED_BY(mutex_) = nullptr;  // of the current stream; used to cancel it
  bool reading_ DEUT_GUARDED_BY(mutex_) = false;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;  // valid only once sending has stopped
  bool ended_ DEUT_GUARDED_BY(mutex_) = false;
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> wake_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_DATA_STREAM_H_

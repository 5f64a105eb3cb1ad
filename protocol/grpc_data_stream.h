// GrpcDataStream: one Data stream to a data component, on a channel of its own, opened when it is needed and again when it has broken.
//
// Submit never waits for the network: whoever finds the sender's role free starts a write, which gRPC finishes in the background. The event loop runs
// the rest: the end of a write sends what has been queued meanwhile, and answers finish their requests (request_multiplexer.h).
// When the stream breaks, everything sent or queued is finished with the reason (UNAVAILABLE as a rule); what is submitted afterwards
// makes the stream's thread, which only opens and ends, open it again. Nothing is repeated here.
// Lifetime of the gRPC stream object: made by the thread before Up; used by the holder of the sender's role; deleted by the thread after
//   StopSending and, if the role was held, after the end of its write. A holder always starts a write that ends in one event, or gives up.
// Events: one read is under way for as long as the stream is open, and at most one write. Both may end at the same time, on two threads. They change
//   reading_, writing_, ended_ and the sender's role under the lock. Without it this could happen: the end of the read finds the role taken and
//   waits for the end of a write, while the end of a write gives the role up, and no write is started any more. Answers are filled in without it.
// Thread-safety: Submit and Abandon from any thread.
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
  // What is unanswered is finished with UNAVAILABLE. REQUIRES: nobody is inside Submit or Abandon.
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
  // Nothing is under way any more, nor will be.
  void TellIfOverLocked() DEUT_REQUIRES(mutex_);

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
  RpcEventLoop& loop_;
  std::unique_ptr<Stream> stream_;  // see above
  wire::DataRequests outgoing_;     // the role holder's
  wire::DataAnswers incoming_;      // of the read that is under way, or of who runs its end
  Event started_{*this, &GrpcDataStream::Started};
  Event read_{*this, &GrpcDataStream::Read};
  Event written_{*this, &GrpcDataStream::Written};
  Event finished_{*this, &GrpcDataStream::Finished};
  deut::Event over_;  // nothing of the stream, or of its Finish, is under way

  Mutex mutex_;
  grpc::ClientContext* context_ DEUT_GUARDED_BY(mutex_) = nullptr;  // of the current stream, for cancelling it
  bool reading_ DEUT_GUARDED_BY(mutex_) = false;
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;  // known only once sending has stopped
  bool ended_ DEUT_GUARDED_BY(mutex_) = false;
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> wake_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_DATA_STREAM_H_

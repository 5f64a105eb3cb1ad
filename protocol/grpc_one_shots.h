// GrpcOneShots: the stream of one-shot transactions to a transaction component, on a channel of its own, opened when it is needed and again when it
// has broken.
//
// Execute never waits for the network but for its answers: whoever finds the sender's role free starts a write, which gRPC finishes in the
// background. The event loop runs the rest: the end of a write sends what has been queued meanwhile, and answers wake their callers
// (one_shot_multiplexer.h).
// When the stream breaks, calls that were sent and write something end with OUTCOME_UNKNOWN, all others with UNAVAILABLE. Nothing is repeated here.
// States: down; opening (the stream's thread, which only opens and ends, starts it, and it says `open` and waits for the answer to that); up. Ready
//   makes one attempt each time that it finds it down, and none any more after a server has said that it does not know such streams.
// Lifetime of the gRPC stream object, and what is done under the lock: as in grpc_data_stream.h.
// Thread-safety: all methods from any thread. REQUIRES: nobody is inside a method when it is destroyed.
#ifndef PROTOCOL_GRPC_ONE_SHOTS_H_
#define PROTOCOL_GRPC_ONE_SHOTS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/adaptive_spin.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/async_stream.h"
#include "protocol/one_shot_channel.h"
#include "protocol/one_shot_multiplexer.h"
#include "protocol/rpc_event.h"
#include "protocol/rpc_peer.h"
#include "protocol/transaction_service.grpc.pb.h"

namespace deut {

class GrpcOneShots final : public OneShotChannel {
 public:
  // Borrows the loop.
  GrpcOneShots(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, RpcEventLoop& loop);
  ~GrpcOneShots() override;
  GrpcOneShots(const GrpcOneShots&) = delete;
  GrpcOneShots& operator=(const GrpcOneShots&) = delete;

  bool Ready() override;
  Timestamp not_before() const override { return Timestamp(not_before_.load(std::memory_order_relaxed)); }
  bool Execute(absl::Span<OneShotTransaction> transactions, Deadline deadline) override;

 private:
  using Stream = grpc::ClientAsyncReaderWriter<wire::OneShotCalls, wire::OneShotAnswers>;

  class Event final : public RpcEvent {
   public:
    using Handler = void (GrpcOneShots::*)(bool ok);
    Event(GrpcOneShots& channel, Handler handler) : channel_(channel), handler_(handler) {}
    void Done(bool ok) override { (channel_.*handler_)(ok); }
    bool MayBlock() const override { return false; }

   private:
    GrpcOneShots& channel_;
    const Handler handler_;
  };

  void Started(bool ok);
  void Read(bool ok);
  void Written(bool ok);
  void Finished(bool /*ok*/) { over_.Signal(runtime_); }
  // The answer to `open` was read, and is good: true if it goes on.
  bool OpenedLocked() DEUT_REQUIRES(mutex_);
  // Opened, and `open` was sent.
  void UpLocked() DEUT_REQUIRES(mutex_);
  void StopSendingLocked() DEUT_REQUIRES(mutex_);
  // Nothing is under way any more, nor will be.
  void TellIfOverLocked() DEUT_REQUIRES(mutex_);

  void Run();
  // From opening to the end of one stream; says why it ended.
  Status RunStream();
  // The answer to `open`.
  Status TakeOpened();
  // REQUIRES: the caller has the sender's role; passes it to the event of the write, or gives it up.
  void SendNext();
  // The answer to a call, checked against what was asked.
  Result<CommitAnswer> Take(OneShotCall& call, const OneShotTransaction& transaction);
  Status TakeResults(OneShotCall& call, const OneShotTransaction& transaction) const;
  bool stopping() const { return stop_.load(std::memory_order_seq_cst); }

  Runtime& runtime_;
  const std::shared_ptr<const RpcPeer> peer_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<wire::TransactionService::Stub> stub_;
  OneShotMultiplexer multiplexer_;
  std::atomic<bool> up_{false};  // what the multiplexer says, to look at without its lock
  std::atomic<bool> unknown_{false};
  std::atomic<uint64_t> not_before_{0};
  AdaptiveSpin spin_;  // of those who wait for answers
  RpcEventLoop& loop_;
  std::unique_ptr<Stream> stream_;  // see above
  wire::OneShotCalls outgoing_;     // the role holder's
  wire::OneShotAnswers incoming_;   // of the read that is under way, or of who runs its end
  Event started_{*this, &GrpcOneShots::Started};
  Event read_{*this, &GrpcOneShots::Read};
  Event written_{*this, &GrpcOneShots::Written};
  Event finished_{*this, &GrpcOneShots::Finished};
  deut::Event over_;  // nothing of the stream, or of its Finish, is under way

  Mutex mutex_;
  grpc::ClientContext* context_ DEUT_GUARDED_BY(mutex_) = nullptr;  // of the current stream, for cancelling it
  Status refused_ DEUT_GUARDED_BY(mutex_);                          // what `open` was answered with
  bool opened_ DEUT_GUARDED_BY(mutex_) = false;                     // the answer to it has come
  bool sent_ DEUT_GUARDED_BY(mutex_) = false;                       // it has been sent
  bool reading_ DEUT_GUARDED_BY(mutex_) = false;
  // Before it is up, and once sending has stopped; in between the multiplexer knows.
  bool writing_ DEUT_GUARDED_BY(mutex_) = false;
  bool ended_ DEUT_GUARDED_BY(mutex_) = false;
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> wanted_{0};  // odd: an attempt is wanted or under way
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_ONE_SHOTS_H_

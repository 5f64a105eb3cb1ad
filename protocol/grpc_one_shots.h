// GrpcOneShots: the stream of one-shot transactions to a transaction component, on a channel of its own, opened when it is needed and again when it
// has broken.
//
// Execute never waits for the network but for its answers: whoever finds the sender's role free starts a write, which gRPC finishes in the
// background; the stream's thread goes on with what has been queued meanwhile and wakes those whose answers have come (one_shot_multiplexer.h).
// When the stream breaks, calls that were sent and write something end with OUTCOME_UNKNOWN, all others with UNAVAILABLE. Nothing is repeated here.
// States: down; opening (a thread of its own opens it, says `open` and waits for the answer to that); up. Ready makes one attempt each time that it
//   finds it down, and none any more after a server has said that it does not know such streams.
// While no call is under way the stream's thread rests: of the threads that wait for gRPC one polls for all, and has to wake who is meant; a thread
//   that waits for nothing would be a change of threads for each answer to a session. It rests once nothing has come for a while, looks
//   now and then whether the stream is still there, and is woken by whoever submits.
//   Both sides store first and look then: the thread resting_, then what is under way; who submits his call, then resting_.
// Lifetime of the gRPC stream object: as in grpc_data_stream.h.
// Thread-safety: all methods from any thread. REQUIRES: nobody is inside a method when it is destroyed.
#ifndef PROTOCOL_GRPC_ONE_SHOTS_H_
#define PROTOCOL_GRPC_ONE_SHOTS_H_

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
#include "protocol/one_shot_channel.h"
#include "protocol/one_shot_multiplexer.h"
#include "protocol/rpc_event_wait.h"
#include "protocol/rpc_peer.h"
#include "protocol/transaction_service.grpc.pb.h"

namespace deut {

class GrpcOneShots final : public OneShotChannel {
 public:
  // `look`: how often a resting thread looks.
  GrpcOneShots(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, Duration look = milliseconds(100));
  ~GrpcOneShots() override;
  GrpcOneShots(const GrpcOneShots&) = delete;
  GrpcOneShots& operator=(const GrpcOneShots&) = delete;

  bool Ready() override;
  Timestamp not_before() const override { return Timestamp(not_before_.load(std::memory_order_relaxed)); }
  bool Execute(absl::Span<OneShotTransaction> transactions, Deadline deadline) override;

 private:
  using Stream = grpc::ClientAsyncReaderWriter<wire::OneShotCalls, wire::OneShotAnswers>;

  void Run();
  // From opening to the end of one stream; says why it ended.
  Status RunStream();
  // The next event of the stream; rests where it may.
  void AwaitEvent(void** tag, bool* ok);
  void Rest();
  void EndRest();
  // The answer to `open`.
  Status TakeOpened();
  // REQUIRES: the caller has the sender's role; passes it to the event of the write, or gives it up.
  void SendNext();
  // The answer to a call, checked against what was asked.
  Result<CommitAnswer> Take(OneShotCall& call, const OneShotTransaction& transaction);
  Status TakeResults(OneShotCall& call, const OneShotTransaction& transaction) const;
  bool stopping() const { return stop_.load(std::memory_order_seq_cst); }

  Runtime& runtime_;
  const Duration look_;
  const std::shared_ptr<const RpcPeer> peer_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<wire::TransactionService::Stub> stub_;
  OneShotMultiplexer multiplexer_;
  std::atomic<bool> up_{false};  // what the multiplexer says, to look at without its lock
  std::atomic<bool> unknown_{false};
  std::atomic<uint64_t> not_before_{0};
  RpcEventWait wait_;
  grpc::CompletionQueue events_;
  std::unique_ptr<Stream> stream_;  // see above
  wire::OneShotCalls outgoing_;     // the role holder's
  wire::OneShotAnswers incoming_;   // the thread's

  Mutex context_mutex_;
  grpc::ClientContext* context_ DEUT_GUARDED_BY(context_mutex_) = nullptr;  // of the current stream, for cancelling it
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> wanted_{0};  // odd: an attempt is wanted or under way
  std::atomic<uint32_t> resting_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_ONE_SHOTS_H_

// GrpcOneShots: the stream of one-shot transactions to a transaction component, on a channel of its own. It is opened
// on demand, and again after it has broken.
//
// Execute waits only for its answers, never for the network. A thread that finds the sender's role free starts a write,
// which gRPC finishes in the background. The event loop runs the rest: the end of a write sends the calls queued
// meanwhile, and answers wake their callers (one_shot_multiplexer.h).
// When the stream breaks, calls that were sent and write something end with OUTCOME_UNKNOWN, all others with
// UNAVAILABLE. This class never retries a call.
// States: down; opening; up. To open, the stream's thread, which only opens and ends streams, starts the stream, sends
// `open` and waits for the answer. Each Ready that finds the stream down starts one attempt. After a server has said
// that it does not know such streams, there are no more attempts.
// Lifetime of the gRPC stream object, events and lock: rpc_event_stream.h. The right to write is the multiplexer's
// sender's role; before the stream is up, the write of `open` has it.
// Thread-safety: any thread may call any method. REQUIRES: no thread is inside a method when the object is destroyed.
// Ownership: borrows the loop.
#ifndef PROTOCOL_TRANSACTIONS_GRPC_ONE_SHOTS_H_
#define PROTOCOL_TRANSACTIONS_GRPC_ONE_SHOTS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/adaptive_spin.h"
#include "common/sync/mutex.h"
#include "grpcpp/channel.h"
#include "protocol/rpc/rpc_event.h"
#include "protocol/rpc/rpc_event_stream.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/transactions/one_shot_channel.h"
#include "protocol/transactions/one_shot_multiplexer.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"

namespace deut {

class GrpcOneShots final : public OneShotChannel, private RpcEventStream<wire::OneShotCalls, wire::OneShotAnswers> {
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
  void OnOpenLocked() override DEUT_REQUIRES(mutex_);
  bool OnRead() override;
  void OnWrittenLocked() override DEUT_REQUIRES(mutex_);
  bool StopWritingLocked() override DEUT_REQUIRES(mutex_);
  void OnLastWriteLocked(bool ok) override DEUT_REQUIRES(mutex_);

  // The answer to `open` has been read. True: it is valid, and the stream goes on.
  bool OpenedLocked() DEUT_REQUIRES(mutex_);
  // The answer to `open` is valid, and `open` was sent.
  void UpLocked() DEUT_REQUIRES(mutex_);

  // The body of the stream's thread.
  void OpenWhenWanted();
  // Runs one stream from its opening to its end, and returns why it ended.
  Status RunOne();
  // Checks the answer to `open`.
  Status CheckOpenAnswer();
  // REQUIRES: the caller has the sender's role. Passes the role to the event of the write, or gives it up.
  void SendNext();
  // Returns the answer to a call, checked against its operations.
  Result<CommitAnswer> CheckedAnswer(OneShotCall& call, const OneShotTransaction& transaction);
  Status MoveResults(OneShotCall& call, const OneShotTransaction& transaction) const;

  const std::shared_ptr<const RpcPeer> peer_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<wire::TransactionService::Stub> stub_;
  OneShotMultiplexer multiplexer_;
  std::atomic<bool> up_{false};  // a copy of the multiplexer's state, readable without its lock
  std::atomic<bool> not_supported_{false};
  std::atomic<uint64_t> not_before_{0};
  AdaptiveSpin spin_;                            // shared by the threads that wait for answers
  Status refused_ DEUT_GUARDED_BY(mutex_);       // the refusal with which the server answered `open`
  bool opened_ DEUT_GUARDED_BY(mutex_) = false;  // the answer to `open` has come
  bool sent_ DEUT_GUARDED_BY(mutex_) = false;    // `open` has been sent
  std::atomic<uint32_t> wanted_{0};              // odd: an attempt is wanted or in progress
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_GRPC_ONE_SHOTS_H_

// GrpcSession: the client side of one Session stream. Its errors are those of grpc_transaction_service.h.
// Thread-safety: only one thread at a time may use it. Ownership: borrows the event loop.
#ifndef PROTOCOL_TRANSACTIONS_GRPC_SESSION_H_
#define PROTOCOL_TRANSACTIONS_GRPC_SESSION_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/pipelined_call.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/rpc_stream.h"
#include "protocol/transaction_service.h"
#include "protocol/wire/namespace.h"
#include "protocol/wire/transaction_service.grpc.pb.h"

namespace deut {

// How long after a call's deadline the client still waits for the answer.
constexpr Duration kAnswerGrace = milliseconds(20);

// How long Abort waits for its answer. Its caller wants to go on, and cannot use the answer.
constexpr Duration kAbortWait = milliseconds(250);

class GrpcSession final : public TransactionSession, private PipelinedSteps {
 public:
  // Borrows the loop.
  GrpcSession(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, RpcEventLoop& loop)
      : runtime_(runtime), peer_(peer), stream_(runtime, std::move(peer), loop) {}

  // Opens the stream and exchanges versions. REQUIRES, of all other methods: Open has returned OK.
  Status Open(wire::TransactionService::Stub& stub, Deadline deadline);

  Timestamp not_before() const override { return not_before_; }
  Result<Timestamp> Begin(const TransactionOptions& options, Deadline deadline) override;
  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                 Deadline deadline) override;
  PipelinedSteps* pipelined_steps() override { return this; }
  Result<CommitAnswer> Commit(Deadline deadline) override;
  Status Abort() override;
  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                      std::vector<OperationResult>* results, Deadline deadline) override;

 private:
  // The meaning of a missing answer to the caller. kPerhapsCommitted: the status becomes OUTCOME_UNKNOWN.
  enum class LostAnswer : uint8_t { kNotCommitted, kPerhapsCommitted };

  bool SendPipelined(Token token, absl::Span<const Operation> operations, Deadline deadline) override;
  Status AwaitPipelined(Token token, absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                        Deadline deadline) override;
  // Returns the empty request of the next call.
  wire::SessionRequest* NewRequest();
  // Sends the request and waits for its answer. Appends the results to `results`, checked against `operations`. Returns
  // the answer's own status, or how the call failed.
  Status Call(absl::Span<const Operation> operations, std::vector<OperationResult>* results, LostAnswer lost,
              Deadline deadline);
  // The two halves of Call.
  Status Send(Deadline deadline);
  Status Receive(absl::Span<const Operation> operations, std::vector<OperationResult>* results, LostAnswer lost,
                 Deadline deadline);
  Status MoveResults(absl::Span<const Operation> operations, size_t* taken, std::vector<OperationResult>* results);
  Status ExecuteSome(absl::Span<const Operation> operations, std::vector<OperationResult>* results, Deadline deadline);
  Result<CommitAnswer> ReadCommitAnswer(const Status& status);
  // Closes the session, and returns the status for the caller.
  Status Fail(Status status, LostAnswer lost);

  Runtime& runtime_;
  const std::shared_ptr<const RpcPeer> peer_;
  RpcStream<wire::SessionRequests, wire::SessionAnswers> stream_;
  wire::SessionRequests request_;
  wire::SessionAnswers answers_;
  int next_answer_ = 0;         // the first answer of answers_ that is not taken yet
  wire::SessionAnswer answer_;  // the last answer of the call
  Timestamp not_before_;        // as the TC said at the opening, or the timestamp of a later transaction
  bool wrote_ = false;          // since the last begin or commit, an operation that writes has been sent
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_GRPC_SESSION_H_

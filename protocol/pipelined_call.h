// PipelinedCall: operations of an open transaction that are in flight before their caller waits for the answer.
//
// A session answers in the order of its requests. So a call in flight owns its session, and Await, its only method,
// gives the session back: nobody can make another call on the session before. If the call is destroyed without Await,
// it closes the session, because nobody would take its answer. That aborts the transaction.
// Thread-safety: one thread at a time. Ownership: owns the session; borrows the operations and their views until Await
// has returned, or the call is destroyed.
#ifndef PROTOCOL_PIPELINED_CALL_H_
#define PROTOCOL_PIPELINED_CALL_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/transaction_service.h"

namespace deut {

// The two steps of a pipelined call, as a session implements them. Only PipelinedCall makes a Token, and it takes the
// steps in their order. A session that wraps another one passes the token on.
class PipelinedSteps {
 public:
  class Token {
    friend class PipelinedCall;
    Token() = default;
  };

  // Returns false if nothing was sent, because the session cannot send now.
  virtual bool SendPipelined(Token token, absl::Span<const Operation> operations, Deadline deadline) = 0;
  // Waits for the answer to these operations, which were sent last. Returns it as Execute does.
  virtual Status AwaitPipelined(Token token, absl::Span<const Operation> operations,
                                std::vector<OperationResult>* results, Deadline deadline) = 0;

 protected:
  ~PipelinedSteps() = default;
};

class [[nodiscard]] PipelinedCall {
 public:
  // Sends the operations on *session, and takes the session. Returns nothing, and leaves the session, if nothing was
  // sent, because the session cannot do so, or cannot do so now.
  static std::optional<PipelinedCall> Send(std::unique_ptr<TransactionSession>* session,
                                           absl::Span<const Operation> operations, Deadline deadline);
  PipelinedCall(PipelinedCall&&) = default;
  PipelinedCall& operator=(PipelinedCall&&) = default;

  // Waits for the answer and returns it, as Execute does. Gives the session back, also after a failure.
  Status Await(std::vector<OperationResult>* results, Deadline deadline,
               std::unique_ptr<TransactionSession>* session) &&;

 private:
  PipelinedCall(std::unique_ptr<TransactionSession> session, PipelinedSteps* steps,
                absl::Span<const Operation> operations);

  std::unique_ptr<TransactionSession> session_;  // null after Await
  PipelinedSteps* steps_;                        // of the session
  absl::Span<const Operation> operations_;
};

}  // namespace deut

#endif  // PROTOCOL_PIPELINED_CALL_H_

#include "protocol/pipelined_call.h"

#include <utility>

#include "common/base/check.h"

namespace deut {

PipelinedCall::PipelinedCall(std::unique_ptr<TransactionSession> session, PipelinedSteps* steps,
                             absl::Span<const Operation> operations)
    : session_(std::move(session)), steps_(steps), operations_(operations) {}

std::optional<PipelinedCall> PipelinedCall::Send(std::unique_ptr<TransactionSession>* session,
                                                 absl::Span<const Operation> operations, Deadline deadline) {
  PipelinedSteps* const steps = (*session)->pipelined_steps();
  if (steps == nullptr || !steps->SendPipelined(PipelinedSteps::Token(), operations, deadline)) return std::nullopt;
  return PipelinedCall(std::move(*session), steps, operations);
}

Status PipelinedCall::Await(std::vector<OperationResult>* results, Deadline deadline,
                            std::unique_ptr<TransactionSession>* session) && {
  DEUT_DCHECK(session_ != nullptr);  // neither moved from nor awaited
  Status status = steps_->AwaitPipelined(PipelinedSteps::Token(), operations_, results, deadline);
  *session = std::move(session_);
  return status;
}

}  // namespace deut

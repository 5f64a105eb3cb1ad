#include "tc/client/transaction_state.h"

#include <utility>

namespace deut {
TransactionState::TransactionState(ClientCore* core, ClientCore::Begun begun, Deadline limit, WrittenKeys* trail)
    : core_(core),
      session_(std::move(begun.session)),
      timestamp_(begun.timestamp),
      name_(begun.name),
      limit_(limit),
      trail_(trail) {}

TransactionState::~TransactionState() {
  // Nobody is left to be told of a failure; closing the session aborts as well.
  if (open()) (void)Abort();
}

Status TransactionState::Ended() const {
  switch (phase_) {
    case Phase::kCommitted:
      return DEUT_ERROR(kWrongState, "the transaction has been committed");
    case Phase::kAborted:
      return DEUT_ERROR(kWrongState, "the transaction has been aborted by its owner");
    case Phase::kOpen:
    case Phase::kEnded:
      break;
  }
  return status_;
}

void TransactionState::End(Phase phase, const Status& status) {
  phase_ = phase;
  status_ = status;
  core_->Release(std::move(session_), status);
  session_.reset();
}

Status TransactionState::Execute(absl::Span<const Operation> batch, std::vector<OperationResult>* answers,
                                 const CallOptions& call) {
  answers->clear();
  if (!open()) return Ended();
  if (trail_ != nullptr) {
    for (const Operation& operation : batch) {
      if (WritesItsKey(operation)) trail_->Add(operation.table, operation.key);
    }
  }
  Status status = session_->Execute(batch, answers, core_->DeadlineFor(call, limit_));
  if (!LeavesOpen(status)) {
    End(Phase::kEnded, status);
  } else if (status.ok() && answers->size() != batch.size()) {
    // A peer that answers something else than was asked is not to be trusted with the rest.
    status = DEUT_ERROR(kInternal, "asked for ", batch.size(), " operations, got ", answers->size(), " results");
    End(Phase::kEnded, status);
  }
  return status;
}

Result<CommitAnswer> TransactionState::Commit(const CallOptions& call) {
  if (!open()) return Ended();
  const Deadline deadline = core_->DeadlineFor(call, limit_);
  Result<CommitAnswer> answer = session_->Commit(deadline);
  if (answer.status() == ErrorCode::kOutcomeUnknown) {
    session_.reset();  // whatever it still carries belongs to nobody
    answer = core_->Settle(name_, answer.status(), deadline);
  }
  if (answer.ok()) {
    End(Phase::kCommitted, Status());
  } else {
    End(Phase::kEnded, answer.status());
  }
  return answer;
}

Status TransactionState::Abort() {
  if (phase_ == Phase::kCommitted) return Ended();
  if (!open()) return Status();
  const Status status = session_->Abort();
  if (!status.ok()) session_.reset();  // closed, which aborts
  phase_ = Phase::kAborted;
  core_->Release(std::move(session_), Status());
  session_.reset();
  return Status();
}

}  // namespace deut

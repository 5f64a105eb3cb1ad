#include "tc/client/transaction_state.h"

#include <algorithm>
#include <utility>

namespace deut {
namespace {

// A batch takes a round trip, and the time that the data component needs for it.
constexpr Duration kAheadPatience = seconds(2);
constexpr Duration kAbortPatience = milliseconds(500);

}  // namespace

TransactionState::TransactionState(ClientCore* core, ClientCore::Begun begun, Deadline limit, WrittenKeys* trail)
    : core_(core),
      session_(std::move(begun.session)),
      timestamp_(begun.timestamp),
      name_(begun.name),
      limit_(limit),
      trail_(trail) {
  results = std::move(session_->results);
  batch_memory_ = std::move(session_->batch);
}

TransactionState::~TransactionState() {
  // No caller is left to be told of a failure. Closing the session aborts as well.
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

void TransactionState::GiveMemoryBack() {
  if (session_ == nullptr) return;
  session_->results = std::move(results);
  session_->batch = std::move(batch_memory_);
}

Status TransactionState::Execute(absl::Span<const Operation> batch, std::vector<OperationResult>* answers,
                                 const CallOptions& call) {
  Settle(call);
  if (!open()) {
    answers->clear();
    return Ended();
  }
  if (trail_ != nullptr) {
    for (const Operation& operation : batch) {
      if (WritesItsKey(operation)) trail_->Add(operation.table, operation.key);
    }
  }
  Status status = session_->calls->Execute(batch, answers, core_->DeadlineFor(call, limit_));
  if (!LeavesOpen(status)) {
    End(Phase::kEnded, status);
  } else if (status.ok() && answers->size() != batch.size()) {
    // If a peer's answer does not fit the request, it is not trusted with the rest.
    status = DEUT_ERROR(kInternal, "asked for ", batch.size(), " operations, got ", answers->size(), " results");
    End(Phase::kEnded, status);
  }
  return status;
}

uint64_t TransactionState::SendAhead(const Operation& scan, const CallOptions& call) {
  // While two scans alternate the first one keeps its place. A scan that was given up loses it.
  constexpr uint32_t kPatience = 2;
  if (!open() || (ahead_.number != 0 && ahead_.passed_over++ < kPatience)) return 0;
  Settle(call);
  if (!open()) return 0;
  ahead_ = Ahead();
  ahead_.low = scan.low;
  ahead_.high = scan.high;
  ahead_.scan = scan;
  ahead_.scan.low = ahead_.low;
  ahead_.scan.high = ahead_.high;
  ahead_.scan.ahead = true;
  // Later requests of this session wait for the batch, so it is given up early. A scanner that needs it asks again,
  // with the time of a whole call.
  const Deadline deadline =
      std::min<Deadline>(core_->DeadlineFor(call, limit_), core_->runtime().Now() + kAheadPatience);
  ahead_.on_its_way = session_->calls->SendAhead(absl::MakeConstSpan(&ahead_.scan, 1), deadline);
  if (ahead_.on_its_way) ahead_.number = ++sent_ahead_;
  return ahead_.number;
}

bool TransactionState::TakeAhead(uint64_t number, std::vector<OperationResult>* answers, Status* status,
                                 const CallOptions& call) {
  if (number == 0 || number != ahead_.number) return false;
  Settle(call);
  ahead_.number = 0;
  if (open() && ahead_.status.ok() && !ahead_.results[0].status.ok()) return false;
  *status = open() ? std::move(ahead_.status) : Ended();
  *answers = std::move(ahead_.results);
  return true;
}

void TransactionState::Settle(Deadline deadline) {
  if (!ahead_.on_its_way || !open()) return;
  ahead_.on_its_way = false;
  ahead_.status = session_->calls->TakeAhead(&ahead_.results, deadline);
  if (ahead_.status.ok() && ahead_.results.size() != 1) {
    ahead_.status = DEUT_ERROR(kInternal, "asked for a batch of a scan, got ", ahead_.results.size(), " results");
    End(Phase::kEnded, ahead_.status);
  } else if (!LeavesOpen(ahead_.status)) {
    End(Phase::kEnded, ahead_.status);
  }
}

Result<CommitAnswer> TransactionState::Commit(const CallOptions& call) {
  Settle(call);
  if (!open()) return Ended();
  const Deadline deadline = core_->DeadlineFor(call, limit_);
  Result<CommitAnswer> answer = session_->calls->Commit(deadline);
  if (answer.status() == ErrorCode::kOutcomeUnknown) {
    session_.reset();  // an answer that it still carries is nobody's
    answer = core_->Settle(name_, answer.status(), deadline);
  }
  if (answer.ok()) {
    GiveMemoryBack();
    End(Phase::kCommitted, Status());
  } else {
    End(Phase::kEnded, answer.status());
  }
  return answer;
}

Status TransactionState::Abort() {
  if (phase_ == Phase::kCommitted) return Ended();
  if (!open()) return Status();
  // The session answers the abort after the batch that was sent for, and the caller expects its writes to be gone
  // when Abort returns. If the batch does not come soon, and before the transaction's limit, the session is closed.
  // That aborts as soon as the other side sees it.
  Settle(std::min<Deadline>(limit_, core_->runtime().Now() + kAbortPatience));
  if (!open()) {
    phase_ = Phase::kAborted;
    status_ = Status();
    return Status();
  }
  const Status status = session_->calls->Abort();
  if (!status.ok()) session_.reset();  // closing it aborts
  phase_ = Phase::kAborted;
  GiveMemoryBack();
  core_->Release(std::move(session_), Status());
  session_.reset();
  return Status();
}

}  // namespace deut

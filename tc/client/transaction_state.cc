#include "tc/client/transaction_state.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace deut {
namespace {

// A batch takes a round trip, and the time that the data component needs for it.
constexpr Duration kPrefetchTimeout = seconds(2);
constexpr Duration kAbortTimeout = milliseconds(500);

}  // namespace

TransactionState::TransactionState(ClientCore* core, ClientCore::Begun begun, Deadline limit, WrittenKeys* written_keys)
    : core_(core),
      session_(std::move(begun.session)),
      timestamp_(begun.timestamp),
      name_(begun.name),
      limit_(limit),
      written_keys_(written_keys) {
  DEUT_DCHECK(session_ != nullptr);
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
  DEUT_DCHECK(open());  // the end is final
  DEUT_DCHECK(status.ok() == (phase == Phase::kCommitted));
  DEUT_DCHECK(!prefetch_.in_flight);  // else the session would go back without its calls
  phase_ = phase;
  status_ = status;
  core_->Release(std::move(session_), status);
  session_.reset();
}

TransactionSession& TransactionState::Calls() {
  DEUT_DCHECK(session_ != nullptr);         // an open transaction has its session
  DEUT_DCHECK(session_->calls != nullptr);  // a batch in flight would have them
  return *session_->calls;
}

void TransactionState::ReturnSessionMemory() {
  if (session_ == nullptr) return;
  session_->results = std::move(results);
  session_->batch = std::move(batch_memory_);
}

Status TransactionState::Execute(absl::Span<const Operation> batch, std::vector<OperationResult>* answers,
                                 const CallOptions& call) {
  AwaitPrefetch(call);
  if (!open()) {
    answers->clear();
    return Ended();
  }
  if (written_keys_ != nullptr) {
    for (const Operation& operation : batch) {
      if (WritesItsKey(operation)) written_keys_->Add(operation.table, operation.key);
    }
  }
  Status status = Calls().Execute(batch, answers, core_->DeadlineFor(call, limit_));
  if (!KeepsTransactionOpen(status)) {
    End(Phase::kEnded, status);
  } else if (status.ok() && answers->size() != batch.size()) {
    // If a peer's answer does not fit the request, it is not trusted with the rest.
    status = DEUT_ERROR(kInternal, "asked for ", batch.size(), " operations, got ", answers->size(), " results");
    End(Phase::kEnded, status);
  }
  return status;
}

uint64_t TransactionState::PrefetchBatch(const Operation& scan, const CallOptions& call) {
  // While two scans alternate the first one keeps its place. A scan that was given up loses it.
  constexpr uint32_t kMaxPassedOver = 2;
  if (!open() || (prefetch_.number != 0 && prefetch_.passed_over++ < kMaxPassedOver)) return 0;
  AwaitPrefetch(call);
  if (!open()) return 0;
  prefetch_.number = 0;
  prefetch_.passed_over = 0;
  prefetch_.status = Status();
  prefetch_.results.clear();
  prefetch_.low = scan.low;
  prefetch_.high = scan.high;
  prefetch_.scan = scan;
  prefetch_.scan.low = prefetch_.low;
  prefetch_.scan.high = prefetch_.high;
  prefetch_.scan.prefetch = true;
  // Later requests of this session wait for the batch, so it is given up early. A scanner that needs it asks again,
  // with the time of a whole call.
  const Deadline deadline =
      std::min<Deadline>(core_->DeadlineFor(call, limit_), core_->runtime().Now() + kPrefetchTimeout);
  prefetch_.in_flight = PipelinedCall::Send(&session_->calls, absl::MakeConstSpan(&prefetch_.scan, 1), deadline);
  if (prefetch_.in_flight) prefetch_.number = ++prefetches_sent_;
  return prefetch_.number;
}

bool TransactionState::UsePrefetchedBatch(uint64_t number, std::vector<OperationResult>* answers, Status* status,
                                          const CallOptions& call) {
  if (number == 0 || number != prefetch_.number) return false;
  AwaitPrefetch(call);
  prefetch_.number = 0;
  if (open() && prefetch_.status.ok() && !prefetch_.results[0].status.ok()) return false;
  *status = open() ? std::move(prefetch_.status) : Ended();
  *answers = std::move(prefetch_.results);
  return true;
}

void TransactionState::AwaitPrefetch(Deadline deadline) {
  if (!prefetch_.in_flight) return;
  prefetch_.status = std::move(*prefetch_.in_flight).Await(&prefetch_.results, deadline, &session_->calls);
  prefetch_.in_flight.reset();
  if (prefetch_.status.ok() && prefetch_.results.size() != 1) {
    prefetch_.status = DEUT_ERROR(kInternal, "asked for a batch of a scan, got ", prefetch_.results.size(), " results");
    End(Phase::kEnded, prefetch_.status);
  } else if (!KeepsTransactionOpen(prefetch_.status)) {
    End(Phase::kEnded, prefetch_.status);
  }
}

Result<CommitAnswer> TransactionState::Commit(const CallOptions& call) {
  AwaitPrefetch(call);
  if (!open()) return Ended();
  const Deadline deadline = core_->DeadlineFor(call, limit_);
  Result<CommitAnswer> answer = Calls().Commit(deadline);
  if (answer.status() == ErrorCode::kOutcomeUnknown) {
    session_.reset();  // an answer that it still carries is nobody's
    answer = core_->AskForOutcome(name_, answer.status(), deadline);
  }
  if (answer.ok()) {
    ReturnSessionMemory();
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
  AwaitPrefetch(std::min<Deadline>(limit_, core_->runtime().Now() + kAbortTimeout));
  if (!open()) {
    phase_ = Phase::kAborted;
    status_ = Status();
    return Status();
  }
  const Status status = Calls().Abort();
  if (!status.ok()) session_.reset();  // closing it aborts
  phase_ = Phase::kAborted;
  ReturnSessionMemory();
  core_->Release(std::move(session_), Status());
  session_.reset();
  return Status();
}

}  // namespace deut

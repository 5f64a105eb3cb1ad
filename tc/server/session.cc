#include "tc/server/session.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/runtime/coarse_time.h"
#include "common/testing/test_points.h"
#include "tc/server/restarts.h"
#include "tc/server/session_registry.h"

namespace deut::tc {
namespace {

// An operation that fails with one of these codes has done nothing, and the transaction goes on.
bool KeepsTransactionOpen(ErrorCode code) {
  return code == ErrorCode::kOk || code == ErrorCode::kAlreadyExists || code == ErrorCode::kNotFound ||
         code == ErrorCode::kInvalidArgument || code == ErrorCode::kConditionFailed || code == ErrorCode::kWrongState;
}

// A scan changes nothing that others see but the last_read that it has raised, which only ever refuses others. So a
// scan that was asked for ahead of need, and fails, counts as if it had not been asked for. Records delivered before
// are based on earlier raises and looks. If the client wants the batch after all it asks again, and the conflict is
// decided then. This holds only for a conflict, and for want of the DC, of time or of room. An error that reports
// damage is reported.
bool MayFail(const Operation& operation, ErrorCode code) {
  return operation.kind == OperationKind::kScan && operation.prefetch && DEUT_STEP("R8.ahead_leaves_open") &&
         (code == ErrorCode::kAborted || code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded ||
          code == ErrorCode::kResourceExhausted || code == ErrorCode::kWrongIncarnation);
}

AbortReason ReasonOf(const Status& status) {
  return status.abort() != nullptr ? status.abort()->reason : AbortReason::kFailedOperation;
}

Status NotRun() { return DEUT_ERROR(kWrongState, "not run: an earlier operation of the batch ended the transaction"); }

// Empties results, but keeps their buffers, because a long scan is answered into the same one over and over.
void ResetResults(std::vector<OperationResult>* results, size_t count) {
  results->resize(count);
  for (OperationResult& result : *results) {
    result.status = Status();
    result.records.Clear();
    result.removed = 0;
    result.complete = false;
    result.resume.clear();
    result.scan_sequence = 0;
    result.failed_precondition_at = Timestamp{0};
  }
}

}  // namespace

// Holds the claim word of the session.
class Session::Claim {
 public:
  explicit Claim(Session& session) : session_(session) {
    uint32_t free = 0;
    if (session_.claim_.compare_exchange_strong(free, 1, std::memory_order_acquire)) return;
    // A waiter leaves 2 behind even when it gets the claim, so that its release wakes the other waiters.
    while (session_.claim_.exchange(2, std::memory_order_acquire) != 0) {
      session_.runtime_.Wait(session_.claim_, 2, kNoDeadline);
    }
  }
  ~Claim() {
    // Only the reaper uses the time, and it looks only at open transactions.
    if (session_.txn_) session_.last_use_ = CoarseNow(session_.runtime_);
    session_.Unclaim();
  }

 private:
  Session& session_;
};

bool Session::TryClaim() {
  uint32_t free = 0;
  return claim_.compare_exchange_strong(free, 1, std::memory_order_acquire);
}

void Session::Unclaim() {
  // Loaded before the exchange, after which another thread may destroy the session.
  Runtime& runtime = runtime_;
  const uint32_t claimed = claim_.exchange(0, std::memory_order_release);
  DEUT_DCHECK(claimed == 1 || claimed == 2);
  if (claimed == 2) runtime.WakeAll(claim_);
}

Session::Session(RecordManager& records, Runtime& runtime, std::function<Status()> serving, SessionRegistry& registry)
    : records_(records),
      runtime_(runtime),
      serving_(std::move(serving)),
      registry_(registry),
      last_use_(runtime.Now()) {
  registry_.Enter(this);
}

Session::~Session() {
  registry_.Leave(this);
  AbortNow(AbortReason::kRequested);
}

void Session::AbortNow(AbortReason reason) {
  const Claim claim(*this);
  AbortLocked(reason);
}

void Session::AbortLocked(AbortReason reason) {
  if (!txn_) return;
  records_.Abort(*txn_, reason);
  DEUT_DCHECK(txn_->state() != Transaction::State::kOpen);  // a spare transaction has ended
  spare_transaction_ = std::move(txn_);
}

void Session::ReapIfIdle(MonotonicTime used_before) {
  if (!TryClaim()) return;  // in use: not idle
  if (txn_ && last_use_ < used_before) {
    unreported_end_ =
        Status::Aborted(AbortInfo{.reason = AbortReason::kIdle},
                        Concat("transaction ", txn_->timestamp().value, " was idle for too long (--idle_timeout)"));
    AbortLocked(AbortReason::kIdle);
  }
  Unclaim();
}

bool Session::EvictedLocked() {
  if (!txn_ || txn_->timestamp().value != evicted_.load(std::memory_order_relaxed)) return false;
  unreported_end_ = records_.OverBudgetAbort(*txn_);
  AbortLocked(AbortReason::kOverBudget);
  return true;
}

void Session::Evict(Timestamp timestamp) {
  evicted_.store(timestamp.value, std::memory_order_relaxed);
  if (!TryClaim()) return;
  EvictedLocked();
  Unclaim();
}

void Session::EndIdleStreams(MonotonicTime used_before) {
  if (!TryClaim()) return;
  if (txn_) RecordManager::EndIdleStreams(*txn_, used_before);
  Unclaim();
}

Status Session::NoTransaction() const {
  if (!unreported_end_.ok()) return unreported_end_;
  return DEUT_ERROR(kWrongState, "no transaction is open in this session: begin one first");
}

Timestamp Session::not_before() const { return records_.next_timestamp(); }

Result<Timestamp> Session::Begin(const TransactionOptions& options, Deadline deadline) {
  const Claim claim(*this);
  DEUT_RETURN_IF_ERROR(BeginLocked(options, deadline));
  return txn_->timestamp();
}

Status Session::CheckMayBegin() {
  DEUT_RETURN_IF_ERROR(serving_());
  if (txn_)
    return DEUT_ERROR(kWrongState, "begin: transaction ", txn_->timestamp().value, " of this session is open already");
  unreported_end_ = Status();
  if (evicted_.load(std::memory_order_relaxed) != 0) evicted_.store(0, std::memory_order_relaxed);
  return Status::Ok();
}

Status Session::BeginLocked(const TransactionOptions& options, Deadline deadline, PrefetchedScan* begun) {
  DEUT_RETURN_IF_ERROR(CheckMayBegin());
  if (begun != nullptr) txn_ = begun->TakeTransaction();
  if (txn_ == nullptr) {
    DEUT_ASSIGN_OR_RETURN(txn_, records_.Begin(options, deadline, std::move(spare_transaction_)));
  }
  DEUT_DCHECK(txn_->state() == Transaction::State::kOpen);
  return Status::Ok();
}

Status Session::BeginUndeclaredLocked(const TransactionOptions& options, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckMayBegin());
  if (spare_transaction_ == nullptr) spare_transaction_ = std::make_unique<Transaction>();
  return records_.BeginUndeclared(*spare_transaction_, options, deadline);
}

Status Session::Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                        Deadline deadline) {
  const Claim claim(*this);
  return ExecuteLocked(operations, results, deadline);
}

Status Session::ChargeResults(absl::Span<OperationResult> results, size_t* room) {
  for (OperationResult& result : results) {
    const size_t bytes = result.records.bytes().size();
    if (bytes > *room) {
      result = OperationResult{};
      result.status = DEUT_ERROR(kInvalidArgument, "operations: the results of a one-shot transaction exceed ",
                                 kMaxOneShotResultBytes, " bytes; use an interactive transaction, or several");
      return result.status;
    }
    *room -= bytes;
  }
  return Status::Ok();
}

Status Session::ExecuteLocked(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                              Deadline deadline) {
  EvictedLocked();
  ResetResults(results, operations.size());
  Status ended = txn_ ? serving_() : NoTransaction();
  if (ended.ok()) return RunLocked(operations, results, deadline, SIZE_MAX);
  AbortLocked(AbortReason::kFailedOperation);
  for (OperationResult& result : *results) result.status = NotRun();
  return ended;
}

Status Session::RunLocked(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                          Deadline deadline, size_t room) {
  DEUT_DCHECK(results->size() == operations.size());
  Status ended;
  size_t i = 0;
  while (i < operations.size() && ended.ok()) {
    if (RecordManager::HasResumableScans(*txn_))
      RecordManager::EndIdleStreams(*txn_, runtime_.Now() - kStreamIdleTimeout);
    // Neighbouring point reads share one message to the DC: as many as fit even if they find the largest records.
    const size_t first = i;
    size_t end = i + 1;
    if (operations[i].kind == OperationKind::kGet && end < operations.size()) {
      const size_t most =
          i + std::min(operations.size() - i, std::max<size_t>(1, room / (kMaxKeyBytes + kMaxValueBytes)));
      while (end < most && operations[end].kind == OperationKind::kGet) ++end;
    }
    if (end > i + 1) {
      std::vector<const Operation*> gets;
      std::vector<OperationResult*> got;
      for (size_t g = i; g < end; ++g) {
        gets.push_back(&operations[g]);
        got.push_back(&(*results)[g]);
      }
      ended = records_.MultiGet(*txn_, gets, absl::MakeSpan(got), deadline);
      if (!ended.ok()) {
        for (size_t g = i; g < end; ++g) (*results)[g].status = ended;
      }
      i = end;
    } else {
      (*results)[i].status = RunOne(operations[i], &(*results)[i], deadline);
      if (!KeepsTransactionOpen((*results)[i].status.code()) && !MayFail(operations[i], (*results)[i].status.code())) {
        ended = (*results)[i].status;
      }
      ++i;
    }
    if (ended.ok()) ended = ChargeResults(absl::MakeSpan(*results).subspan(first, i - first), &room);
    if (!ended.ok()) AbortLocked(ReasonOf(ended));
    if (i < operations.size() && EvictedLocked()) ended = unreported_end_;
  }
  for (; i < operations.size(); ++i) (*results)[i].status = NotRun();
  DEUT_DCHECK(ended.ok() == (txn_ != nullptr));
  return ended;
}

Status Session::RunOne(const Operation& operation, OperationResult* result, Deadline deadline) {
  if (operation.stamp != Stamp::kNone) return records_.PutStamped(*txn_, operation, &result->records, deadline);
  switch (operation.kind) {
    case OperationKind::kGet:
      return records_.Get(*txn_, operation.table, operation.key, &result->records, deadline);
    case OperationKind::kPut:
      return records_.Put(*txn_, operation.table, operation.key, operation.value);
    case OperationKind::kInsert:
      return records_.Insert(*txn_, operation.table, operation.key, operation.value, deadline);
    case OperationKind::kUpdate:
      return records_.Update(*txn_, operation.table, operation.key, operation.value, deadline);
    case OperationKind::kRemove:
      return records_.Remove(*txn_, operation.table, operation.key);
    case OperationKind::kScan:
      return records_.Scan(*txn_, operation, result, deadline);
    case OperationKind::kAdd:
    case OperationKind::kMin:
    case OperationKind::kMax:
    case OperationKind::kCompareAndSet:
      return records_.Change(*txn_, operation, &result->records, deadline);
    case OperationKind::kRemoveRange:
      return records_.RemoveRange(*txn_, operation, result, deadline);
  }
  return DEUT_ERROR(kInvalidArgument, "unknown kind of operation ", static_cast<int>(operation.kind));
}

Result<CommitAnswer> Session::Commit(Deadline deadline) {
  const Claim claim(*this);
  if (!txn_) return NoTransaction();
  if (Status serving = serving_(); !serving.ok()) {
    AbortLocked(AbortReason::kFailedOperation);
    return serving;
  }
  return CommitLocked(deadline);
}

Result<CommitAnswer> Session::CommitLocked(Deadline deadline, Lsn* durable_at) {
  Result<CommitAnswer> answer = records_.Commit(*txn_, deadline, durable_at);
  if (txn_->state() == Transaction::State::kOpen) records_.Abort(*txn_, AbortReason::kFailedOperation);
  DEUT_DCHECK(!answer.ok() || answer->timestamp == txn_->timestamp());
  DEUT_DCHECK(txn_->state() != Transaction::State::kOpen);
  spare_transaction_ = std::move(txn_);
  return answer;
}

Status Session::Abort() {
  const Claim claim(*this);
  if (!txn_) return NoTransaction();
  AbortLocked(AbortReason::kRequested);
  return Status::Ok();
}

bool Session::NotePrefetch(Token /*token*/, absl::Span<const Operation> operations) {
  if (read_ahead_ == nullptr) read_ahead_ = records_.NewReadAhead();
  bool any = false;
  for (const Operation& operation : operations) any = read_ahead_->Add(operation) || any;
  return any;
}

std::unique_ptr<BegunOneShot> Session::BeginForPrefetch(Token /*token*/, const TransactionOptions& options,
                                                        absl::Span<const Operation> operations) {
  if (!serving_().ok()) return nullptr;
  if (read_ahead_ == nullptr) read_ahead_ = records_.NewReadAhead();
  return read_ahead_->BeginScan(options, operations);
}

Result<CommitAnswer> Session::RunOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                         std::vector<OperationResult>* results, Deadline deadline, Lsn* durable_at,
                                         PrefetchedScan* begun) {
  const Claim claim(*this);
  return WithRestarts(deadline,
                      [&] { return OneShotLocked(options, operations, results, deadline, durable_at, begun); });
}

template <typename Attempt>
auto Session::WithRestarts(Deadline deadline, const Attempt& attempt) -> decltype(attempt()) {
  auto answer = attempt();
  if (answer.ok()) [[likely]]
    return answer;
  Restarts restarts(runtime_, deadline);
  while (!answer.ok() && restarts.Next(answer.status())) {
    records_.CountRestart();
    DEUT_POINT("session.restart");
    answer = attempt();
  }
  return answer;
}

Result<CommitAnswer> Session::OneShotLocked(const TransactionOptions& options, absl::Span<const Operation> operations,
                                            std::vector<OperationResult>* results, Deadline deadline, Lsn* durable_at,
                                            PrefetchedScan* begun) {
  if (durable_at != nullptr) *durable_at = Lsn(0);
  if (begun == nullptr) records_.FetchAhead(operations);
  if (operations.size() == 1 && operations[0].kind == OperationKind::kGet && operations[0].stamp == Stamp::kNone &&
      options.declared.empty()) {
    return ReadAloneLocked(options, operations[0], results, deadline, durable_at);
  }
  if (Status open = BeginLocked(options, deadline, begun); !open.ok()) [[unlikely]] {
    results->clear();
    return open;
  }
  // If the component stops after this call has checked that it serves, the stop waits for the claim.
  ResetResults(results, operations.size());
  DEUT_RETURN_IF_ERROR(RunLocked(operations, results, deadline, kMaxOneShotResultBytes));
  const auto failed = std::ranges::find_if(*results, [](const OperationResult& result) { return !result.status.ok(); });
  const Timestamp timestamp = txn_->timestamp();
  if (failed != results->end() && txn_->wrote()) {
    // Everything that the failed precondition depended on must be durable before the client is told (D1). The writes
    // are undone.
    Status shown = records_.AbortAcknowledged(*txn_, deadline, durable_at);
    DEUT_DCHECK(txn_->state() == Transaction::State::kAborted);
    spare_transaction_ = std::move(txn_);
    if (!shown.ok()) return shown;
    failed->failed_precondition_at = timestamp;
    return failed->status;
  }
  Result<CommitAnswer> answer = CommitLocked(deadline, durable_at);
  if (answer.ok() && failed != results->end()) {
    failed->failed_precondition_at = timestamp;
    return failed->status;
  }
  return answer;
}

// Only this call knows of the transaction. A thread that looks for an idle transaction, or for one to evict, finds
// the claim taken.
Result<CommitAnswer> Session::ReadAloneLocked(const TransactionOptions& options, const Operation& get,
                                              std::vector<OperationResult>* results, Deadline deadline,
                                              Lsn* durable_at) {
  if (Status begun = BeginUndeclaredLocked(options, deadline); !begun.ok()) [[unlikely]] {
    results->clear();
    return begun;
  }
  ResetResults(results, 1);
  Result<CommitAnswer> answer = records_.ReadAlone(*spare_transaction_, get, &results->front(), deadline, durable_at);
  DEUT_DCHECK(spare_transaction_->state() != Transaction::State::kOpen);
  return answer;
}

Result<ScanBegun> Session::BeginScan(const TransactionOptions& options, const Operation& scan,
                                     std::vector<OperationResult>* results, Deadline deadline) {
  const Claim claim(*this);
  return WithRestarts(deadline, [&] { return BeginScanLocked(options, scan, results, deadline); });
}

Result<ScanBegun> Session::BeginScanLocked(const TransactionOptions& options, const Operation& scan,
                                           std::vector<OperationResult>* results, Deadline deadline) {
  ResetResults(results, 1);
  OperationResult& batch = results->front();
  if (!options.declared.empty()) {
    DEUT_RETURN_IF_ERROR(BeginLocked(options, deadline));
    spare_transaction_ = std::move(txn_);
  } else {
    DEUT_RETURN_IF_ERROR(BeginUndeclaredLocked(options, deadline));
  }
  // As in ReadAloneLocked, until the transaction turns out to go on after this call.
  batch.status = records_.Scan(*spare_transaction_, scan, &batch, deadline);
  if (!batch.status.ok()) [[unlikely]] {
    records_.Abort(*spare_transaction_, ReasonOf(batch.status));
    return batch.status;
  }
  if (!IsOver(scan, batch)) {
    DEUT_DCHECK(txn_ == nullptr && spare_transaction_->state() == Transaction::State::kOpen);
    txn_ = std::move(spare_transaction_);
    return ScanBegun{.answer = {.timestamp = txn_->timestamp(), .commit_lsn = Lsn{0}}};
  }
  Result<CommitAnswer> answer = records_.Commit(*spare_transaction_, deadline, nullptr);
  if (spare_transaction_->state() == Transaction::State::kOpen)
    records_.Abort(*spare_transaction_, AbortReason::kFailedOperation);
  if (!answer.ok()) [[unlikely]]
    return answer.status();
  return ScanBegun{.over = true, .answer = *answer};
}

}  // namespace deut::tc

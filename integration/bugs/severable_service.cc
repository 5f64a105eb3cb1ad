#include "integration/bugs/severable_service.h"

#include <utility>

namespace deut::bugs {
namespace {

// For a call that changes nothing, or whose change no client learns of.
template <typename Answer>
Answer Heard(Answer answer, const std::atomic<bool>& severed) {
  if (severed.load(std::memory_order_seq_cst)) return DEUT_ERROR(kDeadlineExceeded, "no answer: the server is cut off");
  return answer;
}

template <typename Answer>
Answer HeardCommit(Answer answer, const std::atomic<bool>& severed) {
  if (severed.load(std::memory_order_seq_cst)) return DEUT_ERROR(kOutcomeUnknown, "no answer: the server is cut off");
  return answer;
}

}  // namespace

class SeverableService::Session final : public TransactionSession {
 public:
  Session(std::unique_ptr<TransactionSession> session, const std::atomic<bool>& severed)
      : session_(std::move(session)), severed_(severed) {}

  Timestamp not_before() const override { return session_->not_before(); }
  Result<Timestamp> Begin(const TransactionOptions& options, Deadline deadline) override {
    return Heard(session_->Begin(options, deadline), severed_);
  }
  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                 Deadline deadline) override {
    Status status = Heard(session_->Execute(operations, results, deadline), severed_);
    if (!severed_.load(std::memory_order_seq_cst)) return status;
    for (OperationResult& result : *results) result.status = status;
    return status;
  }
  Result<CommitAnswer> Commit(Deadline deadline) override { return HeardCommit(session_->Commit(deadline), severed_); }
  Status Abort() override { return session_->Abort(); }
  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                      std::vector<OperationResult>* results, Deadline deadline) override {
    return HeardCommit(session_->ExecuteOneShot(options, operations, results, deadline), severed_);
  }

 private:
  const std::unique_ptr<TransactionSession> session_;
  const std::atomic<bool>& severed_;
};

Result<std::unique_ptr<TransactionSession>> SeverableService::NewSession(Deadline deadline) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<TransactionSession> session, service_.NewSession(deadline));
  return std::unique_ptr<TransactionSession>(std::make_unique<Session>(std::move(session), severed_));
}

Result<OutcomeAnswer> SeverableService::AskOutcome(const TransactionName& name, Deadline deadline) {
  // The question ends a transaction that is still open. It must not do so once the client is cut off, because it
  // would never arrive. The answer OUTCOME_UNKNOWN keeps the client from repeating the question until its timeout,
  // which may be as long as the round.
  if (severed_.load(std::memory_order_seq_cst)) return DEUT_ERROR(kOutcomeUnknown, "no answer: the server is cut off");
  return HeardCommit(service_.AskOutcome(name, deadline), severed_);
}

Result<TableId> SeverableService::OpenTable(std::string_view name, Deadline deadline) {
  return Heard(service_.OpenTable(name, deadline), severed_);
}

Result<TableId> SeverableService::CreateTable(std::string_view name, const TableOptions& options, Deadline deadline) {
  return HeardCommit(service_.CreateTable(name, options, deadline), severed_);
}

Status SeverableService::DropTable(std::string_view name, Deadline deadline) {
  return HeardCommit(service_.DropTable(name, deadline), severed_);
}

Result<std::vector<TableInfo>> SeverableService::ListTables(Deadline deadline) {
  return Heard(service_.ListTables(deadline), severed_);
}

}  // namespace deut::bugs

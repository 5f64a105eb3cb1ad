#include "protocol/transactions/grpc_session.h"

#include <algorithm>
#include <utility>

#include "common/base/concat.h"
#include "protocol/limits.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

// The most bytes of operations in one message. The rest of the message is for the fields around them.
constexpr size_t kOperationBytes = kMaxMessageBytes - (64 << 10);

Status NotRun() { return Status(ErrorCode::kWrongState, "not run: an operation before it ended the transaction"); }

// Results correspond one to one to operations, even if the call ended early.
void FillUp(size_t n, std::vector<OperationResult>* results) {
  while (results->size() < n) {
    results->emplace_back();
    results->back().status = NotRun();
  }
}

// The time until which the client waits for an answer.
Deadline AnswerBy(Deadline deadline) {
  return deadline > kNoDeadline - kAnswerGrace ? kNoDeadline : deadline + kAnswerGrace;
}

}  // namespace

Status GrpcSession::Open(wire::TransactionService::Stub& stub, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(
      stream_.Start([&stub](grpc::ClientContext* context,
                            grpc::CompletionQueue* queue) { return stub.PrepareAsyncSession(context, queue); },
                    deadline));
  NewRequest()->mutable_open()->set_protocol_version(kProtocolVersion);
  DEUT_RETURN_IF_ERROR(Call({}, nullptr, LostAnswer::kNotCommitted, deadline));
  not_before_ = Timestamp(answer_.not_before());
  return CheckProtocolVersion(peer_->name(), answer_.protocol_version());
}

wire::SessionRequest* GrpcSession::NewRequest() {
  request_.Clear();
  return request_.add_requests();
}

Status GrpcSession::Fail(Status status, LostAnswer lost) {
  // Here only the connection, or the wait for it, can have failed. Every other error arrives as an answer.
  const bool nothing_run = !stream_.open() && stream_.nothing_run();
  if (lost == LostAnswer::kPerhapsCommitted && !nothing_run) {
    status = DEUT_ERROR(kOutcomeUnknown, "the answer to the commit is lost: ", status.ToString());
  }
  stream_.Abandon(status);
  return status;
}

Status GrpcSession::Call(absl::Span<const Operation> operations, std::vector<OperationResult>* results, LostAnswer lost,
                         Deadline deadline) {
  DEUT_RETURN_IF_ERROR(Send(deadline));
  return Receive(operations, results, lost, deadline);
}

Status GrpcSession::Send(Deadline deadline) {
  if (!stream_.open()) {
    return DEUT_ERROR(kUnavailable, "the session is closed: ", stream_.status().ToString());
  }
  request_.mutable_requests(0)->set_timeout_us(TimeoutToWire(runtime_, deadline));
  Status sent = stream_.Write(request_, AnswerBy(deadline));
  return sent.ok() ? sent : Fail(std::move(sent), LostAnswer::kNotCommitted);
}

Status GrpcSession::Receive(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                            LostAnswer lost, Deadline deadline) {
  const Deadline wait = AnswerBy(deadline);
  size_t taken = 0;
  do {
    while (next_answer_ == answers_.answers_size()) {
      next_answer_ = 0;
      answers_.Clear();
      Status read = stream_.Read(&answers_, wait);
      if (!read.ok()) return Fail(std::move(read), lost);
    }
    answer_.Swap(answers_.mutable_answers(next_answer_++));
    Status valid = MoveResults(operations, &taken, results);
    if (!valid.ok()) return Fail(std::move(valid), lost);
  } while (answer_.more());
  Status status = FromWire(answer_.status());
  if (!status.ok() && results != nullptr)
    SetFailedPreconditionAt(Timestamp(answer_.timestamp()), absl::MakeSpan(*results));
  return status;
}

bool GrpcSession::SendPipelined(Token /*token*/, absl::Span<const Operation> operations, Deadline deadline) {
  if (operations.empty() || operations.size() > size_t{kMaxOperationsPerCall}) return false;
  wire::Execute* execute = NewRequest()->mutable_execute();
  size_t bytes = 0;
  for (const Operation& operation : operations) {
    bytes += WireBytes(operation);
    if (!CheckOperation(operation).ok() || bytes > kOperationBytes) return false;
    ToWire(operation, execute->add_operations());
    wrote_ = wrote_ || Writes(operation.kind);
  }
  return Send(deadline).ok();  // after a failure the session is closed, and the next call on it says so
}

Status GrpcSession::AwaitPipelined(Token /*token*/, absl::Span<const Operation> operations,
                                   std::vector<OperationResult>* results, Deadline deadline) {
  results->clear();
  Status status = Receive(operations, results, LostAnswer::kNotCommitted, deadline);
  FillUp(operations.size(), results);
  return status;
}

Status GrpcSession::MoveResults(absl::Span<const Operation> operations, size_t* taken,
                                std::vector<OperationResult>* results) {
  for (wire::OperationResult& result : *answer_.mutable_results()) {
    if (*taken == operations.size()) {
      return DEUT_ERROR(kCorruption, peer_->name(), " answers with more results than operations");
    }
    results->emplace_back();
    const Status valid = FromWire(&result, operations[(*taken)++], &results->back());
    if (!valid.ok()) return DEUT_ERROR(kCorruption, peer_->name(), ": results[", *taken - 1, "].", valid.message());
  }
  return Status::Ok();
}

Result<Timestamp> GrpcSession::Begin(const TransactionOptions& options, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOptions(options));
  ToWire(options, NewRequest()->mutable_begin());
  DEUT_RETURN_IF_ERROR(Call({}, nullptr, LostAnswer::kNotCommitted, deadline));
  wrote_ = false;
  if (options.isolation != Isolation::kSnapshot) not_before_ = Timestamp(answer_.timestamp());
  return Timestamp(answer_.timestamp());
}

Status GrpcSession::ExecuteSome(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                                Deadline deadline) {
  wire::Execute* execute = NewRequest()->mutable_execute();
  for (const Operation& operation : operations) {
    ToWire(operation, execute->add_operations());
    wrote_ = wrote_ || Writes(operation.kind);
  }
  const size_t before = results->size();
  DEUT_RETURN_IF_ERROR(Call(operations, results, LostAnswer::kNotCommitted, deadline));
  if (results->size() - before == operations.size()) return Status::Ok();
  return Fail(DEUT_ERROR(kCorruption, peer_->name(), " answers with ", results->size() - before, " results to ",
                         operations.size(), " operations"),
              LostAnswer::kNotCommitted);
}

Status GrpcSession::Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                            Deadline deadline) {
  results->clear();
  // Checks each operation by itself, because there may be more of them than one message holds.
  for (size_t i = 0; i < operations.size(); ++i) {
    const Status valid = CheckOperation(operations[i]);
    if (!valid.ok()) return At("operations", i, valid);
  }
  Status status;
  size_t next = 0;
  do {
    size_t n = 0;
    for (size_t bytes = 0; next + n < operations.size() && n < size_t{kMaxOperationsPerCall}; ++n) {
      bytes += WireBytes(operations[next + n]);
      if (bytes > kOperationBytes) break;  // never the first one: a single operation always fits
    }
    status = ExecuteSome(operations.subspan(next, n), results, deadline);
    next += n;
  } while (status.ok() && next < operations.size());
  FillUp(operations.size(), results);
  return status;
}

Result<CommitAnswer> GrpcSession::ReadCommitAnswer(const Status& status) {
  if (!status.ok()) return status;
  return CommitAnswer{.timestamp = Timestamp(answer_.timestamp()), .commit_lsn = Lsn(answer_.commit_lsn())};
}

Result<CommitAnswer> GrpcSession::Commit(Deadline deadline) {
  NewRequest()->mutable_commit();
  const Status status = Call({}, nullptr, wrote_ ? LostAnswer::kPerhapsCommitted : LostAnswer::kNotCommitted, deadline);
  if (status.ok()) wrote_ = false;
  return ReadCommitAnswer(status);
}

Status GrpcSession::Abort() {
  NewRequest()->mutable_abort();
  // The TC's abort waits for nothing, so a TC that does not answer soon is dead or overloaded. Without an answer the
  // client closes the session. The TC aborts a transaction whose client is gone, or has been idle for its idle
  // time-out.
  return Call({}, nullptr, LostAnswer::kNotCommitted, runtime_.Now() + kAbortWait);
}

Result<CommitAnswer> GrpcSession::ExecuteOneShot(const TransactionOptions& options,
                                                 absl::Span<const Operation> operations,
                                                 std::vector<OperationResult>* results, Deadline deadline) {
  results->clear();
  DEUT_RETURN_IF_ERROR(CheckOptions(options));
  DEUT_RETURN_IF_ERROR(CheckOperations(operations));
  size_t bytes = 0;
  bool writes = false;
  for (const DeclaredKey& declared : options.declared) bytes += declared.key.size() + 16;
  for (const Operation& operation : operations) {
    bytes += WireBytes(operation);
    writes = writes || Writes(operation.kind);
  }
  if (bytes > kOperationBytes) {
    return DEUT_ERROR(kInvalidArgument, "operations: a one-shot transaction of ", bytes, " bytes; at most ",
                      kOperationBytes, " travel in one message, use an interactive transaction");
  }
  wire::OneShot* one_shot = NewRequest()->mutable_one_shot();
  ToWire(options, one_shot->mutable_begin());
  for (const Operation& operation : operations) ToWire(operation, one_shot->add_operations());
  const Status status =
      Call(operations, results, writes ? LostAnswer::kPerhapsCommitted : LostAnswer::kNotCommitted, deadline);
  if (status.ok() && options.isolation != Isolation::kSnapshot) not_before_ = Timestamp(answer_.timestamp());
  FillUp(operations.size(), results);
  return ReadCommitAnswer(status);
}

}  // namespace deut

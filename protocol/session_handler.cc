#include "protocol/session_handler.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "protocol/convert_transaction_service.h"
#include "protocol/limits.h"
#include "protocol/rpc_polling.h"
#include "protocol/rpc_status.h"

namespace deut {
namespace {

Status FromBeginAndOperations(const wire::OneShot& one_shot, TransactionOptions* options,
                              std::vector<Operation>* operations) {
  const Status begin = FromWire(one_shot.begin(), options);
  if (!begin.ok()) return Status(begin.code(), "begin." + std::string(begin.message()));
  return FromWire(one_shot.operations(), operations);
}

}  // namespace

SessionHandler::SessionHandler(Runtime& runtime, TransactionService& service, StreamWatchdog& watchdog,
                               grpc::ServerContext* context, Stream* stream)
    : runtime_(runtime),
      service_(service),
      stream_(stream),
      write_watch_(watchdog, [context] { context->TryCancel(); }) {}

grpc::Status SessionHandler::Run() {
  wire::SessionRequests message;
  while (!broken_ && stream_->Read(&message)) {
    CountStreamRead();
    const Status valid = CheckFigure("requests", message.requests_size(), 1, kMaxCallsPerMessage);
    if (!valid.ok()) return ToRpcStatus(valid);
    for (const wire::SessionRequest& request : message.requests()) {
      if (!Handle(request)) break;
    }
    WriteAnswers();
    if (session_ == nullptr) break;  // a session that could not be opened
  }
  return grpc::Status::OK;
}

bool SessionHandler::Handle(const wire::SessionRequest& request) {
  const Deadline deadline = DeadlineFromWire(runtime_, request.timeout_us());
  Status status;
  if (session_ == nullptr && !request.has_open()) {
    status = DEUT_ERROR(kWrongState, "request: the first request of a session has to be `open`");
  } else {
    switch (request.request_case()) {
      case wire::SessionRequest::kOpen:
        status = Open(request.open(), deadline);
        break;
      case wire::SessionRequest::kBegin:
        status = Begin(request.begin(), deadline);
        break;
      case wire::SessionRequest::kExecute:
        status = Execute(request.execute(), deadline);
        break;
      case wire::SessionRequest::kCommit:
        status = Commit(deadline);
        break;
      case wire::SessionRequest::kAbort:
        status = session_->Abort();
        break;
      case wire::SessionRequest::kOneShot:
        status = OneShot(request.one_shot(), deadline);
        break;
      case wire::SessionRequest::REQUEST_NOT_SET:
        status = DEUT_ERROR(kInvalidArgument, "request: holds nothing that this version knows");
        break;
    }
  }
  if (!status.ok()) {
    ToWire(status, answer()->mutable_status());
    outgoing_bytes_ += status.message().size();
  }
  answer();
  answer_open_ = false;
  if (outgoing_bytes_ >= kAnswerMessageBytes) WriteAnswers();
  return session_ != nullptr && !broken_;
}

Status SessionHandler::Open(const wire::SessionOpen& open, Deadline deadline) {
  answer()->set_protocol_version(kProtocolVersion);
  DEUT_RETURN_IF_ERROR(CheckProtocolVersion("the client", open.protocol_version()));
  if (session_ != nullptr) return DEUT_ERROR(kWrongState, "request: the session is open already");
  DEUT_ASSIGN_OR_RETURN(session_, service_.NewSession(deadline));
  answer()->set_not_before(session_->not_before().value);
  return Status::Ok();
}

Status SessionHandler::Begin(const wire::Begin& begin, Deadline deadline) {
  TransactionOptions options;
  DEUT_RETURN_IF_ERROR(FromWire(begin, &options));
  DEUT_ASSIGN_OR_RETURN(const Timestamp timestamp, session_->Begin(options, deadline));
  answer()->set_timestamp(timestamp.value);
  return Status::Ok();
}

Status SessionHandler::Execute(const wire::Execute& execute, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(FromWire(execute.operations(), &operations_));
  absl::Span<const Operation> rest(operations_);
  do {
    const absl::Span<const Operation> group = rest.subspan(0, kGroup);
    rest.remove_prefix(group.size());
    const Status status = session_->Execute(group, &results_, deadline);
    AddResults(results_);
    // What is behind is not run; the client knows from the number of results.
    DEUT_RETURN_IF_ERROR(status);
  } while (!rest.empty() && !broken_);
  return Status::Ok();
}

void SessionHandler::SetCommit(const CommitAnswer& commit) {
  answer()->set_timestamp(commit.timestamp.value);
  answer()->set_commit_lsn(commit.commit_lsn.value);
}

Status SessionHandler::Commit(Deadline deadline) {
  DEUT_ASSIGN_OR_RETURN(const CommitAnswer commit, session_->Commit(deadline));
  SetCommit(commit);
  return Status::Ok();
}

Status SessionHandler::OneShot(const wire::OneShot& one_shot, Deadline deadline) {
  TransactionOptions options;
  DEUT_RETURN_IF_ERROR(FromBeginAndOperations(one_shot, &options, &operations_));
  results_.clear();
  auto commit = session_->ExecuteOneShot(options, operations_, &results_, deadline);
  AddResults(results_);
  results_.clear();  // they may be many; the session may be idle for long
  DEUT_RETURN_IF_ERROR(commit.status());
  SetCommit(*commit);
  return Status::Ok();
}

wire::SessionAnswer* SessionHandler::answer() {
  if (!answer_open_) outgoing_.add_answers();
  answer_open_ = true;
  return outgoing_.mutable_answers(outgoing_.answers_size() - 1);
}

void SessionHandler::AddResults(const std::vector<OperationResult>& results) {
  for (const OperationResult& result : results) {
    const size_t bytes = WireBytes(result);
    if (answer()->results_size() != 0 && outgoing_bytes_ + bytes > kAnswerMessageBytes) {
      answer()->set_more(true);
      answer_open_ = false;
      WriteAnswers();
    }
    ToWire(result, answer()->add_results());
    outgoing_bytes_ += bytes;
  }
}

void SessionHandler::WriteAnswers() {
  if (outgoing_.answers_size() == 0) return;
  write_watch_.Start();
  if (!broken_ && !stream_->Write(outgoing_)) broken_ = true;
  write_watch_.Stop();
  outgoing_.Clear();
  outgoing_bytes_ = 0;
}

}  // namespace deut

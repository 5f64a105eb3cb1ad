#include "protocol/transactions/session_handler.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "common/runtime/blocking_hook.h"
#include "common/testing/test_points.h"
#include "protocol/limits.h"
#include "protocol/rpc/rpc_status.h"
#include "protocol/wire/convert_transaction_service.h"
#include "protocol/wire/namespace.h"

namespace deut {
namespace {

Status FromBeginAndOperations(const wire::OneShot& one_shot, TransactionOptions* options,
                              std::vector<Operation>* operations) {
  const Status begin = FromWire(one_shot.begin(), options);
  if (!begin.ok()) return Status(begin.code(), "begin." + std::string(begin.message()));
  return FromWire(one_shot.operations(), operations);
}

}  // namespace

void SessionHandler::RequestNextCall(const StreamHost& host, const Request& request) {
  auto* const call = new SessionHandler(host, request);
  request(&call->context(), call->stream(), call->accepted());
}

SessionHandler::SessionHandler(const StreamHost& host, const Request& request)
    : RpcCall(host.runtime, host.executor, host.writes),
      host_(host),
      request_(request),
      idle_watch_(host.idle, [this] { return EndIdle(); }) {}

bool SessionHandler::EndIdle() {
  State waiting = kWaiting;
  if (!state_.compare_exchange_strong(waiting, kIdleEnded, std::memory_order_acq_rel)) return false;
  DEUT_POINT("session_handler.idle");
  context().AddTrailingMetadata(kNothingRunKey, "idle");
  End(ToRpcStatus(DEUT_ERROR(kUnavailable, "the session has asked for nothing for ",
                             duration_cast<seconds>(host_.idle.limit()).count(),
                             " s (--idle_session_timeout) and was ended; a new one can be opened")));
  return true;
}

void SessionHandler::OnAccepted() {
  RequestNextCall(host_, request_);
  if (const Status entered = host_.streams.Enter(context(), &quota_slot_); !entered.ok())
    return End(ToRpcStatus(entered));
  service_ = host_.services.For(context());
  AwaitMessage();
}

void SessionHandler::AwaitMessage() {
  state_.store(kWaiting, std::memory_order_release);
  idle_watch_.Start();
  StartRead();
}

void SessionHandler::OnRead(bool ok) {
  idle_watch_.Stop();
  State waiting = kWaiting;
  // The exchange comes before the test of `ok`. Either this thread or EndIdle wins the session, and only the winner may
  // end it: EndIdle adds trailing metadata, which End reads.
  const bool mine = state_.compare_exchange_strong(waiting, kAtWork, std::memory_order_acq_rel);
  if (!ok || !mine) {
    const std::function<void()> hook = [this] { executor().BeforeBlocking(); };
    const BlockingHook blocking_hook(hook);
    // The session ends before the peer is told, so that a client that learns of the end finds its transaction aborted.
    session_.reset();
    if (mine) End(grpc::Status::OK);
    return;
  }
  Retain();
  const bool at_work = quota_slot_.BeginWork([this] {
    executor().Post([this] {
      Work();
      Release();
    });
  });
  if (!at_work) return;
  Work();
  Release();
}

void SessionHandler::Work() {
  Status status;
  bool over = false;
  {
    const std::function<void()> hook = [this] { executor().BeforeBlocking(); };
    const BlockingHook blocking_hook(hook);
    status = HandleMessage(&over);
    if (!status.ok() || over) session_.reset();
  }
  quota_slot_.EndWork();
  if (status.ok() && !over) return AwaitMessage();
  End(ToRpcStatus(status));
}

Status SessionHandler::HandleMessage(bool* over) {
  DEUT_RETURN_IF_ERROR(CheckFigure("requests", incoming().requests_size(), 1, kMaxCallsPerMessage));
  for (const wire::SessionRequest& request : incoming().requests()) {
    if (!Handle(request)) break;
  }
  WriteAnswers();
  *over = broken_ || session_ == nullptr;  // a session that could not be opened
  return Status::Ok();
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
  DEUT_ASSIGN_OR_RETURN(session_, service_->get().NewSession(deadline));
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
    // The operations behind the failed one do not run. The client knows that from the number of results.
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
  if (!commit.ok()) answer()->set_timestamp(FailedPreconditionAt(results_).value);
  results_.clear();  // there may be many, and the session may be idle for long
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
  if (!broken_ && !Write(outgoing_)) broken_ = true;
  outgoing_.Clear();
  outgoing_bytes_ = 0;
}

}  // namespace deut

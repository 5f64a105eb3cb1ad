#include "tc/client/client_core.h"

#include <algorithm>
#include <utility>

namespace deut {

ClientCore::ClientCore(TransactionService* service, const ClientOptions& options)
    : service_(service),
      runtime_(options.runtime != nullptr ? *options.runtime : RealRuntime()),
      default_timeout_(options.default_timeout),
      pool_(options.max_idle_sessions) {}

Deadline ClientCore::DeadlineFor(const CallOptions& call, Deadline limit) {
  const Duration timeout = call.timeout > Duration(0) ? call.timeout : default_timeout_;
  const MonotonicTime now = runtime_.Now();
  // A timeout that reaches beyond the end of time means none.
  if (timeout >= Deadline::max() - now) return limit;
  return std::min<Deadline>(now + timeout, limit);
}

template <typename Call>
auto ClientCore::OnSession(Deadline deadline, std::unique_ptr<TransactionSession>* kept, Call call) {
  using Answer = decltype(call(std::declval<TransactionSession&>()));
  std::unique_ptr<TransactionSession> session = pool_.Take();
  bool reused = session != nullptr;
  for (;;) {
    if (session == nullptr) {
      Result<std::unique_ptr<TransactionSession>> fresh = service_->NewSession(deadline);
      if (!fresh.ok()) return Answer(fresh.status());
      session = std::move(fresh).value();
    }
    Answer answer = call(*session);
    if (answer.ok()) {
      *kept = std::move(session);
      return answer;
    }
    if (!reused || answer.status() != ErrorCode::kUnavailable) {
      Release(std::move(session), answer.status());
      return answer;
    }
    session.reset();
    reused = false;
  }
}

Result<ClientCore::Begun> ClientCore::Begin(const TransactionOptions& options, Deadline deadline) {
  Begun begun;
  Result<Timestamp> timestamp = OnSession(
      deadline, &begun.session, [&](TransactionSession& session) { return session.Begin(options, deadline); });
  if (!timestamp.ok()) return timestamp.status();
  begun.timestamp = *timestamp;
  return begun;
}

Result<CommitAnswer> ClientCore::ExecuteOneShot(const TransactionOptions& options,
                                                absl::Span<const Operation> operations,
                                                std::vector<OperationResult>* results, Deadline deadline) {
  std::unique_ptr<TransactionSession> session;
  Result<CommitAnswer> answer = OnSession(deadline, &session, [&](TransactionSession& fresh_or_idle) {
    results->clear();
    return fresh_or_idle.ExecuteOneShot(options, operations, results, deadline);
  });
  if (answer.ok()) Release(std::move(session), Status());
  return answer;
}

void ClientCore::Release(std::unique_ptr<TransactionSession> session, const Status& last) {
  if (session != nullptr && (last == ErrorCode::kAborted || LeavesOpen(last))) pool_.Return(std::move(session));
}

}  // namespace deut

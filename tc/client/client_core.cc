#include "tc/client/client_core.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/base/transaction_id.h"
#include "common/runtime/coarse_time.h"
#include "common/runtime/random.h"
#include "protocol/one_shot_limits.h"

namespace deut {
namespace {

// For questions about an outcome: the timeout of one, and the bounds of the random pauses in between.
constexpr Duration kAskTimeout = seconds(5);
constexpr Duration kFirstAskPause = milliseconds(2);
constexpr Duration kMaxAskPause = milliseconds(100);

// Names that a session takes from the client at once.
constexpr uint64_t kNamesAtOnce = 1 << 16;

// While at most this many one-shots are in flight, each uses a session, whose thread waits for its own answer, so no
// other thread has to be woken. Beyond that several share a message.
constexpr int kOneShotsOnSessions = 1;

}  // namespace

ClientCore::ClientCore(TransactionService* service, OneShotChannel* one_shots, const ClientOptions& options)
    : service_(service),
      channel_(one_shots),
      runtime_(options.runtime != nullptr ? *options.runtime : RealRuntime()),
      default_timeout_(options.default_timeout),
      pool_(options.max_idle_sessions),
      first_id_({.high = runtime_.RandomSeed() | 1, .low = runtime_.RandomSeed()}) {}

ClientCore::~ClientCore() { DEUT_DCHECK(one_shots_.load(std::memory_order_relaxed) == 0); }

TransactionName ClientCore::NewName(ClientSession& session) {
  if (session.names_left == 0) {
    session.next_name = names_.fetch_add(kNamesAtOnce, std::memory_order_relaxed);
    session.names_left = kNamesAtOnce;
  }
  --session.names_left;
  // The session's numbers come from blocks that no other session has, all of them drawn from this counter.
  DEUT_DCHECK(session.next_name < names_.load(std::memory_order_relaxed));
  return {.id = {.high = first_id_.high, .low = first_id_.low + session.next_name++},
          .not_before = session.calls->not_before()};
}

TransactionName ClientCore::NewName(Timestamp not_before) {
  return {.id = {.high = first_id_.high, .low = first_id_.low + names_.fetch_add(1, std::memory_order_relaxed)},
          .not_before = not_before};
}

bool ClientCore::IsNamed(const TransactionOptions& options) const {
  return options.isolation != Isolation::kSnapshot &&
         (options.durability != Durability::kBuffered || service_->LosesAnswers());
}

Deadline ClientCore::DeadlineFor(const CallOptions& call, Deadline limit) {
  const Duration timeout = call.timeout > Duration(0) ? call.timeout : default_timeout_;
  // The coarse clock may make a long timeout a little longer.
  const MonotonicTime now = timeout > 100 * kCoarseStep ? CoarseNow(runtime_) : runtime_.Now();
  // A timeout that ends beyond the end of time means none.
  if (timeout >= Deadline::max() - now) return limit;
  return std::min<Deadline>(now + timeout, limit);
}

template <typename Call>
auto ClientCore::OnSession(Deadline deadline, std::unique_ptr<ClientSession>* kept, Call call) {
  using Answer = decltype(call(std::declval<ClientSession&>()));
  DEUT_DCHECK(*kept == nullptr);  // a session that was kept there may have an open transaction
  std::unique_ptr<ClientSession> session = pool_.Take();
  bool reused = session != nullptr;
  for (;;) {
    if (session == nullptr) {
      Result<std::unique_ptr<TransactionSession>> fresh = service_->NewSession(deadline);
      if (!fresh.ok()) return Answer(fresh.status());
      session = std::make_unique<ClientSession>(std::move(fresh).value());
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
  Result<Timestamp> timestamp = OnSession(deadline, &begun.session, [&](ClientSession& session) {
    if (options.isolation == Isolation::kSnapshot) return session.calls->Begin(options, deadline);
    TransactionOptions named = options;
    named.name = begun.name = NewName(session);
    return session.calls->Begin(named, deadline);
  });
  if (!timestamp.ok()) return timestamp.status();
  // A writer without a name could not ask for its outcome. A snapshot has none, and would be refused with one.
  DEUT_DCHECK(begun.name.id.given() == (options.isolation != Isolation::kSnapshot));
  begun.timestamp = *timestamp;
  // This lower bound is better than the one known before, so the outcome can be asked for longer.
  begun.name.not_before = *timestamp;
  return begun;
}

// The transaction has no name, because it writes nothing.
Result<ScanBegun> ClientCore::BeginScan(const TransactionOptions& options, const Operation& scan, Deadline deadline,
                                        std::unique_ptr<ClientSession>* session) {
  return OnSession(deadline, session, [&](ClientSession& fresh_or_idle) {
    return fresh_or_idle.calls->BeginScan(options, scan, &fresh_or_idle.batch, deadline);
  });
}

Result<CommitAnswer> ClientCore::OneShotOnSession(const TransactionOptions& options,
                                                  absl::Span<const Operation> operations,
                                                  std::vector<OperationResult>* results, Deadline deadline) {
  std::unique_ptr<ClientSession> session;
  bool asked = false;
  const auto run = [&](ClientSession& fresh_or_idle, const TransactionOptions& with) {
    asked = true;
    return fresh_or_idle.calls->ExecuteOneShot(with, operations, results, deadline);
  };
  if (!IsNamed(options)) {
    Result<CommitAnswer> answer =
        OnSession(deadline, &session, [&](ClientSession& fresh_or_idle) { return run(fresh_or_idle, options); });
    if (answer.ok()) [[likely]] {
      Release(std::move(session), Status());
      return answer;
    }
    if (!asked) results->clear();  // those of an earlier call
    return ResolveOneShotOutcome(
        {.options = &options, .operations = operations, .results = results, .answer = std::move(answer)},
        TransactionName{}, deadline);
  }
  TransactionOptions named = options;
  Result<CommitAnswer> answer = OnSession(deadline, &session, [&](ClientSession& fresh_or_idle) {
    named.name = NewName(fresh_or_idle);
    return run(fresh_or_idle, named);
  });
  if (answer.ok()) [[likely]] {
    Release(std::move(session), Status());
    return answer;
  }
  if (!asked) results->clear();  // those of an earlier call
  return ResolveOneShotOutcome(
      {.options = &options, .operations = operations, .results = results, .answer = std::move(answer)}, named.name,
      deadline);
}

Result<CommitAnswer> ClientCore::ResolveOneShotOutcome(const OneShotTransaction& transaction,
                                                       const TransactionName& name, Deadline deadline) {
  if (transaction.answer.status() != ErrorCode::kOutcomeUnknown) return transaction.answer;
  const Status lost = transaction.answer.status();
  Result<CommitAnswer> answer = AskForOutcome(name, lost, deadline);
  if (!answer.ok()) return answer;
  // The transaction has committed, so every operation has succeeded. But their results were in the answer that is
  // lost.
  for (const Operation& operation : transaction.operations) {
    if (!HasResult(operation)) continue;
    return DEUT_ERROR(kOutcomeUnknown, "committed at ", answer->timestamp.value,
                      ", but the results of its operations are lost: ", lost.message());
  }
  transaction.results->clear();
  transaction.results->resize(transaction.operations.size());
  return answer;
}

Result<CommitAnswer> ClientCore::ExecuteOneShot(const TransactionOptions& options,
                                                absl::Span<const Operation> operations,
                                                std::vector<OperationResult>* results, Deadline deadline) {
  if (channel_ == nullptr) return OneShotOnSession(options, operations, results, deadline);
  const bool alone = one_shots_.fetch_add(1, std::memory_order_relaxed) < kOneShotsOnSessions;
  const auto end = absl::MakeCleanup([this] { one_shots_.fetch_sub(1, std::memory_order_relaxed); });
  if (alone || !channel_->Ready() || OneShotBytes(options, operations) > kMaxSharedOneShotBytes) {
    return OneShotOnSession(options, operations, results, deadline);
  }
  TransactionOptions named = options;
  if (IsNamed(options)) named.name = NewName(channel_->not_before());
  OneShotTransaction transaction{.options = &named, .operations = operations, .results = results};
  if (!channel_->Execute(absl::MakeSpan(&transaction, 1), deadline))
    return OneShotOnSession(options, operations, results, deadline);
  return ResolveOneShotOutcome(transaction, named.name, deadline);
}

void ClientCore::ExecuteOneShots(absl::Span<OneShotTransaction> transactions, Deadline deadline) {
  const bool together = channel_ != nullptr && channel_->Ready();
  std::vector<TransactionOptions> named;
  std::vector<OneShotTransaction> sent;
  std::vector<size_t> places;
  named.reserve(transactions.size());
  for (size_t i = 0; i < transactions.size() && together; ++i) {
    const OneShotTransaction& transaction = transactions[i];
    if (OneShotBytes(*transaction.options, transaction.operations) > kMaxSharedOneShotBytes) continue;
    named.push_back(*transaction.options);
    if (IsNamed(named.back())) named.back().name = NewName(channel_->not_before());
    sent.push_back({.options = &named.back(), .operations = transaction.operations, .results = transaction.results});
    places.push_back(i);
  }
  if (!sent.empty() && !channel_->Execute(absl::MakeSpan(sent), deadline)) places.clear();
  size_t next = 0;
  for (size_t i = 0; i < transactions.size(); ++i) {
    OneShotTransaction& transaction = transactions[i];
    if (next < places.size() && places[next] == i) {
      transaction.answer = ResolveOneShotOutcome(sent[next], sent[next].options->name, deadline);
      ++next;
    } else {
      transaction.answer =
          OneShotOnSession(*transaction.options, transaction.operations, transaction.results, deadline);
    }
  }
  DEUT_DCHECK(next == places.size());  // each answer has found its transaction
}

Result<CommitAnswer> ClientCore::AskForOutcome(const TransactionName& name, const Status& lost, Deadline deadline) {
  DEUT_CHECK(lost == ErrorCode::kOutcomeUnknown);  // any other failure says that nothing was committed
  if (!name.id.given()) return lost;
  Random random(runtime_.RandomSeed());
  Status failed = lost;
  for (Duration bound = kFirstAskPause; runtime_.Now() < deadline; bound = std::min(bound * 2, kMaxAskPause)) {
    const Result<OutcomeAnswer> asked =
        service_->AskOutcome(name, std::min<Deadline>(deadline, runtime_.Now() + kAskTimeout));
    if (asked.ok()) {
      switch (asked->outcome) {
        case TransactionOutcome::kCommitted:
          return asked->commit;
        case TransactionOutcome::kNotCommitted:
          return DEUT_ERROR(kUnavailable, "the transaction is not committed, and never will be: ", lost.message());
        case TransactionOutcome::kTooOld:
          return DEUT_ERROR(kOutcomeUnknown, lost.message(), "; it is too long ago for the store to know");
      }
    }
    failed = asked.status();
    const bool passing = failed == ErrorCode::kUnavailable || failed == ErrorCode::kDeadlineExceeded ||
                         failed == ErrorCode::kResourceExhausted;
    if (!passing) break;
    const auto pause = Duration(static_cast<int64_t>(random.Below(static_cast<uint64_t>(bound.count()))));
    runtime_.SleepUntil(std::min<Deadline>(deadline, runtime_.Now() + pause));
  }
  const std::string asked = failed == lost.code() ? "" : Concat("; asking for its outcome failed: ", failed.ToString());
  return DEUT_ERROR(kOutcomeUnknown, lost.message(), asked, " (ask again: outcome ", TransactionIdText(name.id), " ",
                    name.not_before.value, ")");
}

void ClientCore::Release(std::unique_ptr<ClientSession> session, const Status& last) {
  if (session == nullptr || !(last == ErrorCode::kAborted || KeepsTransactionOpen(last))) return;
  session->FreeLargeAnswers();
  pool_.Return(std::move(session));
}

}  // namespace deut

#include "tc/client/retry.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "tc/client/written_keys.h"

namespace deut {
namespace {

// The loop around both kinds of transaction.
class RetryLoop {
 public:
  RetryLoop(Client& client, const RetryOptions& options, RetryReport* report)
      : client_(client), options_(options), report_(report), limit_(client.DeadlineFor({.timeout = options.timeout})) {}

  Deadline limit() const { return limit_; }
  uint32_t attempts() const { return attempts_; }
  void BeginAttempt() {
    ++attempts_;
    if (report_ != nullptr) ++report_->attempts;
  }

  // Counts an attempt that did not commit. Returns OK after the pause if the caller shall try again, else the error
  // to return.
  Status Failed(const Status& status) {
    DEUT_CHECK(!status.ok());  // the loop would repeat a commit
    DEUT_DCHECK(attempts_ > 0);
    Count(status);
    if (!IsRetryable(status)) return status;
    if (options_.max_attempts != 0 && attempts_ >= options_.max_attempts)
      return GivenUp(status, "the attempts allowed are used up");
    if (!pauses_.has_value()) pauses_.emplace(options_, client_.runtime().RandomSeed());
    const Duration pause = pauses_->Next(status);
    if (pause >= limit_ - client_.runtime().Now()) return GivenUp(status, "the time is up");
    if (pause > Duration(0)) client_.runtime().SleepUntil(client_.runtime().Now() + pause);
    return Status();
  }

 private:
  void Count(const Status& status) {
    if (report_ == nullptr) return;
    if (status == ErrorCode::kAborted) {
      const size_t reason = status.abort() != nullptr ? static_cast<size_t>(status.abort()->reason) : 0;
      ++report_->aborts[reason < report_->aborts.size() ? reason : 0];
    } else if (status == ErrorCode::kResourceExhausted) {
      ++report_->exhausted;
    } else if (status == ErrorCode::kUnavailable || status == ErrorCode::kWrongIncarnation) {
      ++report_->unavailable;
    }
  }

  Status GivenUp(const Status& last, std::string_view why) const {
    std::string message = Concat("gave up after ", attempts_, attempts_ == 1 ? " attempt" : " attempts", " because ",
                                 why, "; last: ", last.message());
    if (last.abort() != nullptr) return Status::Aborted(*last.abort(), std::move(message));
    return Status(last.code(), std::move(message)).WithRetryAfter(last.retry_after_ms());
  }

  Client& client_;
  const RetryOptions& options_;
  RetryReport* const report_;
  const Deadline limit_;
  uint32_t attempts_ = 0;
  std::optional<RetryPauses> pauses_;  // made at the first failure, because most transactions need none
};

// Runs one attempt. If an error has ended the transaction, that error is the attempt's result, even if the body
// returned another: the body drew its conclusion from a transaction that never was. (If that error is not worth
// repeating, the body's own is the result.)
Status RunOnce(Client& client, const TransactionOptions& options, Deadline limit,
               absl::FunctionRef<Status(Transaction&)> body, WrittenKeys* written_keys, CommitAnswer* committed) {
  DEUT_ASSIGN_OR_RETURN(Transaction transaction, client.BeginUntil(options, limit, written_keys));
  Status status = body(transaction);
  if (!transaction.open()) {
    const Status& ended = transaction.status();
    return !ended.ok() && (status.ok() || IsRetryable(ended)) ? ended : status;
  }
  if (!status.ok()) {
    (void)transaction.Abort();  // the body's error is returned
    return status;
  }
  DEUT_ASSIGN_OR_RETURN(*committed, transaction.Commit());
  return Status();
}

}  // namespace

bool IsRetryable(const Status& status) {
  // No time is left after a deadline.
  return status != ErrorCode::kDeadlineExceeded && ErrorCodeRetry(status.code()) != Retry::kNever;
}

Duration RetryPauses::Next(const Status& status) {
  const bool conflict = status == ErrorCode::kAborted;
  Duration bound = conflict ? options_.first_pause : std::max(options_.first_pause, options_.unavailable_pause);
  for (uint32_t i = 0; i < attempts_ && bound < options_.max_pause; ++i) bound *= 2;
  bound = std::min(bound, options_.max_pause);
  ++attempts_;
  const uint64_t most = static_cast<uint64_t>(std::max<int64_t>(bound.count(), 1));
  Duration pause(static_cast<int64_t>(random_.Below(most)));
  // After a hint the loop pauses that long plus the random part, so that not all clients come back at once.
  if (status.retry_after_ms() != 0) pause += milliseconds(status.retry_after_ms());
  return pause;
}

Status RunTransaction(Client& client, const RetryOptions& options, absl::FunctionRef<Status(Transaction&)> body,
                      RetryReport* report) {
  RetryLoop loop(client, options, report);
  WrittenKeys written_keys;
  std::optional<TransactionOptions> declaring;  // a copy, made only for a second attempt
  for (;;) {
    loop.BeginAttempt();
    CommitAnswer committed;
    Status status = RunOnce(client, declaring.has_value() ? *declaring : options.transaction, loop.limit(), body,
                            &written_keys, &committed);
    if (status.ok()) {
      if (report != nullptr) report->commit = committed;
      return status;
    }
    Status failed = loop.Failed(status);
    if (!failed.ok()) return failed;
    if (written_keys.empty()) continue;
    if (!declaring.has_value()) declaring = options.transaction;
    written_keys.MoveTo(&declaring->declared);
  }
}

Result<CommitAnswer> RunOneShot(Client& client, const RetryOptions& options, absl::Span<const Operation> operations,
                                std::vector<OperationResult>* results, RetryReport* report) {
  RetryLoop loop(client, options, report);
  std::optional<TransactionOptions> declaring;
  for (;;) {
    loop.BeginAttempt();
    Result<CommitAnswer> answer = client.ExecuteOneShotUntil(declaring.has_value() ? *declaring : options.transaction,
                                                             operations, results, loop.limit());
    if (answer.ok()) {
      if (report != nullptr) report->commit = *answer;
      return answer;
    }
    Status failed = loop.Failed(answer.status());
    if (!failed.ok()) return failed;
    if (declaring.has_value()) continue;
    declaring = options.transaction;
    WrittenKeys written_keys;
    for (const Operation& operation : operations) {
      if (WritesItsKey(operation)) written_keys.Add(operation.table, operation.key);
    }
    written_keys.MoveTo(&declaring->declared);
  }
}

Result<CommitAnswer> RunOneShot(OneShot& one_shot, RetryOptions options, RetryReport* report) {
  options.transaction = one_shot.options();
  return RunOneShot(one_shot.client(), options, one_shot.operations(), one_shot.mutable_results(), report);
}

}  // namespace deut

// RunTransaction: runs a function as a transaction, again and again until it commits, fails for good, or time is up.
//
// Repeated: ABORTED (a conflict), and UNAVAILABLE, RESOURCE_EXHAUSTED, WRONG_INCARNATION (nothing was done; the refuser's hint is
// respected), at any step including Begin. Between attempts it pauses for a random time whose bound doubles (R11: without chance two
// transactions could abort each other for ever). From the second attempt on it *declares* the keys written by the attempts before, which
// protects it against later readers of their ranges (R11).
// A commit whose answer is lost is asked for, and counts as what it was: committed, or UNAVAILABLE and repeated.
// Not repeated: OUTCOME_UNKNOWN (nobody could tell what became of it in time, or at all: look before repeating),
// DEADLINE_EXCEEDED, and whatever else the function or the store returns.
// When time is up the last reason is returned, with its code and conflict; the message says how many attempts there were.
//
// The function may run several times: it must have no effect outside the transaction. What it reads is provisional until
// RunTransaction has returned OK (D1); that holds for an error of its own that rests on such reads, too.
#ifndef TC_CLIENT_RETRY_H_
#define TC_CLIENT_RETRY_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/base/abort_reason.h"
#include "common/base/status.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "protocol/transaction_service.h"
#include "tc/client/client.h"
#include "tc/client/one_shot.h"
#include "tc/client/transaction.h"

namespace deut {

struct RetryOptions {
  TransactionOptions transaction = {};
  // For all attempts and pauses together; 0 = the client's default_timeout.
  Duration timeout{0};
  // The pause before attempt n + 1 is random below min(max_pause, first_pause * 2^(n-1)), and not below a hint of the refuser.
  Duration first_pause = microseconds(100);
  Duration max_pause = milliseconds(100);
  // Where nothing answers (UNAVAILABLE) there is no use in knocking every few microseconds: the bound starts here.
  Duration unavailable_pause = milliseconds(5);
  // 0 = as many as fit into the time.
  uint32_t max_attempts = 0;
};

// What happened on the way. Added to, so that one report can sum up many transactions.
struct RetryReport {
  uint64_t attempts = 0;
  uint64_t unavailable = 0;                          // attempts that ended with UNAVAILABLE or WRONG_INCARNATION
  uint64_t exhausted = 0;                            // ... with RESOURCE_EXHAUSTED
  std::array<uint64_t, kAbortReasonCount> aborts{};  // ... with ABORTED, by reason
  CommitAnswer commit;                               // of the last one that committed
};

// Runs `body` and commits. A body that returns OK with its transaction open is committed; one that returns an error is aborted, and
// the error is returned unless it, or what ended the transaction, is of the repeated kind. (A body may also end the transaction by
// itself.) `report` may be null.
Status RunTransaction(Client& client, const RetryOptions& options, absl::FunctionRef<Status(Transaction&)> body,
                      RetryReport* report = nullptr);

// The same for operations that are known beforehand: one message an attempt.
Result<CommitAnswer> RunOneShot(Client& client, const RetryOptions& options, absl::Span<const Operation> operations,
                                std::vector<OperationResult>* results, RetryReport* report = nullptr);
Result<CommitAnswer> RunOneShot(OneShot& one_shot, RetryOptions options = {}, RetryReport* report = nullptr);

// Whether running the transaction once more may succeed, and cannot do anything twice.
bool IsRetryable(const Status& status);

// The pauses of one retry loop. Thread-safety: none.
class RetryPauses {
 public:
  RetryPauses(const RetryOptions& options, uint64_t seed) : options_(options), random_(seed) {}
  // The pause after an attempt that ended with `status`.
  Duration Next(const Status& status);

 private:
  const RetryOptions& options_;
  Random random_;
  uint32_t attempts_ = 0;
};

}  // namespace deut

#endif  // TC_CLIENT_RETRY_H_

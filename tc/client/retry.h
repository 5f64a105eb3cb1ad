// RunTransaction: runs a function as a transaction, and repeats it until it commits, fails for good, or the time is
// up.
//
// Errors that are repeated: ABORTED (a conflict), and UNAVAILABLE, RESOURCE_EXHAUSTED, WRONG_INCARNATION (nothing was
//   done). They are repeated at any step, including Begin.
// Pauses: between attempts the loop pauses for a random time whose bound doubles. A retry hint is respected. (R11:
//   without randomness two transactions could abort each other for ever.)
// Declarations: from the second attempt on the transaction *declares* the keys that earlier attempts wrote. That
//   protects it against later readers of their ranges (R11).
// Lost answers: if the answer to a commit is lost the library asks for the outcome. The attempt then counts as
//   committed, or as UNAVAILABLE, which is repeated.
// Errors that are not repeated: OUTCOME_UNKNOWN, DEADLINE_EXCEEDED, and every other error of the function or the
//   store. After OUTCOME_UNKNOWN the outcome was not known in time, or at all: find it out before you repeat.
// When the time is up the last error is returned, with its code and conflict. The message says how many attempts
//   there were.
//
// The function may run several times, so it must have no effect outside the transaction. Its reads are provisional
// until RunTransaction has returned OK (D1). The same holds for an error of its own that is based on such reads.
// Thread-safety: any thread; each call runs on its caller's thread.
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
  // For all attempts and pauses together; 0: the client's default_timeout.
  Duration timeout{0};
  // The pause before attempt n + 1 is random below min(max_pause, first_pause * 2^(n-1)). A retry hint is added to
  // it.
  Duration first_pause = microseconds(100);
  Duration max_pause = milliseconds(100);
  // First bound after every error but ABORTED: if nothing answers, a retry after some microseconds is useless.
  Duration unavailable_pause = milliseconds(5);
  // 0: as many as fit into the time.
  uint32_t max_attempts = 0;
};

// Figures of retry loops. A loop adds to them, so that one report can sum up many transactions.
struct RetryReport {
  uint64_t attempts = 0;
  uint64_t unavailable = 0;                          // attempts that ended with UNAVAILABLE or WRONG_INCARNATION
  uint64_t exhausted = 0;                            // ... with RESOURCE_EXHAUSTED
  std::array<uint64_t, kAbortReasonCount> aborts{};  // ... with ABORTED, by reason
  CommitAnswer commit;                               // of the last transaction that committed
};

// Runs `body` and commits. If `body` returns OK with its transaction open, the transaction is committed. If it
// returns an error the transaction is aborted. That error is returned unless it, or the error that ended the
// transaction, is one that is repeated. (A body may also end the transaction by itself.) `report` may be null.
Status RunTransaction(Client& client, const RetryOptions& options, absl::FunctionRef<Status(Transaction&)> body,
                      RetryReport* report = nullptr);

// The same for operations that are known beforehand: one message per attempt.
Result<CommitAnswer> RunOneShot(Client& client, const RetryOptions& options, absl::Span<const Operation> operations,
                                std::vector<OperationResult>* results, RetryReport* report = nullptr);
Result<CommitAnswer> RunOneShot(OneShot& one_shot, RetryOptions options = {}, RetryReport* report = nullptr);

// Returns whether another attempt may succeed, and cannot do anything twice.
bool IsRetryable(const Status& status);

// The pauses of one retry loop. Thread-safety: none.
class RetryPauses {
 public:
  RetryPauses(const RetryOptions& options, uint64_t seed) : options_(options), random_(seed) {}
  // Returns the pause after an attempt that ended with `status`.
  Duration Next(const Status& status);

 private:
  const RetryOptions& options_;
  Random random_;
  uint32_t attempts_ = 0;
};

}  // namespace deut

#endif  // TC_CLIENT_RETRY_H_

// OneShotChannel: one-shot transactions of many threads on one stream to a transaction component in another process. It
// does what a session's ExecuteOneShot does, but calls do not wait for one another. Calls that several threads make at
// the same time travel in one message, and so do their answers.
// Errors: those of GrpcTransactionService (grpc_transaction_service.h).
// Thread-safety: any thread may call any method.
#ifndef PROTOCOL_TRANSACTIONS_ONE_SHOT_CHANNEL_H_
#define PROTOCOL_TRANSACTIONS_ONE_SHOT_CHANNEL_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/transaction_service.h"

namespace deut {

// One transaction of a call to a channel: the arguments and results of a session's ExecuteOneShot.
struct OneShotTransaction {
  const TransactionOptions* options = nullptr;
  absl::Span<const Operation> operations;
  std::vector<OperationResult>* results = nullptr;
  Result<CommitAnswer> answer = CommitAnswer();
};

// The approximate bytes of the transaction in a message. A channel takes at most kMaxSharedOneShotBytes.
inline size_t OneShotBytes(const TransactionOptions& options, absl::Span<const Operation> operations) {
  constexpr size_t kFixedBytes = 64;
  size_t bytes = kFixedBytes;
  for (const DeclaredKey& declared : options.declared) bytes += declared.key.size() + 16;
  for (const Operation& operation : operations) {
    bytes += kFixedBytes + operation.key.size() + operation.value.size() + operation.expected.size() +
             operation.low.size() + operation.high.size();
  }
  return bytes;
}

class OneShotChannel {
 public:
  virtual ~OneShotChannel() = default;

  // Whether calls can be made now. If not, Ready starts an attempt to open the stream; the caller uses sessions
  // meanwhile. With a server that does not know such streams it always returns false.
  virtual bool Ready() = 0;

  // A lower bound of the timestamps of all transactions that will begin here. Sends nothing.
  virtual Timestamp not_before() const = 0;

  // Runs the transactions concurrently, each by itself, and waits for all answers. A transaction that is too large is
  // refused (INVALID_ARGUMENT). False: nothing was done, because the channel is not ready.
  virtual bool Execute(absl::Span<OneShotTransaction> transactions, Deadline deadline) = 0;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_ONE_SHOT_CHANNEL_H_

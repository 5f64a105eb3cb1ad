// OneShotChannel: one-shot transactions of many threads on one stream to a transaction component in another process. What a session's ExecuteOneShot
// does, but calls do not wait for one another: what several threads ask at the same time travels in one message, and so do the answers.
// Errors: those of GrpcTransactionService (grpc_transaction_service.h).
// Thread-safety: all methods from any thread.
#ifndef PROTOCOL_ONE_SHOT_CHANNEL_H_
#define PROTOCOL_ONE_SHOT_CHANNEL_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/transaction_service.h"

namespace deut {

// One transaction of a call to a channel; what a session's ExecuteOneShot takes and returns.
struct OneShotTransaction {
  const TransactionOptions* options = nullptr;
  absl::Span<const Operation> operations;
  std::vector<OperationResult>* results = nullptr;
  Result<CommitAnswer> answer = CommitAnswer();
};

// About what it takes of a message; at most kMaxSharedOneShotBytes go by a channel.
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

  // Whether calls can be made now. If not, it sets out to make that so, and meanwhile there are sessions; a server that does not know such streams
  // never makes it so.
  virtual bool Ready() = 0;

  // No transaction that is begun here from now on has a timestamp below this. Sends nothing.
  virtual Timestamp not_before() const = 0;

  // Runs the transactions, each by itself and side by side, and waits for all answers; one that is too large is refused (INVALID_ARGUMENT). False:
  // nothing was done, as it is not ready.
  virtual bool Execute(absl::Span<OneShotTransaction> transactions, Deadline deadline) = 0;
};

}  // namespace deut

#endif  // PROTOCOL_ONE_SHOT_CHANNEL_H_

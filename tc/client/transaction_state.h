// TransactionState: an open or ended transaction as Transaction and its scanners see it. Not part of the public interface.
// Phases: open -> committed | aborted (by its owner) | ended (by an error, kept in `status`). Only the owner's thread moves it.
// Thread-safety: none. Ownership: owns the session while open; at the end the session goes back to the core, or is closed.
#ifndef TC_CLIENT_TRANSACTION_STATE_H_
#define TC_CLIENT_TRANSACTION_STATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "protocol/transaction_service.h"
#include "tc/client/client_core.h"
#include "tc/client/options.h"
#include "tc/client/written_keys.h"

namespace deut {

class TransactionState {
 public:
  // `limit`: no call goes on beyond it. `trail`, if not null, collects the keys that are written.
  TransactionState(ClientCore* core, ClientCore::Begun begun, Deadline limit, WrittenKeys* trail);
  ~TransactionState();
  TransactionState(const TransactionState&) = delete;
  TransactionState& operator=(const TransactionState&) = delete;

  bool open() const { return phase_ == Phase::kOpen; }
  const Status& status() const { return status_; }
  Timestamp timestamp() const { return timestamp_; }
  const TransactionName& name() const { return name_; }

  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                 const CallOptions& call);
  Result<CommitAnswer> Commit(const CallOptions& call);
  Status Abort();

  // Buffers of Transaction's own operations, kept over calls.
  std::vector<Operation> operations;
  std::vector<OperationResult> results;

 private:
  enum class Phase : uint8_t { kOpen, kCommitted, kAborted, kEnded };

  // What an operation after the end is told.
  Status Ended() const;
  void End(Phase phase, const Status& status);

  ClientCore* const core_;
  std::unique_ptr<TransactionSession> session_;
  const Timestamp timestamp_;
  const TransactionName name_;
  const Deadline limit_;
  WrittenKeys* const trail_;
  Phase phase_ = Phase::kOpen;
  Status status_;
};

}  // namespace deut

#endif  // TC_CLIENT_TRANSACTION_STATE_H_

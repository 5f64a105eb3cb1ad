// TransactionState: an open or ended transaction, as Transaction and its scanners see it. Not part of the public
// interface.
// Phases: open -> committed | aborted (by its owner) | ended (by an error, kept in `status`). Only the owner's thread
// changes the phase.
// Thread-safety: none. Ownership: owns the session while open; at the end the session goes back to the core, or is
// closed.
#ifndef TC_CLIENT_TRANSACTION_STATE_H_
#define TC_CLIENT_TRANSACTION_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "protocol/pipelined_call.h"
#include "protocol/transaction_service.h"
#include "tc/client/client_core.h"
#include "tc/client/options.h"
#include "tc/client/written_keys.h"

namespace deut {

class TransactionState {
 public:
  // `limit`: no call goes beyond it. `written_keys`, if not null, collects the keys that are written.
  TransactionState(ClientCore* core, ClientCore::Begun begun, Deadline limit, WrittenKeys* written_keys);
  ~TransactionState();
  TransactionState(const TransactionState&) = delete;
  TransactionState& operator=(const TransactionState&) = delete;

  bool open() const { return phase_ == Phase::kOpen; }
  const Status& status() const { return status_; }
  Timestamp timestamp() const { return timestamp_; }
  const TransactionName& name() const { return name_; }

  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                 const CallOptions& call);
  // Asks for the next batch of a scan, and returns the number by which UsePrefetchedBatch gets it; 0: nothing was
  // sent. Only one batch at a time is prefetched. A batch that is not used for long is replaced by another scan's. A
  // batch that fails does not concern the transaction (Operation::prefetch).
  uint64_t PrefetchBatch(const Operation& scan, const CallOptions& call);
  // Takes the prefetched batch of this number, as by Execute. Returns false if there is none any more, or if it has
  // failed. The caller must then ask for it.
  bool UsePrefetchedBatch(uint64_t number, std::vector<OperationResult>* answers, Status* status,
                          const CallOptions& call);
  Result<CommitAnswer> Commit(const CallOptions& call);
  Status Abort();

  // The memory for a scanner's answers. A scanner takes it, and gives it back when it has no more to show. It is
  // empty if another scanner has it.
  std::vector<OperationResult> TakeBatchMemory() { return std::exchange(batch_memory_, {}); }
  void GiveBatchMemory(std::vector<OperationResult> memory) { batch_memory_ = std::move(memory); }

  // Buffers of Transaction's own operations, kept from call to call.
  std::vector<Operation> operations;
  std::vector<OperationResult> results;

 private:
  enum class Phase : uint8_t { kOpen, kCommitted, kAborted, kEnded };

  // A batch that is in flight, or has arrived and was not taken yet.
  struct Prefetch {
    // It never moves: the call in flight points to `scan`, which points to `low` and `high`.
    Prefetch() = default;
    Prefetch(const Prefetch&) = delete;
    Prefetch& operator=(const Prefetch&) = delete;

    uint64_t number = 0;  // 0: none
    uint32_t passed_over = 0;
    std::string low, high;  // texts that `scan` points to
    Operation scan;
    Status status;
    std::vector<OperationResult> results;
    std::optional<PipelinedCall> in_flight;  // has the session's calls; only while the transaction is open
  };

  // The session's calls. REQUIRES: the transaction is open, and no prefetched batch is in flight.
  TransactionSession& Calls();
  // Waits until the deadline for the batch that was sent for. All other requests of the session come after it. If the
  // session or the transaction fails, the transaction ends.
  void AwaitPrefetch(Deadline deadline);
  void AwaitPrefetch(const CallOptions& call) {
    if (prefetch_.in_flight) AwaitPrefetch(core_->DeadlineFor(call, limit_));
  }
  // The error for an operation after the end.
  Status Ended() const;
  void End(Phase phase, const Status& status);
  // Gives the session its memory back. REQUIRES: no caller looks at answers any more.
  void ReturnSessionMemory();

  ClientCore* const core_;
  std::unique_ptr<ClientSession> session_;
  const Timestamp timestamp_;
  const TransactionName name_;
  const Deadline limit_;
  WrittenKeys* const written_keys_;
  Phase phase_ = Phase::kOpen;
  Status status_;
  std::vector<OperationResult> batch_memory_;
  Prefetch prefetch_;
  uint64_t prefetches_sent_ = 0;
};

}  // namespace deut

#endif  // TC_CLIENT_TRANSACTION_STATE_H_

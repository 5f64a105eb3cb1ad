// TransactionState: an open or ended transaction as Transaction and its scanners see it. Not part of the public interface.
// Phases: open -> committed | aborted (by its owner) | ended (by an error, kept in `status`). Only the owner's thread moves it.
// Thread-safety: none. Ownership: owns the session while open; at the end the session goes back to the core, or is closed.
#ifndef TC_CLIENT_TRANSACTION_STATE_H_
#define TC_CLIENT_TRANSACTION_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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
  // Sends the next batch of a scan; it is taken by TakeAhead of the number answered. 0: nothing was sent. One batch at a time; one that
  // is not taken for long gives way to others. It is of no concern to the transaction whether anything comes of it (Operation::ahead).
  uint64_t SendAhead(const Operation& scan, const CallOptions& call);
  // The batch sent ahead under this number, as by Execute; false if there is none (any more), or it has failed: then it is to be asked for.
  bool TakeAhead(uint64_t number, std::vector<OperationResult>* answers, Status* status, const CallOptions& call);
  Result<CommitAnswer> Commit(const CallOptions& call);
  Status Abort();

  // The memory of a scanner's answers, for who gives it back when it has no more to show; empty if another scanner has it.
  std::vector<OperationResult> TakeBatchMemory() { return std::exchange(batch_memory_, {}); }
  void GiveBatchMemory(std::vector<OperationResult> memory) { batch_memory_ = std::move(memory); }

  // Buffers of Transaction's own operations, kept over calls.
  std::vector<Operation> operations;
  std::vector<OperationResult> results;

 private:
  enum class Phase : uint8_t { kOpen, kCommitted, kAborted, kEnded };

  // A batch on its way, or here and not yet taken.
  struct Ahead {
    uint64_t number = 0;  // 0 = none
    bool on_its_way = false;
    uint32_t passed_over = 0;
    std::string low, high;  // what the operation points to
    Operation scan;
    Status status;
    std::vector<OperationResult> results;
  };

  // Waits for what was sent ahead, to the deadline. Everything else that the session is asked comes after this. A failure of the session, or of
  // the transaction, ends the transaction.
  void Settle(Deadline deadline);
  void Settle(const CallOptions& call) {
    if (ahead_.on_its_way) Settle(core_->DeadlineFor(call, limit_));
  }
  // What an operation after the end is told.
  Status Ended() const;
  void End(Phase phase, const Status& status);
  // The session gets its memory back. REQUIRES: nobody looks at answers any more.
  void GiveMemoryBack();

  ClientCore* const core_;
  std::unique_ptr<ClientSession> session_;
  const Timestamp timestamp_;
  const TransactionName name_;
  const Deadline limit_;
  WrittenKeys* const trail_;
  Phase phase_ = Phase::kOpen;
  Status status_;
  std::vector<OperationResult> batch_memory_;
  Ahead ahead_;
  uint64_t sent_ahead_ = 0;
};

}  // namespace deut

#endif  // TC_CLIENT_TRANSACTION_STATE_H_

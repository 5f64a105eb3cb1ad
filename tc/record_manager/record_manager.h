// RecordManager: transactions over records and key ranges (paper, sections 2.1, 3 and 4; rules R, S4, S5, S10, T1,
//   D1, D4). It is the facade of the TC's concurrency control: everything above it (sessions, wire) knows no versions
//   and no ranges.
// Errors of operations:
// - ABORTED, and every failure that leaves the transaction's effects unclear: the caller must Abort.
// - UNAVAILABLE or DEADLINE_EXCEEDED from the DC: the caller must Abort.
// - ALREADY_EXISTS, NOT_FOUND, INVALID_ARGUMENT: nothing was done, and the transaction goes on.
// Thread-safety: any thread; each Transaction by one thread at a time. Ownership: borrows the engine.
#ifndef TC_RECORD_MANAGER_RECORD_MANAGER_H_
#define TC_RECORD_MANAGER_RECORD_MANAGER_H_

#include <memory>
#include <string_view>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "protocol/transaction_service.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/pinned.h"
#include "tc/record_manager/read_ahead.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class RecordManager {
 public:
  explicit RecordManager(Engine& engine) : engine_(engine) {}

  // Begins a transaction. `ended`, if not null, is an ended transaction whose memory is used; it is destroyed if
  // Begin fails.
  Result<std::unique_ptr<Transaction>> Begin(const TransactionOptions& options, Deadline deadline,
                                             std::unique_ptr<Transaction> ended = nullptr);

  // A hint, for a caller that knows the operations before their transaction begins: prefetches what they look at
  // first.
  void FetchAhead(absl::Span<const Operation> operations) const;

  // Begins a transaction that declares nothing, in the memory of one that has ended or was never begun.
  Status BeginUndeclared(Transaction& ended, const TransactionOptions& options, Deadline deadline);
  // Runs the whole of a transaction that has just begun and is one point read. The transaction has ended then in any
  // case. If the answer is an error it is also the status of the read, unless only the commit has failed.
  // `durable_at`: as for Commit.
  Result<CommitAnswer> ReadAlone(Transaction& txn, const Operation& get, OperationResult* result, Deadline deadline,
                                 Lsn* durable_at);

  // Appends the record to `result` if there is one.
  Status Get(Transaction& txn, TableId table, std::string_view key, RecordBatch* result, Deadline deadline);
  // Sends one message to the DC for all keys that the TC does not hold. results[i] belongs to gets[i].
  Status MultiGet(Transaction& txn, absl::Span<const Operation* const> gets, absl::Span<OperationResult* const> results,
                  Deadline deadline);

  Status Put(Transaction& txn, TableId table, std::string_view key, std::string_view value);
  Status Remove(Transaction& txn, TableId table, std::string_view key);
  Status Insert(Transaction& txn, TableId table, std::string_view key, std::string_view value, Deadline deadline);
  Status Update(Transaction& txn, TableId table, std::string_view key, std::string_view value, Deadline deadline);

  // Runs a kAdd, kMin, kMax or kCompareAndSet.
  Status Change(Transaction& txn, const Operation& operation, RecordBatch* result, Deadline deadline);
  // Runs a put or an insert with a stamp; `result` gets the key as written.
  Status PutStamped(Transaction& txn, const Operation& operation, RecordBatch* result, Deadline deadline);
  // One batch: a scan that announces updates (SIX), and a tombstone for each key found (S10).
  Status RemoveRange(Transaction& txn, const Operation& operation, OperationResult* result, Deadline deadline);

  // One batch (OperationKind::kScan).
  Status Scan(Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline);

  // Ends the bulk scans that the transaction's resumable scans have not used since `used_before`. The scans open
  // others when they go on.
  static void EndIdleStreams(Transaction& txn, MonotonicTime used_before);
  static bool HasResumableScans(const Transaction& txn);

  // D1: returns when the commit is acknowledged as its durability asks. OUTCOME_UNKNOWN if the deadline passes during
  // that wait. If `durable_at` is not null Commit does not wait. Instead it sets *durable_at to the LSN to wait for
  // (RedoLog::WaitDurable) before the client is told, or to 0 if there is nothing to wait for.
  Result<CommitAnswer> Commit(Transaction& txn, Deadline deadline, Lsn* durable_at = nullptr);
  void Abort(Transaction& txn, AbortReason reason);
  // S9: the error for a transaction that was aborted to make room.
  Status OverBudgetAbort(const Transaction& txn) const { return AbortedOverBudget(engine_, txn.timestamp()); }
  // Aborts, and returns when everything that the transaction has shown its client is durable (D1). For a failed
  // precondition.
  Status AbortAcknowledged(Transaction& txn, Deadline deadline, Lsn* durable_at = nullptr);

  std::unique_ptr<ReadAhead> NewReadAhead() { return std::make_unique<ReadAhead>(engine_); }

  // Counts a one-shot transaction that is run again because it has lost a conflict.
  void CountRestart() { engine_.counters.one_shots_rerun.fetch_add(1, std::memory_order_relaxed); }

  // The timestamp that the next transaction draws, or an earlier one.
  Timestamp next_timestamp() const { return engine_.active.next_timestamp(); }

  // T1. Each call is a transaction of its own, durable when the call returns.
  Result<TableId> CreateTable(std::string_view name, const TableOptions& options, Deadline deadline);
  Status DropTable(std::string_view name, Deadline deadline);

 private:
  static void EndScans(Transaction& txn);

  Engine& engine_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_RECORD_MANAGER_H_

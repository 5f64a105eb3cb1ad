// RecordManager: transactions over records and key ranges (paper, sections 2.1, 3 and 4; rules R, S4, S5, S10, T1, D1, D4). The facade of the
// TC's concurrency control: everything above it (sessions, wire) knows no versions and no ranges.
//
// Errors of operations. ABORTED, and any failure that leaves the transaction's effects unclear: the caller must Abort. ALREADY_EXISTS,
//   NOT_FOUND, INVALID_ARGUMENT: nothing was done, the transaction goes on. UNAVAILABLE / DEADLINE_EXCEEDED from the DC: the caller must Abort.
// Thread-safety: any thread; each Transaction by one thread at a time.
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

  // `ended`, if not null, is one that has ended, whose memory is used; it is gone if this fails.
  Result<std::unique_ptr<Transaction>> Begin(const TransactionOptions& options, Deadline deadline,
                                             std::unique_ptr<Transaction> ended = nullptr);

  // What these operations look at first is on its way into the cache: for who knows them before their transaction begins. A hint.
  void FetchAhead(absl::Span<const Operation> operations) const;

  // Begins one that declares nothing, in the memory of one that has ended, or was never begun.
  Status BeginUndeclared(Transaction& ended, const TransactionOptions& options, Deadline deadline);
  // All of a transaction that is one point read, when it has just begun; it has ended then, whatever happens. What this answers, if that is no OK,
  // is the status of the read, too, unless only the commit has failed. `durable_at`: as of Commit.
  Result<CommitAnswer> ReadAlone(Transaction& txn, const Operation& get, OperationResult* result, Deadline deadline,
                                 Lsn* durable_at);

  // Appends the record to `result` if there is one.
  Status Get(Transaction& txn, TableId table, std::string_view key, RecordBatch* result, Deadline deadline);
  // One message to the DC for all keys that the TC does not hold. results[i] belongs to keys[i].
  Status MultiGet(Transaction& txn, absl::Span<const Operation* const> gets, absl::Span<OperationResult* const> results,
                  Deadline deadline);

  Status Put(Transaction& txn, TableId table, std::string_view key, std::string_view value);
  Status Remove(Transaction& txn, TableId table, std::string_view key);
  Status Insert(Transaction& txn, TableId table, std::string_view key, std::string_view value, Deadline deadline);
  Status Update(Transaction& txn, TableId table, std::string_view key, std::string_view value, Deadline deadline);

  // kAdd, kMin, kMax, kCompareAndSet.
  Status Change(Transaction& txn, const Operation& operation, RecordBatch* result, Deadline deadline);
  // A put or insert with a stamp; `result` gets the key as written.
  Status PutStamped(Transaction& txn, const Operation& operation, RecordBatch* result, Deadline deadline);
  // One batch: a scan that announces updates (SIX), and a tombstone for each key it has found (S10).
  Status RemoveRange(Transaction& txn, const Operation& operation, OperationResult* result, Deadline deadline);

  // One batch (OperationKind::kScan).
  Status Scan(Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline);

  // Gives up what scans of the transaction that stand since before `used_before` hold of the DC; they go on all the same.
  static void RestScans(Transaction& txn, MonotonicTime used_before);
  static bool HasStandingScans(const Transaction& txn);

  // D1: returns when the commit is acknowledged as its durability asks. OUTCOME_UNKNOWN if the deadline passes while waiting for that.
  // `durable_at`, if not null, is set to where the log has to be durable (RedoLog::WaitDurable) before that, in place of waiting; 0: it is.
  Result<CommitAnswer> Commit(Transaction& txn, Deadline deadline, Lsn* durable_at = nullptr);
  void Abort(Transaction& txn, AbortReason reason);
  // S9: what a transaction is told that was aborted to make room.
  Status OverBudgetAbort(const Transaction& txn) const { return AbortedOverBudget(engine_, txn.timestamp()); }
  // Aborts, and returns when everything the transaction has shown its client is durable (D1): for a failed precondition.
  Status AbortAcknowledged(Transaction& txn, Deadline deadline, Lsn* durable_at = nullptr);

  std::unique_ptr<ReadAhead> NewReadAhead() { return std::make_unique<ReadAhead>(engine_); }

  // A one-shot transaction that has lost a conflict is run again.
  void CountRestart() { engine_.counters.restarted.fetch_add(1, std::memory_order_relaxed); }

  // The timestamp that the next transaction draws, or an earlier one.
  Timestamp next_timestamp() const { return engine_.active.next_timestamp(); }

  // T1. Each is a transaction of its own, durable when it returns.
  Result<TableId> CreateTable(std::string_view name, Deadline deadline);
  Status DropTable(std::string_view name, Deadline deadline);

 private:
  static void EndScans(Transaction& txn);

  Engine& engine_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_RECORD_MANAGER_H_

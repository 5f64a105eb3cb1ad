// CommitPath: begins and ends transactions (rules L, D1, D4, S2, R7).
//
// Order of a commit:
// 1. Claim room in the log for the whole commit (D5).
// 2. Status active -> committing.
// 3. Publish the lower bound of the first record (S2).
// 4. Reserve and copy the commit record.
// 5. Status committed (D4).
// 6. Hand the transaction's record to the collector.
// 7. Clear the slot (L1: not before the commit LSN is reserved).
// 8. Wait for durability (D1).
// Thread-safety: as RecordManager. Ownership: borrows the engine.
#ifndef TC_RECORD_MANAGER_COMMIT_PATH_H_
#define TC_RECORD_MANAGER_COMMIT_PATH_H_

#include <memory>

#include "absl/container/inlined_vector.h"
#include "common/base/status.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class CommitPath {
 public:
  explicit CommitPath(Engine& engine) : engine_(engine) {}

  // Begins the transaction. `writes`: it will certainly write, so no snapshot passes it (L2, ahead). REQUIRES: `txn`
  // has just been made, or made anew.
  Status Begin(Transaction& txn, const TransactionOptions& options, Deadline deadline, bool writes = false);
  // Commits the transaction. If `durable_at` is not null, Commit does not wait for durability. Instead it sets
  // *durable_at to the LSN that the caller must wait for, and leaves it alone if there is none.
  Result<CommitAnswer> Commit(Transaction& txn, Deadline deadline, Lsn* durable_at = nullptr);
  void Abort(Transaction& txn, AbortReason reason);
  // Aborts, then waits as Commit does for the commits that the transaction has shown to its client (D1).
  Status AbortAcknowledged(Transaction& txn, Deadline deadline, Lsn* durable_at = nullptr);

  // Commits `updates` in place of the write set's. The creation and the drop of tables use it.
  Result<CommitAnswer> CommitUpdates(Transaction& txn, absl::Span<const Update> updates, Deadline deadline);

 private:
  // The updates to log, in the order of the log. For a write set also the items that they come from, and room for
  // their places in the log.
  struct Writes {
    absl::InlinedVector<Update, 4> updates;
    absl::InlinedVector<const WriteItem*, 8> items;
    absl::InlinedVector<Lsn, 8> places;
  };

  static Writes WritesOf(const Transaction& txn);
  // Commits a transaction that wrote nothing.
  Result<CommitAnswer> CommitNothing(Transaction& txn, Deadline deadline, Lsn* durable_at);
  Result<CommitAnswer> CommitWrites(Transaction& txn, Writes writes, Deadline deadline, Lsn* durable_at);
  // `deadline` limits the wait for room in the log (D5).
  Result<CommitAnswer> Append(Transaction& txn, Writes& writes, Deadline deadline);
  Status WaitAcknowledged(const Transaction& txn, Lsn own_commit, Deadline deadline, Lsn* durable_at);
  // Takes the last step of a commit, and wakes the transactions that wait for it (R9).
  void FinishCommit(TransactionRecord& record, Lsn lsn);
  void Finish(Transaction& txn, Transaction::State state);

  Engine& engine_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_COMMIT_PATH_H_

// Beginning and ending transactions (rules L, D1, D4, S2, R7).
//
// Commit order: room for all of it claimed in the log (D5); status active -> committing; lower bound of the first record published (S2);
//   commit record reserved and copied; status committed (D4); handed to the collector; slot cleared (L1: not before the commit LSN is
//   reserved); then the wait for durability (D1).
// Thread-safety: as RecordManager.
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

  // REQUIRES: it has just been made, or made anew.
  // `writes`: it writes for certain, so no snapshot passes it (L2, ahead).
  Status Begin(Transaction& txn, const TransactionOptions& options, Deadline deadline, bool writes = false);
  // `durable_at`, if not null: does not wait for durability, but answers what is to be waited for (0: nothing).
  Result<CommitAnswer> Commit(Transaction& txn, Deadline deadline, Lsn* durable_at = nullptr);
  void Abort(Transaction& txn, AbortReason reason);
  Status AbortAcknowledged(Transaction& txn, Deadline deadline, Lsn* durable_at = nullptr);

  // Commits `updates` in place of the write set's; for creating and dropping tables.
  Result<CommitAnswer> CommitUpdates(Transaction& txn, absl::Span<const Update> updates, Deadline deadline);

 private:
  // What is logged, in the order of the log; of a write set also what it comes from, and room for where it will stand.
  struct Writes {
    absl::InlinedVector<Update, 4> updates;
    absl::InlinedVector<const WriteItem*, 8> items;
    absl::InlinedVector<Lsn, 8> places;
  };

  static Writes WritesOf(const Transaction& txn);
  // Of a transaction that wrote nothing.
  Result<CommitAnswer> CommitNothing(Transaction& txn, Deadline deadline, Lsn* durable_at);
  Result<CommitAnswer> CommitWrites(Transaction& txn, Writes writes, Deadline deadline, Lsn* durable_at);
  // The deadline is that of the wait for room in the log (D5).
  Result<CommitAnswer> Append(Transaction& txn, Writes& writes, Deadline deadline);
  Status WaitAcknowledged(const Transaction& txn, Lsn own_commit, Deadline deadline, Lsn* durable_at);
  // The last step of a commit, and the waking of those who wait for it (R9).
  void FinishCommit(TransactionRecord& record, Lsn lsn);
  void Finish(Transaction& txn, Transaction::State state);

  Engine& engine_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_COMMIT_PATH_H_

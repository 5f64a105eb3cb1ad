// CommitFolder: folds commits that are not applied soon (rule S8), mostly because an earlier transaction is open. A fold
// publishes the commits' keys in runs of their tables, then marks the transactions, then unlinks their postings. After
// that only the versions use the transaction record. A FoldedCommit keeps the commit's position and entries.
//
// S6, early: at each fold, the versions that no reader can read are unlinked from the chains of the folded commits. So a
//   key that is written repeatedly under a long reader keeps few folded versions: the newest, and at most one for each
//   timestamp at which a transaction or snapshot reads.
// S9: only a folded commit can be paged out or spilled, so all are folded when memory is short.
// When to fold (constants in commit_folder.cc). All unfolded commits are folded in any of these cases, which the
//   collector examines in each round.
// At once:
// - S9: one waits, and more than the value evictor's share of the budget is pinned;
// - at least `fold_at_least` wait behind folded commits, and an open transaction holds the last folded one back;
// - at least `fold_at_least` wait behind folded commits, and one of the last two cases below has occurred since the list
//   of folded commits was last empty.
// After a time:
// - at least `fold_at_least` wait, the first for `fold_after`, and an open transaction holds it back;
// - at least `fold_at_least` wait, the first for kDcDelayFoldFactor times `fold_after`, for any reason;
// - fewer wait, the first for kFewCommitsFoldFactor times `fold_after`.
// The times are lower bounds: the age of the first is known from the last round that noted the arrivals.
// Guards: as in unlinker.h.
// Thread-safety: the collector's thread; the figures from any thread.
// Ownership: none. The constructor's arguments and the runs must outlive it.
#ifndef TC_MVCC_COMMIT_FOLDER_H_
#define TC_MVCC_COMMIT_FOLDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/committed_runs.h"
#include "tc/mvcc/entry_remover.h"
#include "tc/mvcc/folded_commit.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/stepped_guard.h"
#include "tc/mvcc/unapplied_commits.h"
#include "tc/mvcc/unlinker.h"
#include "tc/mvcc/value_evictor.h"
#include "tc/txn/readers.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

class CommitFolder {
 public:
  struct Options {
    std::function<Timestamp()> low_water;    // may run a round of low-water
    std::function<void(uint64_t)> released;  // S9: bytes of transactions that were folded; may be empty
    // S6, early: the current readers. Empty, or without a result: nothing is collected early.
    std::function<std::optional<Readers>()> readers;
    // The runs of a table. Empty: nothing is folded.
    std::function<CommittedRuns&(TableId)> runs;
    Duration fold_after = milliseconds(10);
    size_t fold_at_least = 32;
  };
  // The other parts of the collector that a fold uses.
  struct Parts {
    UnappliedCommits& commits;
    EntryRemover& entries;
    Unlinker& unlinker;
    ValueEvictor& value_evictor;
  };

  CommitFolder(Options options, Runtime& runtime, ReclamationDomain& domain, RecordTable& records, const Parts& parts);
  CommitFolder(const CommitFolder&) = delete;
  CommitFolder& operator=(const CommitFolder&) = delete;

  // Whether to fold now. Notes the commits that have arrived.
  bool ShouldFold();
  // Folds all unfolded commits.
  void Fold();
  // Drops runs that are applied, and merges others.
  void DropAppliedAndMergeRuns(Position applied);
  // True if some of the table's keys are in runs.
  bool HasRuns(TableId table) const { return runs_.contains(table); }

  // Figures.
  uint64_t run_bytes() const { return run_bytes_.load(std::memory_order_relaxed); }
  // S6: versions that were unlinked early because no reader could read them.
  uint64_t unread() const { return unread_.load(std::memory_order_relaxed); }

 private:
  // True if an open transaction holds this commit back.
  bool HeldBack(Timestamp commit) const;
  FoldedCommit FoldRecord(TransactionRecord& record, Timestamp low_water, SteppedGuard& guard);
  // S6, early: unlinks unread versions from these chains.
  void CollectEarly(std::vector<RecordEntry*> entries, SteppedGuard& guard);

  const Options options_;
  Runtime& runtime_;
  ReclamationDomain& domain_;
  RecordTable& records_;
  const Parts parts_;
  std::atomic<uint64_t> run_bytes_{0};
  std::atomic<uint64_t> unread_{0};

  // Used by the collector's thread only.
  absl::flat_hash_map<TableId, CommittedRuns*> runs_;  // the non-empty ones
  bool lagging_ = false;                               // commits were folded because the DC lags
  MonotonicTime sample_time_{};                        // when `sample_lsn_` was set
  Lsn sample_lsn_;                                     // commits up to here have waited since `sample_time_`
};

}  // namespace deut::tc

#endif  // TC_MVCC_COMMIT_FOLDER_H_

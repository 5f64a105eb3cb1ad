// UnappliedCommits: the commits that the collector has taken over and that it has not found applied, in commit order.
// Unlinking, folding and spilling share them: a fold turns unfolded commits into folded ones, a spill takes the earliest
// folded ones, and applied commits leave from the front.
//
// States of a commit: unfolded -> folded -> gone, or unfolded -> gone. Later commits may be folded while an earlier one,
//   which arrived late, is not. So the first commit is the earlier one of the two queues' fronts.
// S9: pinned memory of a commit is counted with its transaction until it is folded or collected, then in folded_bytes.
// Thread-safety: CountArrival and the figures from any thread; all else by the collector's.
// Ownership: none of the records and entries; the collector holds the owner's reference of each record.
#ifndef TC_MVCC_UNAPPLIED_COMMITS_H_
#define TC_MVCC_UNAPPLIED_COMMITS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/base/ids.h"
#include "tc/mvcc/commit_queue.h"
#include "tc/mvcc/folded_commit.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

// A finished transaction that is to be collected: an aborted one, or a commit that was found applied. `record` is null
// if it was folded; then `folded` has it.
struct FinishedTransaction {
  TransactionRecord* record = nullptr;
  FoldedCommit folded;

  // An outcome without a commit record (a transaction that has written nothing durable) counts as aborted.
  static bool Committed(const TransactionRecord& record) {
    return record.status() == TransactionStatus::kCommitted && record.commit_lsn().value != 0;
  }
  bool committed() const { return record == nullptr || Committed(*record); }
  Lsn commit() const { return record == nullptr ? folded.last().commit : record->commit_lsn(); }
};

// At or behind every commit.
constexpr Position kEveryPosition{Lsn{UINT64_MAX}, UINT32_MAX};

// Position of the transaction's last logged update.
Position LastPosition(const TransactionRecord& record);

class UnappliedCommits {
 public:
  // A transaction was handed to the collector, which will take it over.
  void CountArrival() { waiting_.fetch_add(1, std::memory_order_relaxed); }

  // Takes over a commit. It enters the queue at the next Settle.
  void Add(TransactionRecord* record);
  void Settle() { unfolded_.Settle(); }
  // All transactions that committed before this LSN have been taken over (S9).
  void set_complete_below(Lsn lsn) { complete_below_ = lsn; }
  Lsn complete_below() const { return complete_below_; }
  // The latest commit that was taken over.
  Lsn last_taken() const { return last_taken_; }

  bool empty() const { return unfolded_.empty() && folded_.empty(); }
  // Moves the first commit out of the queues if it is at or before `through`. False: it is not.
  bool PopThrough(Position through, FinishedTransaction* next);
  // `count` transactions have been collected or spilled.
  void CountGone(size_t count);

  // The unfolded commits.
  const CommitQueue& unfolded() const { return unfolded_; }

  // The folded commits, in commit order.
  const std::deque<FoldedCommit>& folded() const { return folded_; }
  void AddFolded(FoldedCommit commit);
  // Every unfolded commit was folded, and AddFolded was called for each.
  void EndFold();
  // Takes the earliest folded commit out. REQUIRES: there is one; ReturnFolded is called afterwards.
  FoldedCommit PopFolded();
  // Puts back those of the commits taken out that stay in memory.
  void ReturnFolded(std::vector<FoldedCommit> rest);

  // S9. Each addition is undone by subtractions of the same sum.
  void AddFoldedBytes(uint64_t bytes) { folded_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void SubtractFoldedBytes(uint64_t bytes);

  // Publishes the timestamp of the first commit. `spilled`: that of the first one in spilled runs, 0 if there is none.
  void PublishFirst(Timestamp spilled);

  // Figures.
  // Transactions that were handed over and are neither collected nor spilled.
  uint64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  uint64_t gone() const { return gone_.load(std::memory_order_relaxed); }
  uint64_t folded_count() const { return folded_count_.load(std::memory_order_relaxed); }
  // Versions of folded commits with their entries, and FoldedCommit objects.
  uint64_t folded_bytes() const { return folded_bytes_.load(std::memory_order_relaxed); }
  Timestamp first() const { return Timestamp{first_.load(std::memory_order_relaxed)}; }

 private:
  void PublishFoldedCount() { folded_count_.store(folded_.size(), std::memory_order_relaxed); }

  std::atomic<uint64_t> waiting_{0};
  std::atomic<uint64_t> gone_{0};
  std::atomic<uint64_t> folded_count_{0};
  std::atomic<uint64_t> folded_bytes_{0};
  std::atomic<uint64_t> first_{0};

  // Used by the collector's thread only.
  CommitQueue unfolded_;
  std::deque<FoldedCommit> folded_;  // in commit order
  Lsn last_taken_;
  Lsn complete_below_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_UNAPPLIED_COMMITS_H_

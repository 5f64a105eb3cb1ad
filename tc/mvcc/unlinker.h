// Unlinker: unlinks the versions and postings of finished transactions that no transaction needs any more, and passes
// entries without a version to the remover (rules S6, S7, R7). The collector decides when a transaction is collected.
//
// Commits are collected in commit-record order, which per key is timestamp order. So when a version leaves because it
//   is applied, all older versions of the key leave with it or have left.
// S6: a commit is collected when its last position <= applied. It was shipped, hence is below low-water. A reader that
//   could want its versions finds them, or something newer that it may read, at the DC.
// S7: an applied version may become a copy for the read cache instead of leaving (read_cache.h).
// Guards: a pass over updates releases its guard and takes it again every few updates, also within one commit
//   (stepped_guard.h).
// Postings are unlinked in bulk, later (posting_book.h). Versions, postings and readers may keep a released record.
// Thread-safety: collected_through from any thread; all else by the collector's thread.
// Ownership: takes over the owner's reference of each transaction. The constructor's arguments must outlive it.
// REQUIRES at destruction: SweepPostings(true) was called after the last transaction.
#ifndef TC_MVCC_UNLINKER_H_
#define TC_MVCC_UNLINKER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/entry_remover.h"
#include "tc/mvcc/posting_book.h"
#include "tc/mvcc/read_cache.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/stepped_guard.h"
#include "tc/mvcc/unapplied_commits.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

class Unlinker {
 public:
  struct Options {
    std::function<Timestamp()> low_water;    // may run a round of low-water
    std::function<void(uint64_t)> released;  // S9: bytes of transactions that were collected; may be empty
    ReadCache* read_cache = nullptr;         // S7; null: no copies are made
  };

  Unlinker(Options options, ReclamationDomain& domain, RecordTable& records, UnappliedCommits& commits,
           EntryRemover& entries);
  Unlinker(const Unlinker&) = delete;
  Unlinker& operator=(const Unlinker&) = delete;

  // Takes over an aborted transaction, until CollectAborted.
  void AddAborted(TransactionRecord* record) { aborted_.push_back(record); }
  void CollectAborted();
  // Collects these transactions. REQUIRES: the commits among them are in ascending commit order, behind all that were
  // collected before.
  void Collect(std::vector<FinishedTransaction> gone);
  // Marks the record as collected and takes its write set.
  void ReleaseRecord(TransactionRecord& record);

  // Unlinks postings of released records: where there are many, or all.
  void SweepPostings(bool all) { dead_postings_.Sweep(all); }
  // T1 (PostingBook::Forget).
  void ForgetPostings(const RangePartition& ranges) { dead_postings_.Forget(ranges); }

  // The DC has applied all commits up to this position. Called before any of them is collected.
  void RaiseCollectedThrough(Position applied);
  // Upper bound of the commit LSNs of everything collected so far; only rises. (The DC's applied position goes back when
  // the DC restarts.)
  Lsn collected_through() const { return Lsn{collected_through_.load(std::memory_order_seq_cst)}; }
  // The same, for the collector's thread, which alone changes it.
  Lsn own_collected_through() const { return Lsn{collected_through_.load(std::memory_order_relaxed)}; }
  Lsn last_collected() const { return last_collected_; }

 private:
  struct FoldedUpdate {
    RecordEntry* entry;
    Timestamp timestamp;
  };

  void CollectItems(TransactionRecord& record, Timestamp low_water, SteppedGuard& guard);
  // Collects the updates of folded commits that follow each other in commit order, and empties the list. It walks each
  // chain once, down to the latest of these commits, because newer versions above it may be many.
  void CollectFolded(std::vector<FoldedUpdate>* updates, Timestamp low_water, SteppedGuard& guard);
  // S6, S7: removes an applied version and everything below it, or turns it into a copy for the read cache.
  void CollectOrRefresh(RecordEntry& entry, RecordVersion* version);

  const Options options_;
  ReclamationDomain& domain_;
  RecordTable& records_;
  UnappliedCommits& commits_;
  EntryRemover& entries_;
  // Every range of a scan loads it, so the members below, which each collected commit changes, are on another line.
  alignas(64) std::atomic<uint64_t> collected_through_{0};

  // Used by the collector's thread only.
  alignas(64) std::vector<TransactionRecord*> aborted_;
  Lsn last_collected_;
  PostingBook dead_postings_;  // postings of collected transactions that are still linked
};

}  // namespace deut::tc

#endif  // TC_MVCC_UNLINKER_H_

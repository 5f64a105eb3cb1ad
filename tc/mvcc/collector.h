// Collector: unlinks what nobody needs any more (rules S6, R5, R6, R7): versions and postings of aborted transactions at once; those of
// committed transactions once the DC has applied them; then entries that hold no version.
//
// One thread. Finished transactions arrive over a latch-free stack; they are worked off in commit-record order, which per key is
//   timestamp order, so older versions always leave before newer ones. All unlinking of entries, postings and chain tails is done here; the
//   structures rely on that (record_table.h, range_table.h, version_chain.h).
// S6: a commit is collected when its last position <= applied. It was shipped, hence below low-water: every reader that could want its
//   versions finds them, or something newer that it may read, at the DC. S5: it is kept for one more round after that, so that scans that
//   gathered its keys before it was applied seldom find the chain empty.
// S8: commits that are not applied soon, mostly because somebody earlier is open, are folded: their keys are published in runs of their tables,
//   then the transactions are marked, then their postings are unlinked. From then on the record is the versions' alone; the collector keeps the
//   commit's position and entries.
// S6, early: the chains of what has been folded lose the versions that nobody reads, so a key that is written again and again under a long reader
//   keeps as many versions as there are readers between them.
// S9: what is pinned is counted with the transaction until it is folded or collected, then here (folded_bytes).
// S9: beyond a share of the budget values of folded commits leave memory, the earliest first (pager.h); then whatever is committed is folded at once.
//   Beyond a larger one folded commits leave memory as a whole, for spilled runs (spiller.h). What reads there must not miss what was committed
//   later: a run is taken off when its last commit is applied, in the round before anything behind it is collected.
// R5/R6: an entry whose last_read is above low-water waits in a list, also one whose versions were spilled; when that list is over its limit, the
//   bucket's floor is raised to the entry's last_read and the entry goes at once.
// Guards: a pass over updates leaves its guard and takes it again every some of them, also within one commit (stepped_guard.h).
// S7: the read cache's room is made here, some of it each round: so whatever takes a version or an entry out of the table runs on this thread, save
//   writers that install.
//   A reader that finds its bucket's floor taken makes such an entry (record_table.h) and hands it over here: it goes into the same list.
// Thread-safety: Finish, Defer, MakeRoom, RunExclusive, MarkFinished, WaitCollected and the figures from any thread.
#ifndef TC_MVCC_COLLECTOR_H_
#define TC_MVCC_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/commit_queue.h"
#include "tc/mvcc/committed_runs.h"
#include "tc/mvcc/folded_commit.h"
#include "tc/mvcc/pager.h"
#include "tc/mvcc/posting_book.h"
#include "tc/mvcc/read_cache.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/spiller.h"
#include "tc/mvcc/stepped_guard.h"
#include "tc/txn/readers.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

class Collector {
 public:
  class Access;
  struct Options {
    std::function<Position()> applied;       // by the DC's current life
    std::function<Timestamp()> low_water;    // may run a round
    std::function<void(uint64_t)> released;  // bytes that transactions had, which are collected or folded (S9)
    // S6, early: who reads (ActiveTransactions::RoundForReaders). None: nothing is collected early.
    std::function<std::optional<Readers>()> readers;
    // S8: of a table; stays while the collector lives. None: nothing is folded.
    std::function<CommittedRuns&(TableId)> runs;
    // T1: frees dropped tables, at the end of each round. True: it has more to do. None: there are no tables.
    std::function<bool(Access&)> free_tables;
    ReadCache* read_cache = nullptr;  // S7; none: nothing is kept of what the DC answers
    // S9.
    Pager::Options pager;
    Spiller::Options spiller;
    Duration period = milliseconds(2);  // between rounds while commits wait to be applied
    // Folded is when a commit has waited so long for somebody who is open, and so many do; or longer for the DC alone; or one has waited very long.
    Duration fold_after = milliseconds(10);
    size_t fold_at_least = 32;
    size_t max_deferred_entries = 64 << 10;
  };

  Collector(Options options, Runtime& runtime, ReclamationDomain& domain, RecordTable& records);
  ~Collector();

  void Start();
  // Ends the thread. REQUIRES: no transaction is open. What is left is unlinked, applied or not.
  void Stop();

  // Hands over a transaction whose status is final, with the owner's reference. Called before its slot is cleared, so that when no slot is
  // taken all finished transactions are here.
  void Finish(TransactionRecord* record);

  // R6. Takes over an entry that was made deferred (RecordTable::FindOrCreateDeferred), to be removed when low-water has passed its last_read.
  void Defer(RecordEntry* entry);
  // Whether there is room for more of them.
  bool MayDefer() const {
    return deferred_count_.load(std::memory_order_relaxed) + arriving_count_.load(std::memory_order_relaxed) <
           options_.max_deferred_entries;
  }

  // S7: the read cache has little room.
  void MakeRoom();
  // T1: a table was dropped.
  void FreeTables() { WakeUp(); }

  // What had finished when it was set; for who waits for that. What comes later does not prolong the wait.
  class Mark {
   private:
    friend class Collector;
    Lsn commit_;  // the latest one
    // Once all that was committed is collected: what is kept then for its last_read alone was read at or before it.
    std::optional<Timestamp> read_;
  };

  // What a task sees of the collector; valid during the task, for its thread.
  class Access {
   public:
    Mark MarkFinished() const;
    // By the DC, as the last round has found it: commits up to there wait for the collection or are collected.
    Position applied() const { return collector_.round_applied_; }
    // As WaitCollected, without waiting.
    bool Collected(Mark* mark);
    // Folds what was taken over, however little it is.
    void Fold();
    // S7: nothing is kept any more of what the DC had answered.
    void ClearReadCache();
    // T1: what the collector has of a dropped table goes. False: nothing went, commits up to the one that dropped it are still to be
    // collected, or its keys are in runs. REQUIRES: everything that was posted in these ranges was taken over.
    bool LetGo(TableId table, Lsn dropped_at, const RangePartition& ranges);

   private:
    friend class Collector;
    explicit Access(Collector& collector) : collector_(collector) {}
    Collector& collector_;
  };

  // Runs `task` on the collector's thread between two rounds and waits for it. Nothing is collected meanwhile; transactions may begin and end.
  // After Stop the caller's thread runs it (there is nothing left to collect). REQUIRES: started.
  void RunExclusive(std::function<void(Access&)> task);

  Mark MarkFinished();
  // True once everything that had finished at the mark has been collected, and the entries that were kept for their last_read alone have gone, but
  // for those that were read again; false at the deadline. It can be called again with the same mark.
  bool WaitCollected(Mark* mark, Deadline deadline);

  // Everything that was ever collected committed at or before this LSN; only rises. (The DC's applied position goes back when it restarts.)
  Lsn collected_through() const { return Lsn{collected_through_.load(std::memory_order_seq_cst)}; }

  uint64_t uncollected() const { return uncollected_.load(std::memory_order_relaxed); }
  uint64_t collected() const { return collected_.load(std::memory_order_relaxed); }
  uint64_t deferred_entries() const { return deferred_count_.load(std::memory_order_relaxed); }
  // S9: what is kept of folded commits: their versions with their entries, what finds them when they are applied, runs.
  uint64_t folded_bytes() const {
    return folded_bytes_.load(std::memory_order_relaxed) + run_bytes_.load(std::memory_order_relaxed) + pager_.bytes() +
           (options_.spiller.runs == nullptr ? 0 : options_.spiller.runs->memory_bytes());
  }
  // S6: versions that have gone because nobody could read them.
  uint64_t unread() const { return unread_.load(std::memory_order_relaxed); }
  // R6: reads, and timestamps of spilled versions, that were remembered here as reads of all keys of their bucket.
  uint64_t shared_floors() const { return shared_floors_.load(std::memory_order_relaxed); }
  // S9: values that have left memory, ever.
  uint64_t paged_out() const { return pager_.versions(); }
  uint64_t paged_out_bytes() const { return pager_.paged_bytes(); }
  // More is pinned than its share, and for some rounds nothing has left memory: nothing can.
  bool stuck() const { return fruitless_.load(std::memory_order_relaxed) >= kStuckAfter; }
  // S9: versions that have left it for runs, ever, and runs that could not be written.
  uint64_t spilled() const { return spiller_.versions(); }
  uint64_t failed_spills() const { return spiller_.failures(); }
  // The commit that waits longest to be applied, when last looked at; 0 = none does.
  Timestamp first_waiting() const { return Timestamp{first_waiting_.load(std::memory_order_relaxed)}; }
  uint64_t folded() const { return folded_count_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kStuckAfter = 8;

  struct Task {
    std::function<void(Access&)> run;
    Event done;
    Task* next = nullptr;
  };

  void Run();
  void Round();
  // Committed ones go to committed_, the others to aborted_.
  void TakeFinished();
  void TakeDeferred();
  void CollectAborted();
  void RunTasks();
  // A commit that is applied; folded before, if `record` is null.
  struct Applied {
    TransactionRecord* record = nullptr;
    FoldedCommit folded;

    Lsn commit() const { return record == nullptr ? folded.last().commit : record->commit_lsn(); }
  };

  // Moves the next commit in order out of the queues if it is at or before `through`.
  bool TakeApplied(Position through, Applied* next);
  // In ascending commit order.
  void Collect(std::vector<Applied> gone);
  void CollectItems(TransactionRecord& record, Timestamp low_water, SteppedGuard& guard);
  // Of folded commits, one after the other in commit order; empties the list. A chain is walked once, down to the latest of its commits: what was
  // written since stands above, and may be long.
  struct FoldedUpdate {
    RecordEntry* entry;
    Timestamp timestamp;
  };
  void CollectFolded(std::vector<FoldedUpdate>* updates, Timestamp low_water, SteppedGuard& guard);
  // Marks it; its postings, versions and readers may keep it, without its keys.
  void ReleaseRecord(TransactionRecord& record);
  // S8.
  bool ShouldFold();
  bool HeldBack(Timestamp commit) const;
  void Fold();
  void PutFolded(FoldedCommit commit);
  FoldedCommit FoldRecord(TransactionRecord& record, Timestamp low_water, SteppedGuard& guard);
  // S6, early: of these chains.
  void CollectEarly(std::vector<RecordEntry*> entries, SteppedGuard& guard);
  void TidyRuns(Position applied);
  // S6, of spilled versions.
  SpillMerge::AnyReader WhoReads();
  // S9. REQUIRES: nothing is applied that is not collected. Answers the bytes that have left memory.
  uint64_t Spill();
  void CountFruitless(bool pressed, uint64_t freed);
  // S6, S7: the chain from an applied version down goes, perhaps to a copy.
  void CutChain(RecordEntry& entry, RecordVersion* version);
  void EvictCopies();
  void SayWhatWaits();
  void RemoveEntry(RecordEntry* entry, Timestamp low_water);
  // R6: a floor of another key becomes one of all keys, of this read too.
  void ShareFloor(uint64_t hash, Timestamp read);
  void RetryDeferred(Timestamp low_water);
  // Of those that wait for low-water so many, which have waited longest. REQUIRES: there are so many, and a guard is held.
  void RetryOldest(size_t count, Timestamp low_water);
  bool Collected(Mark* mark);
  void WakeUp();

  const Options options_;
  Runtime& runtime_;
  ReclamationDomain& domain_;
  RecordTable& records_;

  // An entry on its way into the list.
  struct Arriving {
    RecordEntry* entry;
    Arriving* next;
  };

  std::atomic<TransactionRecord*> finished_{nullptr};
  std::atomic<Arriving*> arriving_{nullptr};
  std::atomic<size_t> arriving_count_{0};
  std::atomic<Task*> tasks_{nullptr};
  std::atomic<uint32_t> work_{0};      // bumped with every arrival
  std::atomic<uint32_t> sleeping_{0};  // the thread waits on work_
  std::atomic<bool> stop_{false};
  std::atomic<bool> stopped_{false};  // the thread has ended and all is collected
  std::atomic<uint64_t> uncollected_{0};
  std::atomic<uint64_t> collected_{0};
  std::atomic<uint64_t> deferred_count_{0};
  std::atomic<uint64_t> folded_count_{0};
  std::atomic<uint64_t> folded_bytes_{0};
  std::atomic<uint64_t> run_bytes_{0};
  std::atomic<uint64_t> unread_{0};
  std::atomic<uint64_t> shared_floors_{0};
  std::atomic<uint64_t> collected_through_{0};
  std::atomic<uint64_t> first_waiting_{0};
  std::atomic<uint32_t> fruitless_{0};

  // The thread's own.
  Pager pager_;
  Spiller spiller_;
  Lsn finished_below_;                       // all that was committed before it has been taken over
  CommitQueue committed_;                    // not folded
  std::deque<FoldedCommit> folded_;          // in commit order
  std::vector<Applied> applied_;             // applied when last looked at; collected next round, in commit order
  std::vector<TransactionRecord*> aborted_;  // taken and not collected yet
  bool more_to_evict_ = false;               // of the read cache
  bool more_to_free_ = false;                // of dropped tables
  bool more_to_sweep_ = false;               // of the record table's floors
  Lsn last_collected_;
  Position round_applied_;                             // what the last round has taken for applied
  Lsn last_taken_;                                     // the latest commit that was taken over
  bool lagging_ = false;                               // commits were folded that only the DC was behind with
  MonotonicTime fold_look_{};                          // when `fold_through_` was set
  Lsn fold_through_;                                   // commits up to here have waited since then
  absl::flat_hash_map<TableId, CommittedRuns*> runs_;  // that are not empty
  std::deque<RecordEntry*> deferred_;
  Timestamp retried_at_;       // low-water at the last look at these
  PostingBook gone_postings_;  // of collected transactions, still linked
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_COLLECTOR_H_

// Collector: the thread that removes the versions, postings and entries that no transaction needs any more (rules S6, R5,
// R6, R7). It collects an aborted transaction at once, and a commit after the DC has applied it. It composes the parts
// that do the work, and decides in which order they run:
//   unlinker.h           unlinks the versions and postings of transactions that are collected
//   commit_folder.h      S8: folds commits that are not applied soon into sorted runs
//   value_evictor.h      S9: pages out values of folded commits, earliest first, beyond a share of the budget
//   spiller.h            S9: moves whole folded commits to spilled runs, beyond a larger share
//   entry_remover.h      R5, R6: removes entries without versions, or defers them
//   unapplied_commits.h  the commits that wait, which these parts share
//
// One thread. Finished transactions arrive over a latch-free stack, and deferred entries over another (entry_remover.h).
//   Only this thread unlinks entries, postings and chain tails; the structures rely on that (record_table.h,
//   range_table.h, version_chain.h).
// S5: an applied commit is kept for one more round. So a scan that gathered its keys before they were applied seldom
//   finds the chain empty.
// S7: each round evicts copies from the read cache until it has some room, or until it has examined 2,048 entries. So
//   every removal of a version or an entry runs on this thread, except those by writers that install.
// S9: a reader of a spilled run must not miss a later commit. So a run is dropped when its last commit is applied, in
//   the round before anything behind it is collected.
// Thread-safety: Finish, Defer, MayDefer, MakeRoom, FreeTables, RunBetweenRounds, MarkFinished, WaitCollected and the
//   figures from any thread, except that a task must not call the functions that wait for the collector; Start and Stop
//   by the owner.
// Ownership: takes over the owner's reference of each finished record, and deferred entries. `runtime`, `domain`,
//   `records` and all that the options point to must outlive it.
#ifndef TC_MVCC_COLLECTOR_H_
#define TC_MVCC_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/commit_folder.h"
#include "tc/mvcc/committed_runs.h"
#include "tc/mvcc/entry_remover.h"
#include "tc/mvcc/read_cache.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/spiller.h"
#include "tc/mvcc/unapplied_commits.h"
#include "tc/mvcc/unlinker.h"
#include "tc/mvcc/value_evictor.h"
#include "tc/txn/readers.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

class Collector {
 public:
  class Access;
  struct Options {
    std::function<Position()> applied;       // by the DC's current incarnation
    std::function<Timestamp()> low_water;    // may run a round of low-water
    std::function<void(uint64_t)> released;  // S9: bytes of transactions that were collected or folded
    // S6, early: the current readers (ActiveTransactions::RoundForReaders). Empty: nothing is collected early.
    std::function<std::optional<Readers>()> readers;
    // S8: the runs of a table, valid while the collector lives. Empty: nothing is folded.
    std::function<CommittedRuns&(TableId)> runs;
    // T1: frees dropped tables at the end of each round. Returns true if it has more to free. Empty: there are no tables.
    std::function<bool(Access&)> free_tables;
    ReadCache* read_cache = nullptr;  // S7; null: no copies of the DC's answers are kept
    // S9.
    ValueEvictor::Options value_evictor;
    Spiller::Options spiller;
    Duration period = milliseconds(2);  // between rounds while commits wait to be applied
    // When commits are folded (commit_folder.h).
    Duration fold_after = milliseconds(10);
    size_t fold_at_least = 32;
    size_t max_deferred_entries = 64 << 10;
  };

  Collector(Options options, Runtime& runtime, ReclamationDomain& domain, RecordTable& records);
  ~Collector();

  void Start();
  // Ends the thread. REQUIRES: no transaction is open. Unlinks everything that is left, applied or not.
  void Stop();

  // Hands over a transaction whose status is final, with the owner's reference. The owner calls it before it clears its slot. So when no slot is
  // claimed, all finished transactions have been handed over.
  void Finish(TransactionRecord* record);

  // R6. Takes over a deferred entry (RecordTable::FindOrCreateDeferred). The collector removes it when low-water has passed its last_read.
  void Defer(RecordEntry* entry);
  // Whether the list has room for another deferred entry.
  bool MayDefer() const { return entries_.MayDefer(); }

  // S7: wakes the collector because the read cache is nearly full. Only a hint: a collector that is just falling asleep
  // may miss it. That does no harm, because a full cache only keeps no further answers, and every answer that comes
  // then leads to another call.
  void MakeRoom();
  // T1: wakes the collector because a table was dropped.
  void FreeTables() { WakeUp(); }

  // The transactions that had finished when the mark was set, for a caller that waits for them. Later ones do not
  // prolong the wait.
  class Mark {
   private:
    friend class Collector;
    Lsn commit_;  // the latest commit among them
    // Set at the first look that finds all those commits collected: the latest last_read among the deferred entries of
    // that moment. The wait then lasts until low-water has passed it. Later reads do not prolong it.
    std::optional<Timestamp> read_;
  };

  // The collector as a task sees it. Valid during the task, on its thread only.
  class Access {
   public:
    Mark MarkFinished() const;
    // The DC's applied position as of the last round: commits up to it wait for collection or are collected.
    Position applied() const { return collector_.round_applied_; }
    // As WaitCollected, without waiting.
    bool Collected(Mark* mark);
    // Folds all commits that were taken over, without waiting for any threshold.
    void Fold();
    // S7: removes all copies of the DC's answers from the chains.
    void ClearReadCache();
    // T1: drops the collector's own data about a dropped table. False: nothing was dropped, because commits up to the one that dropped the table
    // are not collected yet, or its keys are in runs. REQUIRES: every transaction that posted in these ranges was taken over.
    bool ForgetTable(TableId table, Lsn dropped_at, const RangePartition& ranges);

   private:
    friend class Collector;
    explicit Access(Collector& collector) : collector_(collector) {}
    Collector& collector_;
  };

  // Runs `task` on the collector's thread at the end of a round and waits for it. Nothing is collected meanwhile,
  // except by the task itself; transactions may begin and end. After Stop the caller's thread runs the task, perhaps
  // beside other tasks, so a task changes nothing then (nothing is left to collect). REQUIRES: Start was called; the
  // caller is not a task.
  void RunBetweenRounds(std::function<void(Access&)> task);

  Mark MarkFinished();
  // True once every transaction of the mark has been collected and the entries deferred at that time have been removed, except those that were
  // read again. False at the deadline. It can be called again with the same mark.
  bool WaitCollected(Mark* mark, Deadline deadline);

  // Upper bound of the commit LSNs of everything collected so far; only rises. (The DC's applied position goes back when
  // the DC restarts.)
  Lsn collected_through() const { return unlinker_.collected_through(); }

  uint64_t uncollected() const { return commits_.waiting(); }
  uint64_t collected() const { return commits_.gone(); }
  uint64_t deferred_entries() const { return entries_.deferred_entries(); }
  // S9: memory of folded commits: versions with their entries, FoldedCommit objects, runs, the value evictor's queue, the
  // index of spilled runs.
  uint64_t folded_bytes() const {
    return commits_.folded_bytes() + folder_.run_bytes() + value_evictor_.bytes() +
           (options_.spiller.runs == nullptr ? 0 : options_.spiller.runs->memory_bytes());
  }
  // S6: versions that were unlinked early because no reader could read them.
  uint64_t unread() const { return folder_.unread(); }
  // R6: reads, and last_reads of spilled keys, that the collector recorded as reads of every key of their bucket.
  uint64_t shared_floors() const { return entries_.shared_floors(); }
  // S9: values that were paged out since the start.
  uint64_t paged_out() const { return value_evictor_.versions(); }
  uint64_t paged_out_bytes() const { return value_evictor_.paged_bytes(); }
  // True if more than the share is pinned and kMaxRoundsWithoutProgress rounds in a row have freed nothing: nothing can
  // leave memory.
  bool nothing_can_leave() const {
    return rounds_without_progress_.load(std::memory_order_relaxed) >= kMaxRoundsWithoutProgress;
  }
  // S9: versions moved to spilled runs since the start, and runs that could not be written.
  uint64_t spilled() const { return spiller_.versions(); }
  uint64_t failed_spills() const { return spiller_.failures(); }
  // Timestamp of the earliest commit that waits to be applied, as of the last round; 0: none waits.
  Timestamp first_waiting() const { return commits_.first(); }
  uint64_t folded() const { return commits_.folded_count(); }

 private:
  static constexpr uint32_t kMaxRoundsWithoutProgress = 8;

  struct Task {
    std::function<void(Access&)> run;
    Event done;
    Task* next = nullptr;
  };

  void Run();
  void Round();
  // Moves finished transactions from the stack to the commits or to the aborted ones.
  void DrainFinished();
  void RunTasks();
  // True if no commit with postings waits: each commit that waits is folded, and none was found applied by the last round.
  bool NoneUnfolded() const { return commits_.unfolded().empty() && applied_.empty(); }
  // S6, for spilled versions: tells whether a reader may read between two timestamps. Null: unknown, so assume yes.
  SpillMerge::AnyReader ReaderPredicate();
  void CountRoundsWithoutProgress(bool pressed, uint64_t freed);
  // True: there is more to evict.
  bool EvictCopies();
  bool Collected(Mark* mark);
  void WakeUp();

  const Options options_;
  Runtime& runtime_;
  RecordTable& records_;

  std::atomic<TransactionRecord*> finished_{nullptr};
  std::atomic<Task*> tasks_{nullptr};
  std::atomic<uint32_t> work_{0};      // bumped with every arrival
  std::atomic<uint32_t> sleeping_{0};  // the thread waits on work_: 1 with a time-out, 2 without; else 0
  std::atomic<bool> stop_{false};
  std::atomic<bool> stopped_{false};  // the thread has ended and everything is collected
  std::atomic<uint32_t> rounds_without_progress_{0};

  // Used by the collector's thread only, except for their figures and arrivals.
  UnappliedCommits commits_;
  EntryRemover entries_;
  Unlinker unlinker_;
  ValueEvictor value_evictor_;
  CommitFolder folder_;
  Spiller spiller_;

  // Used by the collector's thread only.
  std::vector<FinishedTransaction> applied_;  // found applied by the last round; collected by the next, in commit order
  Position round_applied_;                    // the applied position that the last round used
  bool more_to_do_ = false;                   // a bounded step of the last round was not finished
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_COLLECTOR_H_

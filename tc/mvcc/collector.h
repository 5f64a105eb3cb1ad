// Collector: unlinks versions, postings and entries that no transaction needs any more (rules S6, R5, R6, R7). It
// unlinks those of an aborted transaction at once, and those of a committed one after the DC has applied it. It unlinks
// an entry once the entry holds no version.
//
// One thread. Finished transactions arrive over a latch-free stack. The collector handles them in commit-record order,
//   which per key is timestamp order. So when a version leaves because it is applied, all older versions of the key
//   leave with it or have left. Only this thread unlinks entries, postings and chain tails; the structures rely on that
//   (record_table.h, range_table.h, version_chain.h).
// Guards: a pass over updates releases its guard and takes it again every few updates, also within one commit
//   (stepped_guard.h).
// R5/R6: an entry whose last_read is above low-water is deferred: it waits in a list, also if its versions were
//   spilled. When the list exceeds its limit, the collector raises the bucket's floor to the entry's last_read and
//   removes the entry at once. A reader that finds its bucket's floor taken makes a deferred entry (record_table.h) and
//   passes it to Defer, which adds it to the same list.
// S5: an applied commit is kept for one more round. So a scan that gathered its keys before they were applied seldom
//   finds the chain empty.
// S6: a commit is collected when its last position <= applied. It was shipped, hence is below low-water: a reader that
//   could want its versions finds them, or something newer that it may read, at the DC.
// S6, early: at each fold, the collector unlinks the versions that no reader can read from the chains of the folded
//   commits. So a key that is written repeatedly under a long reader keeps few folded versions: the newest, and at most
//   one for each timestamp at which a transaction or snapshot reads.
// S7: each round evicts copies from the read cache until it has some room, or until it has examined 2,048 entries. So
//   every removal of a version or an entry runs on this thread, except those by writers that install.
// S8: commits that are not applied soon, mostly because an earlier transaction is open, are folded. The collector
//   publishes their keys in runs of their tables, then marks the transactions, then unlinks their postings. After that
//   only the versions use the transaction record. The collector keeps the commit's position and entries.
// S9: pinned memory is counted with the transaction until it is folded or collected, then here (folded_bytes). Beyond a
//   share of the budget the collector folds every commit at once, and pages out the values of folded commits, earliest
//   first (value_evictor.h). Beyond a larger share whole folded commits move from memory to spilled runs (spiller.h). A reader
//   of a spilled run must not miss a later commit. So a run is dropped when its last commit is applied, in the round
//   before anything behind it is collected.
// Thread-safety: Finish, Defer, MayDefer, MakeRoom, FreeTables, RunBetweenRounds, MarkFinished, WaitCollected and the
//   figures from any thread, except that a task must not call the functions that wait for the collector; Start and Stop
//   by the owner.
// Ownership: takes over the owner's reference of each finished record, and deferred entries. `runtime`, `domain`,
//   `records` and all that the options point to must outlive it.
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
#include "tc/mvcc/posting_book.h"
#include "tc/mvcc/read_cache.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/spiller.h"
#include "tc/mvcc/stepped_guard.h"
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
    // All unfolded commits are folded in any of these cases, which each round examines (constants in collector.cc).
    // At once:
    // - S9: one waits, and more than the value evictor's share of the budget is pinned;
    // - at least `fold_at_least` wait behind folded commits, and an open transaction holds the last folded one back;
    // - at least `fold_at_least` wait behind folded commits, and one of the last two cases below has occurred since the
    //   list of folded commits was last empty.
    // After a time:
    // - at least `fold_at_least` wait, the first for `fold_after`, and an open transaction holds it back;
    // - at least `fold_at_least` wait, the first for kDcDelayFoldFactor times `fold_after`, for any reason;
    // - fewer wait, the first for kFewCommitsFoldFactor times `fold_after`.
    // The times are lower bounds: the age of the first is known from the last round that noted what had arrived.
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
  bool MayDefer() const {
    return deferred_count_.load(std::memory_order_relaxed) + arriving_count_.load(std::memory_order_relaxed) <
           options_.max_deferred_entries;
  }

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

  // Upper bound of the commit LSNs of everything collected so far; only rises. (The DC's applied position goes back when the DC restarts.)
  Lsn collected_through() const { return Lsn{collected_through_.load(std::memory_order_seq_cst)}; }

  uint64_t uncollected() const { return uncollected_.load(std::memory_order_relaxed); }
  uint64_t collected() const { return collected_.load(std::memory_order_relaxed); }
  uint64_t deferred_entries() const { return deferred_count_.load(std::memory_order_relaxed); }
  // S9: memory of folded commits: versions with their entries, FoldedCommit objects, runs, the value evictor's queue, the index of spilled runs.
  uint64_t folded_bytes() const {
    return folded_bytes_.load(std::memory_order_relaxed) + run_bytes_.load(std::memory_order_relaxed) +
           value_evictor_.bytes() + (options_.spiller.runs == nullptr ? 0 : options_.spiller.runs->memory_bytes());
  }
  // S6: versions that were unlinked early because no reader could read them.
  uint64_t unread() const { return unread_.load(std::memory_order_relaxed); }
  // R6: reads, and last_reads of spilled keys, that the collector recorded as reads of every key of their bucket.
  uint64_t shared_floors() const { return shared_floors_.load(std::memory_order_relaxed); }
  // S9: values that were paged out since the start.
  uint64_t paged_out() const { return value_evictor_.versions(); }
  uint64_t paged_out_bytes() const { return value_evictor_.paged_bytes(); }
  // True if more than the share is pinned and kMaxRoundsWithoutProgress rounds in a row have freed nothing: nothing can leave memory.
  bool nothing_can_leave() const {
    return rounds_without_progress_.load(std::memory_order_relaxed) >= kMaxRoundsWithoutProgress;
  }
  // S9: versions moved to spilled runs since the start, and runs that could not be written.
  uint64_t spilled() const { return spiller_.versions(); }
  uint64_t failed_spills() const { return spiller_.failures(); }
  // Timestamp of the earliest commit that waits to be applied, as of the last round; 0: none waits.
  Timestamp first_waiting() const { return Timestamp{first_waiting_.load(std::memory_order_relaxed)}; }
  uint64_t folded() const { return folded_count_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kMaxRoundsWithoutProgress = 8;

  struct Task {
    std::function<void(Access&)> run;
    Event done;
    Task* next = nullptr;
  };

  void Run();
  void Round();
  // Moves finished transactions from the stack to committed_ or aborted_.
  void DrainFinished();
  void DrainDeferred();
  void CollectAborted();
  void RunTasks();
  // A commit that is applied. `record` is null if it was folded; then `folded` has it.
  struct Applied {
    TransactionRecord* record = nullptr;
    FoldedCommit folded;

    Lsn commit() const { return record == nullptr ? folded.last().commit : record->commit_lsn(); }
  };

  // Moves the next commit in commit order out of the queues if it is at or before `through`.
  bool PopApplied(Position through, Applied* next);
  // Collects these transactions. REQUIRES: ascending commit order.
  void Collect(std::vector<Applied> gone);
  void CollectItems(TransactionRecord& record, Timestamp low_water, SteppedGuard& guard);
  // Collects the updates of folded commits that follow each other in commit order, and empties the list. It walks each chain once, down to the
  // latest of these commits, because newer versions above it may be many.
  struct FoldedUpdate {
    RecordEntry* entry;
    Timestamp timestamp;
  };
  void CollectFolded(std::vector<FoldedUpdate>* updates, Timestamp low_water, SteppedGuard& guard);
  // Marks the record as collected and takes its write set. Its postings, versions and readers may keep the record itself.
  void ReleaseRecord(TransactionRecord& record);
  // S8, below: whether to fold now; whether an open transaction holds this commit back; fold all of committed_.
  bool ShouldFold();
  bool HeldBack(Timestamp commit) const;
  void Fold();
  void PutFolded(FoldedCommit commit);
  FoldedCommit FoldRecord(TransactionRecord& record, Timestamp low_water, SteppedGuard& guard);
  // S6, early: unlinks unread versions from these chains.
  void CollectEarly(std::vector<RecordEntry*> entries, SteppedGuard& guard);
  void DropAppliedAndMergeRuns(Position applied);
  // S6, for spilled versions: tells whether a reader may read between two timestamps. Null: unknown, so assume yes.
  SpillMerge::AnyReader ReaderPredicate();
  // S9. REQUIRES: every commit that was found applied has been collected. Returns the bytes freed from memory.
  uint64_t Spill();
  void CountRoundsWithoutProgress(bool pressed, uint64_t freed);
  // S6, S7: removes an applied version and everything below it, or turns it into a copy for the read cache.
  void CollectOrRefresh(RecordEntry& entry, RecordVersion* version);
  void EvictCopies();
  void UpdateFirstWaiting();
  void RemoveEntry(RecordEntry* entry, Timestamp low_water);
  // R6: makes the bucket's floor, which names another key, a floor of every key of the bucket that includes this read.
  void ShareFloor(uint64_t hash, Timestamp read);
  void RetryDeferred(Timestamp low_water);
  // Retries the `count` deferred entries that have waited longest. REQUIRES: there are at least `count`; a guard is held.
  void RetryOldest(size_t count, Timestamp low_water);
  bool Collected(Mark* mark);
  void WakeUp();

  const Options options_;
  Runtime& runtime_;
  ReclamationDomain& domain_;
  RecordTable& records_;

  // A deferred entry on its way into deferred_.
  struct Arriving {
    RecordEntry* entry;
    Arriving* next;
  };

  std::atomic<TransactionRecord*> finished_{nullptr};
  std::atomic<Arriving*> arriving_{nullptr};
  std::atomic<size_t> arriving_count_{0};
  std::atomic<Task*> tasks_{nullptr};
  std::atomic<uint32_t> work_{0};      // bumped with every arrival
  std::atomic<uint32_t> sleeping_{0};  // the thread waits on work_: 1 with a time-out, 2 without; else 0
  std::atomic<bool> stop_{false};
  std::atomic<bool> stopped_{false};  // the thread has ended and everything is collected
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
  std::atomic<uint32_t> rounds_without_progress_{0};

  // Used by the collector's thread only.
  ValueEvictor value_evictor_;
  Spiller spiller_;
  Lsn finished_below_;                       // all transactions that committed before it have been taken over
  CommitQueue committed_;                    // commits that are not folded
  std::deque<FoldedCommit> folded_;          // in commit order
  std::vector<Applied> applied_;             // found applied by the last round; collected by the next, in commit order
  std::vector<TransactionRecord*> aborted_;  // taken and not collected yet
  bool more_to_evict_ = false;               // of the read cache
  bool more_to_free_ = false;                // of dropped tables
  bool more_to_sweep_ = false;               // of the record table's floors
  Lsn last_collected_;
  Position round_applied_;                             // the applied position that the last round used
  Lsn last_taken_;                                     // the latest commit that was taken over
  bool lagging_ = false;                               // commits were folded because the DC lags
  MonotonicTime fold_sample_time_{};                   // when `fold_sample_lsn_` was set
  Lsn fold_sample_lsn_;                                // commits up to here have waited since `fold_sample_time_`
  absl::flat_hash_map<TableId, CommittedRuns*> runs_;  // the non-empty ones
  std::deque<RecordEntry*> deferred_;
  Timestamp retried_at_;       // low-water when deferred_ was last retried
  PostingBook dead_postings_;  // postings of collected transactions that are still linked
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_COLLECTOR_H_

// CommittedRuns: the keys of a table's committed updates that the DC has not applied yet, in immutable sorted runs (rule S8). A scan finds its keys
// in them by binary search, so a backlog that a long reader has pinned costs it little.
//
// A run's entry is a key with what visibility and collection need of all its updates in the run: the earliest timestamp (a reader at or before it
//   sees none of them), the latest commit position (at or below what the DC has applied, all of them are there). Values come from the chains (S5).
// States. One atomic pointer to an immutable list of runs. The folder alone replaces it: by a list with a new run, with two runs merged, without
//   runs that are applied. Each replacement holds every key with an unapplied update that the one before held. Old lists are retired.
// S8 fold:    publish the run, then mark the transactions (TransactionRecord::set_collected), then unlink their postings.
//    gather:  walk the postings, then load the list.
//    In the total order: a posting that the walk did not find, or found marked, was marked before the list is loaded, and the run was
//    published before that. So an unapplied committed update is found as a posting or in a run; perhaps in both, which is one key.
// Runs are tiered: a run is merged with the next smaller one when it is not much larger than that, a few thousand entries a round, so no round is
//   long. A merge keeps one entry of a key and drops what is applied. A run goes as a whole when its latest position is applied.
// Thread-safety: Add and Tidy by one thread at a time (the collector's, under a guard); Gather and the figures by any thread, Gather under a guard.
// Ownership: lists own their runs. What Gather shows is good under the guard.
#ifndef TC_MVCC_COMMITTED_RUNS_H_
#define TC_MVCC_COMMITTED_RUNS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/committed_run.h"
#include "tc/mvcc/run_merge.h"

namespace deut::tc {

class CommittedRuns {
 public:
  CommittedRuns() : list_(new List) {}
  ~CommittedRuns() { delete list_.load(std::memory_order_relaxed); }
  CommittedRuns(const CommittedRuns&) = delete;
  CommittedRuns& operator=(const CommittedRuns&) = delete;

  // Publishes a run of these updates, whose last one has position `last`. Sorts them.
  void Add(std::vector<CommittedRun::Update> updates, Position last, ReclamationDomain& domain);

  // Drops runs that are applied; merges, looking at no more than so many entries, and a few. Answers how many it has not looked at.
  size_t Tidy(Position applied, size_t entries, ReclamationDomain& domain);

  using Bounds = RunMerge::Bounds;
  // Calls `visit(key, removed)` for the keys within the bounds, each once and in scan order, at most `most`; removed: some updates of
  // it are removals.
  template <typename Visit>
  void Gather(const Bounds& bounds, Visit&& visit) const {
    const List& list = *list_.load(std::memory_order_seq_cst);
    if (list.runs.empty()) return;
    RunMerge merge(list.runs, list.prefix_bytes, bounds);
    for (size_t left = bounds.most; left > 0 && merge.Next(); --left) visit(merge.key(), merge.removed());
  }

  // At least the latest timestamp of all updates in it, and of some that have gone.
  Timestamp latest() const { return Timestamp{latest_.load(std::memory_order_seq_cst)}; }

  // Figures.
  size_t runs() const { return runs_.load(std::memory_order_relaxed); }
  size_t entries() const { return entries_.load(std::memory_order_relaxed); }
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  using RunPointer = std::shared_ptr<const CommittedRun>;
  struct List {
    std::vector<RunPointer> runs;  // the largest first
    size_t prefix_bytes = 0;       // that all keys begin with
  };
  // Two runs being merged; they stay in the list until it is finished.
  struct Merge {
    RunPointer a, b;
    size_t next_a = 0, next_b = 0;
    CommittedRun::Builder merged;
  };

  // The place in the list of the smaller one of two neighbours that are to be merged, where there are any with no more entries than that; else 0.
  size_t FindMerge(size_t most_entries) const;
  void BeginMerge(size_t smaller);
  // True: it is finished and published.
  bool AdvanceMerge(Position applied, size_t* entries, ReclamationDomain& domain);
  void Publish(std::vector<RunPointer> runs, ReclamationDomain& domain);
  const List& list() const { return *list_.load(std::memory_order_relaxed); }

  std::atomic<const List*> list_;
  std::atomic<uint64_t> latest_{0};
  std::atomic<size_t> runs_{0};
  std::atomic<size_t> entries_{0};
  std::atomic<size_t> bytes_{0};
  std::unique_ptr<Merge> merge_;  // the folder's own
};

}  // namespace deut::tc

#endif  // TC_MVCC_COMMITTED_RUNS_H_

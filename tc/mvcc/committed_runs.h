// CommittedRuns: the keys of a table's committed updates that the DC has not applied yet, in immutable sorted runs (rule S8). A scan finds its keys
// in them by binary search, so a backlog that a long reader has pinned costs it little.
//
// A run's entry is a key with what visibility and collection need of all its updates in the run: the earliest timestamp and the latest commit LSN. A
//   reader at or before that timestamp sees none of them. If the DC has applied that commit, it has all of them. Values come from the chains (S5).
// States. One atomic pointer to an immutable list of runs. Only the collector replaces it: by a list with a new run, with two runs merged, or without
//   applied runs. Each list holds every key with an unapplied update that the list before held. Old lists are retired.
// S8 fold:    publish the run, then mark the transactions (TransactionRecord::set_collected), then unlink their postings.
//    gather:  walk the postings, then load the list.
//    In the total order: a posting that the walk did not find, or found marked, was marked before the list is loaded, and the run was
//    published before that. So an unapplied committed update is found as a posting or in a run; perhaps in both, which is one key.
// Runs are tiered: two neighbours are merged when the larger is at most kTier times as large. One round merges at most about 32,768 entries, so it
//   takes a few milliseconds. A merge keeps one entry of a key and drops applied updates. A run is dropped as a whole when its latest position is
//   applied.
// Thread-safety: Add and DropAppliedAndMerge by one thread at a time (the collector's, under a guard); Gather and the figures by any thread, Gather
//   under a guard.
// Ownership: lists own their runs. Key views that Gather passes are valid under the guard.
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

  // Drops applied runs, then merges: examines at most `entries` entries, plus those of small merges. Returns how many of `entries` are left.
  size_t DropAppliedAndMerge(Position applied, size_t entries, ReclamationDomain& domain);

  using Bounds = RunMerge::Bounds;
  // Calls `visit(key, removed)` for at most `bounds.most` keys within the bounds, each once and in scan order. `removed`: some of the key's updates
  // are removals.
  template <typename Visit>
  void Gather(const Bounds& bounds, Visit&& visit) const {
    const List& list = *list_.load(std::memory_order_seq_cst);
    if (list.runs.empty()) return;
    RunMerge merge(list.runs, list.prefix_bytes, bounds);
    for (size_t left = bounds.most; left > 0 && merge.Next(); --left) visit(merge.key(), merge.removed());
  }

  // Upper bound of the timestamps of all updates in the runs; it may be that of an update that was dropped.
  Timestamp latest() const { return Timestamp{latest_.load(std::memory_order_seq_cst)}; }

  // Figures.
  size_t runs() const { return runs_.load(std::memory_order_relaxed); }
  size_t entries() const { return entries_.load(std::memory_order_relaxed); }
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  using RunPointer = std::shared_ptr<const CommittedRun>;
  struct List {
    std::vector<RunPointer> runs;  // the largest first
    size_t prefix_bytes = 0;       // length of the common prefix of all keys
  };
  // Two runs being merged; they stay in the list until it is finished.
  struct Merge {
    RunPointer a, b;
    size_t next_a = 0, next_b = 0;
    CommittedRun::Builder merged;
  };

  // Index of the smaller of two neighbours that are to be merged and have at most `most_entries` entries together; 0: there are none.
  size_t FindMerge(size_t most_entries) const;
  void BeginMerge(size_t smaller);
  // Returns true if the merge is finished and published.
  bool AdvanceMerge(Position applied, size_t* entries, ReclamationDomain& domain);
  void Publish(std::vector<RunPointer> runs, ReclamationDomain& domain);
  const List& list() const { return *list_.load(std::memory_order_relaxed); }

  std::atomic<const List*> list_;
  std::atomic<uint64_t> latest_{0};
  std::atomic<size_t> runs_{0};
  std::atomic<size_t> entries_{0};
  std::atomic<size_t> bytes_{0};
  std::unique_ptr<Merge> merge_;  // used by the collector's thread only
};

}  // namespace deut::tc

#endif  // TC_MVCC_COMMITTED_RUNS_H_

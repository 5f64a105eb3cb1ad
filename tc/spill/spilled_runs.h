// SpilledRuns: all runs to which committed versions were spilled (rule S9), of all tables: publishing, merging, dropping.
//
// States. One atomic pointer to an immutable list of runs; null if there is none, which is nearly always. Only the collector replaces it, and
//   retires the old one. A run is published before its versions are removed from memory (tc/mvcc/spiller.h). It is taken off the list before the
//   collector removes anything from memory that was committed later.
// Invariants. (1) A published run holds every unapplied version of its keys that was committed up to the run's last position. Exceptions: an
//   older run has the version, or no reader reads it (S6). (2) While a run is published no commit behind its last position is collected: the run
//   is dropped when its last position is applied. So if the chain has shown nothing, the newest version that a reader finds over all runs is the
//   newest one it may see. If it finds none, the DC has the answer.
// Readers look at the chain, then load the list, then ask the DC; scans gather from postings, folded runs (committed_runs.h), then the list.
//   A version that is no longer in the chain was published before it left. A version that is no longer in the list is applied, and the DC is asked
//   later.
// Merging. spill_levels.h chooses the runs. A merge reads block by block, so its memory does not depend on the size
//   of the runs. It leaves out all versions of commits that are applied when it begins, so no older version stays
//   where a newer one has been left out. It also leaves out versions that no reader reads. While a long merge is in
//   progress one of a lower level may begin, and goes first: new runs do not pile up meanwhile.
// Errors: when a merge fails, all that are in progress are given up. Their runs stay, their files go, and no merge
//   begins for kMergeRetryPause. A run with a damaged block is not merged any more.
// Thread-safety: PublishedRuns, empty() and the figures from any thread, PublishedRuns under a guard. All else by the collector's thread, which holds
//   no guard during input and output.
// Ownership: a list owns its runs together with the views that PublishedRuns returned. Holds the lock of the directory.
#ifndef TC_SPILL_SPILLED_RUNS_H_
#define TC_SPILL_SPILLED_RUNS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"
#include "tc/spill/spill_merge.h"
#include "tc/spill/spilled_run.h"

namespace deut::tc {

class SpilledRuns {
 public:
  using RunPointer = std::shared_ptr<const SpilledRun>;
  using View = std::vector<RunPointer>;
  static constexpr Duration kMergeRetryPause = seconds(1);
  // No more runs are made at this number, which is reached only while merges fail, or are much slower than spills.
  static constexpr size_t kMaxRuns = 64;

  // `filter_budget`: most bytes that the filters of all runs may have together; empty: no limit.
  SpilledRuns(std::string directory, Runtime& runtime, Storage& storage, ReclamationDomain& domain,
              std::function<uint64_t()> filter_budget = nullptr)
      : directory_(std::move(directory)),
        runtime_(runtime),
        storage_(storage),
        domain_(domain),
        filter_budget_(std::move(filter_budget)) {}
  ~SpilledRuns();
  SpilledRuns(const SpilledRuns&) = delete;
  SpilledRuns& operator=(const SpilledRuns&) = delete;

  // Returns OK if the directory's OWNER allows LockAndEmpty to take it (common/io/folder_owner.h). Changes nothing.
  static Status CheckFolder(Storage& storage, const std::string& directory);
  // Locks the directory and examines its files; null if the directory is not there. Makes and removes nothing, except a lock file. That is removed
  // with the lock, unless an object that holds the lock empties the directory (LockAndEmpty).
  //   UNAVAILABLE: another process has the lock. WRONG_STATE: the directory belongs to another component, or holds files of no component. A file that
  //   has a run's name but is no run, or a run of another version, is an error, too (CheckSpillFileFormat).
  static Result<std::unique_ptr<FileLock>> LockFolder(Storage& storage, const std::string& directory);
  // Takes over the lock that LockFolder has returned for this directory.
  void AdoptLock(std::unique_ptr<FileLock> lock) { lock_ = std::move(lock); }
  // Claims the directory for this component and removes the runs that an earlier process has left there. Makes and locks the directory first, unless
  // the object holds its lock. May be called again after an error. REQUIRES: called before all methods below.
  Status LockAndEmpty();

  bool empty() const { return list_.load(std::memory_order_seq_cst) == nullptr; }
  // The runs that are published now; they stay readable after the guard is released.
  View PublishedRuns() const;
  // Number of times that versions were removed from memory, or were about to be, because a run has them. A reader that finds it changed since it
  // looked at a chain may have looked too early (S7).
  const std::atomic<uint64_t>& spills() const { return spills_; }

  // Starts a run of at most `versions` versions in a new file. It gets a filter if the filters then stay within their budget.
  Result<SpilledRun::Builder> NewRun(uint64_t versions) { return NewRun(versions, 0, &figures_.spilled_bytes); }
  // Publishes `run`: afterwards its versions may be removed from memory. Null: they are in runs that were published before.
  void Publish(RunPointer run);
  // Drops applied runs, then merges, handling at most `versions` versions. Calls `reader_predicate` when a merge begins; empty: assume readers
  // everywhere.
  void DropAppliedAndMerge(Position applied, size_t versions,
                           const std::function<SpillMerge::AnyReader()>& reader_predicate = nullptr);
  // Drops all runs, at the end.
  void Drop();

  bool full() const { return runs() >= kMaxRuns; }
  // Timestamp of the first commit in the runs. 0: there is none, or it is before `applied`, and others may be, too.
  Timestamp first(Lsn applied) const;
  // True if the earliest run may hold an unapplied commit at or before `commit`, or ends at or before `commit` and so is about to be dropped.
  // `applied`: the last commit that is applied, if only in part.
  bool MayHoldUnapplied(Lsn commit, Lsn applied) const;
  // Commits up to this LSN may have been removed from memory; only rises.
  Lsn through() const { return through_; }

  // Figures.
  size_t runs() const { return runs_.load(std::memory_order_relaxed); }
  uint64_t versions() const { return versions_.load(std::memory_order_relaxed); }
  uint64_t file_bytes() const { return file_bytes_.load(std::memory_order_relaxed); }
  // The runs' indexes and filters, and the filters of unfinished merges.
  uint64_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }
  uint64_t merges() const { return figures_.merges.load(std::memory_order_relaxed); }
  uint64_t failed_merges() const { return figures_.failed_merges.load(std::memory_order_relaxed); }
  // Bytes written to files since the start: of new runs, and of merges, finished or not.
  uint64_t spilled_bytes() const { return figures_.spilled_bytes.load(std::memory_order_relaxed); }
  uint64_t merged_bytes() const { return figures_.merged_bytes.load(std::memory_order_relaxed); }

 private:
  struct List {
    View runs;  // in commit order
  };

  // Sums of what happened since the start.
  struct Figures {
    std::atomic<uint64_t> merges{0}, failed_merges{0}, spilled_bytes{0}, merged_bytes{0};
  };

  Result<SpilledRun::Builder> NewRun(uint64_t versions, uint32_t level, std::atomic<uint64_t>* written_bytes);
  void CountMemory();
  void Replace(View runs);
  const View& runs_now() const;
  // Begins a merge if there are runs for one of a lower level than those in progress.
  Status BeginMerge(Lsn applied, const std::function<SpillMerge::AnyReader()>& reader_predicate);
  // Goes on with the last merge, and puts its run into the list when it is finished.
  Status AdvanceMerge(size_t* versions);

  const std::string directory_;
  std::unique_ptr<FileLock> lock_;  // of the directory
  Runtime& runtime_;
  Storage& storage_;
  ReclamationDomain& domain_;
  const std::function<uint64_t()> filter_budget_;
  std::atomic<const List*> list_{nullptr};
  std::atomic<uint64_t> spills_{0};
  std::atomic<size_t> runs_{0};
  std::atomic<uint64_t> versions_{0}, file_bytes_{0}, memory_bytes_{0};
  Figures figures_;

  // Used by the collector's thread only.
  const View none_;
  uint64_t next_file_ = 1;
  Lsn through_;
  std::vector<std::unique_ptr<SpillMerge>> merges_;  // of different levels; the last one has the lowest
  MonotonicTime merge_retry_at_{};
};

}  // namespace deut::tc

#endif  // TC_SPILL_SPILLED_RUNS_H_

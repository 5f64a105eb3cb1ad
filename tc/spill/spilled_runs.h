// SpilledRuns: all runs that committed versions were spilled to (rule S9), of all tables: publishing, merging, letting go.
//
// States. One atomic pointer to an immutable list of runs, null where there is none, which is nearly always. The collector alone replaces it, and
//   retires the old one. A run is published before memory is let go of what it holds (tc/mvcc/spiller.h), and taken off the list before the
//   collector takes anything that was committed later out of memory.
// Invariants. (1) Of a key, what is in a published run and not applied is all that was committed up to the run's last position, unless an older run
//   has it, or nobody reads it (S6). (2) While a run is published no commit behind its last position is collected: it goes when its last position is
//   applied. So the newest version that a reader finds over all runs, if its chain has shown nothing, is the newest one it may see; if it finds none
//   the DC has the answer.
// Readers look at the chain, then load the list, then ask the DC; scans gather from postings, folded runs (committed_runs.h), then the list.
//   What is not found in the chain any more was published before it left; what is not in the list any more is applied, and the DC is asked later.
// Merging. Runs are tiered as those in memory; a merge reads block by block, so its memory does not depend on the runs. What is applied when it
//   begins is left out: all versions of the commits before that, so none of an older one stays where a newer one has gone. So is what nobody reads.
// Errors: a merge that fails is given up, its runs stay, and none is tried for kMergeAgainAfter.
// Thread-safety: Look, empty() and the figures from any thread, Look under a guard; the rest by the collector's thread, which holds none over input
//   and output.
#ifndef TC_SPILL_SPILLED_RUNS_H_
#define TC_SPILL_SPILLED_RUNS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
  static constexpr Duration kMergeAgainAfter = seconds(1);
  // No more are made while merges cannot keep up, or fail.
  static constexpr size_t kMostRuns = 64;

  SpilledRuns(std::string directory, Runtime& runtime, Storage& storage, ReclamationDomain& domain)
      : directory_(std::move(directory)), runtime_(runtime), storage_(storage), domain_(domain) {}
  ~SpilledRuns();
  SpilledRuns(const SpilledRuns&) = delete;
  SpilledRuns& operator=(const SpilledRuns&) = delete;

  // OK if Clear may take the directory, as far as its owner goes (common/io/folder_owner.h). Changes nothing.
  static Status CheckFolder(Storage& storage, const std::string& directory);
  // Takes the directory, made if it is not there, and removes what an earlier life has left in it. UNAVAILABLE if another has it, WRONG_STATE if it
  // belongs to another component or holds files of none.
  // A file that has a run's name and is none, or of another version, is an error, and then nothing is removed (UnderstandSpillFile).
  static Result<std::unique_ptr<FileLock>> Clear(Storage& storage, const std::string& directory);
  // The two halves of it: Take looks at what is there and removes nothing.
  static Result<std::unique_ptr<FileLock>> Take(Storage& storage, const std::string& directory);
  static Status RemoveRuns(Storage& storage, const std::string& directory);
  // Before anything else one of these: the same for this one's; or what was cleared before.
  Status Clear();
  void Hold(std::unique_ptr<FileLock> lock) { lock_ = std::move(lock); }

  bool empty() const { return list_.load(std::memory_order_seq_cst) == nullptr; }
  // The runs that are published now; they stay readable without the guard.
  View Look() const;
  // How often versions were let go of, or were about to be, because a run has them. Whoever finds it changed since it looked at a chain may have
  // looked too early (S7).
  const std::atomic<uint64_t>& spills() const { return spills_; }

  // A new file for a run.
  Result<SpilledRun::Builder> NewRun();
  // From then on memory may be let go of what `run` holds. Null: of what was published before.
  void Publish(RunPointer run);
  // Takes runs off that are applied; merges, looking at no more than so many versions. `who_reads` is asked when a merge begins; none: everybody.
  void Tidy(Position applied, size_t versions, const std::function<SpillMerge::AnyReader()>& who_reads = nullptr);
  // Takes all off. For the end.
  void Drop();

  bool full() const { return runs() >= kMostRuns; }
  // The timestamp of the first commit that is in them; 0 = none, or one before `applied`, and others may be, too.
  Timestamp first(Lsn applied) const;
  // Something that was committed at or before `commit` may be in them and not be applied, or be in a run that has nothing later and so is about to
  // go. `applied`: where the last commit is that is applied, if only in part.
  bool Holds(Lsn commit, Lsn applied) const;
  // Everything committed up to here that memory may have let go of; only rises.
  Lsn through() const { return through_; }

  // Figures.
  size_t runs() const { return runs_.load(std::memory_order_relaxed); }
  uint64_t versions() const { return versions_.load(std::memory_order_relaxed); }
  uint64_t file_bytes() const { return file_bytes_.load(std::memory_order_relaxed); }
  uint64_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }
  uint64_t merges() const { return merges_.load(std::memory_order_relaxed); }
  uint64_t failed_merges() const { return failed_merges_.load(std::memory_order_relaxed); }

 private:
  struct List {
    View runs;  // as they were committed, the earliest first
  };

  void Replace(View runs);
  const View& runs_now() const;
  Status Merge(Position applied, size_t* versions, const std::function<SpillMerge::AnyReader()>& who_reads);
  // Two neighbours that are to be merged: the place of the earlier one.
  std::optional<size_t> FindMerge() const;

  const std::string directory_;
  std::unique_ptr<FileLock> lock_;  // of the directory
  Runtime& runtime_;
  Storage& storage_;
  ReclamationDomain& domain_;
  std::atomic<const List*> list_{nullptr};
  std::atomic<uint64_t> spills_{0};
  std::atomic<size_t> runs_{0};
  std::atomic<uint64_t> versions_{0}, file_bytes_{0}, memory_bytes_{0}, merges_{0}, failed_merges_{0};

  // The collector's own.
  const View none_;
  uint64_t next_file_ = 1;
  Lsn through_;
  std::unique_ptr<SpillMerge> merge_;
  MonotonicTime merge_again_at_{};
};

}  // namespace deut::tc

#endif  // TC_SPILL_SPILLED_RUNS_H_

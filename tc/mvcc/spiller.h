// Spiller: moves committed versions from memory, with their chains, entries and positions, into a spilled run (rule S9; tc/spill).
//
// It spills a prefix of the commits: all that are folded, durable, and before the first record of any transaction that may still arrive
//   (UnappliedCommits::complete_below, as for S2). So the runs miss no version of a key that was committed up to the end of the prefix.
// States of a version: in its chain -> in its chain and in a published run (`spilled`) -> in the run alone. Steps, on the collector's thread:
//   (1) Walk each chain from its newest version of the prefix down. Only this thread changes that part of the chain.
//   (2) Write the run; if that fails (no space, EIO), nothing has changed.
//   (3) Publish the run, (4) count a spill (SpilledRuns::spills), then
//   (5) cut each chain above that version:
//       - at the head: by one 16-byte compare-and-swap to an empty chain with last_read raised to at least the version's timestamp. It loses to
//         every install, raise and removal, and is retried while the version is the head.
//       - below a committed version: by one store to that version's `older`, which only the collector changes.
//       - below dead versions, or an open transaction's, the version stays: an installer that has seen those may link to it, and would not notice
//         (R4). The version is then in both places, and a later spill cuts it.
//   (6) Remove each entry without versions: at once if its bucket's floor can hold its last_read, else when low-water has passed that (R6).
// Chains are walked and cut in batches, each under a guard of its own, however large the commits are.
// Races. A reader that has loaded the head before the cut walks the old chain, under its guard. A later reader finds nothing there, and loads the
//   list of runs, which was published before. A writer that began before the version was committed finds last_read, or the floor, above its own
//   timestamp, as it would have found the version (R1, step 3). So (5) raises in the same step in which the version leaves, and (6) raises before
//   the entry leaves. An installer that links to a head that is cut fails at its compare-and-swap.
//   A copy from the DC (S7) would hide a run's version from a reader that looks at the chain. So no reader keeps a copy if it has found runs, or has
//   looked at the chain before the last spill was counted (read_cache.h).
// Thread-safety: the collector's thread, which holds no guard; the figures from any thread.
// Ownership: the options' `runs` must outlive it; it retires the versions that it cuts off.
#ifndef TC_MVCC_SPILLER_H_
#define TC_MVCC_SPILLER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/entry_remover.h"
#include "tc/mvcc/folded_commit.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/unapplied_commits.h"
#include "tc/spill/spilled_runs.h"

namespace deut::tc {

class Spiller {
 public:
  struct Options {
    SpilledRuns* runs = nullptr;  // null: nothing is spilled
    // Pinned bytes that should leave memory although values were paged out.
    std::function<uint64_t()> excess;
    // Commits before it are durable.
    std::function<Lsn()> durable;
    // See ActiveTransactions::OldestFirstRecord.
    std::function<Lsn()> oldest_first_record;
    size_t at_least = 64;  // updates in a new run
    // Pause before the next spill after a run could not be written.
    Duration again_after = seconds(1);
  };
  // Approximate number of updates that one round spills; bounds the round to a few milliseconds.
  static constexpr size_t kPerRound = 16 << 10;

  Spiller(const Options& options, Runtime& runtime, ReclamationDomain& domain)
      : options_(options), runtime_(runtime), domain_(domain) {}

  SpilledRuns* runs() const { return options_.runs; }
  // True if pinned memory exceeds its share.
  bool excess() const { return options_.runs != nullptr && options_.excess() != 0; }
  // True if, in addition, a run can be written now.
  bool pressed() const;

  // Spills the earliest of the folded commits, if memory is short and they are many enough, and counts those that left.
  // Passes each entry that has lost its last version to `entries`. `low_water_now` is called at most once, before anything is removed.
  // REQUIRES: every commit that was found applied has been collected. Returns the bytes freed from memory.
  uint64_t SpillEarliest(UnappliedCommits* commits, EntryRemover* entries,
                         absl::FunctionRef<Timestamp()> low_water_now);
  // Spills these commits, in commit order, which continue the prefix that was spilled before. Leaves in `commits` what stays in memory. Calls
  // `remove`, under a guard, for each entry without a version. `remove` must remember the entry's last_read before it removes the entry (R6).
  // Returns the bytes freed, as the collector counts them.
  uint64_t Spill(std::vector<FoldedCommit>* commits, absl::FunctionRef<void(RecordEntry*)> remove);

  // Versions spilled since the start, and runs that could not be written.
  uint64_t versions() const { return versions_.load(std::memory_order_relaxed); }
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  struct Chain {
    RecordEntry* entry;
    RecordVersion* from;  // the newest version of the prefix; null: none
    bool cut = false;
  };

  // Takes the commits of the prefix out. `*updates`: their updates that are in no run yet.
  std::vector<FoldedCommit> TakePrefix(UnappliedCommits* commits, size_t* updates);
  // Step (1): sets `from` and adds the versions below it that are in no run yet.
  void AddSpillable(Chain* chain, Lsn through, std::vector<SpilledVersion>* versions);
  // Step (2). Null: every version is in a run already.
  Result<SpilledRuns::RunPointer> Write(std::vector<SpilledVersion> versions, const std::vector<FoldedCommit>& commits);
  // Step (5). Returns the bytes freed.
  uint64_t Cut(Chain* chain);
  bool Unlink(const Chain& chain);

  const Options options_;
  Runtime& runtime_;
  ReclamationDomain& domain_;
  MonotonicTime retry_at_{};
  std::atomic<uint64_t> versions_{0};
  std::atomic<uint64_t> failures_{0};
};

}  // namespace deut::tc

#endif  // TC_MVCC_SPILLER_H_

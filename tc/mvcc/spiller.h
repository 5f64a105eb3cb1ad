// Spiller: lets committed versions leave memory with their chains, entries and positions, into a spilled run (rule S9; tc/spill).
//
// What is spilled is a prefix of the commits: all that are folded, durable, and before the first record of whatever may still arrive
//   (finished_below, as for S2), so of a key nothing that was committed up to there is missing in the runs.
// States of a version: in its chain -> in its chain and, published, in a run (`spilled`) -> in the run alone. By the collector's thread:
//   (1) Look: each chain from its newest version of the prefix down. Nothing that stands there changes but by this thread.
//   (2) Write the run; if that fails (no space, EIO) nothing has changed.
//   (3) Publish it, (4) count a spill (SpilledRuns::spills), then
//   (5) cut each chain above that version, from above:
//       - it is the head: one 16-byte compare-and-swap to an empty chain with last_read raised to at least the version's timestamp. It loses to every
//         install, raise and removal, and is tried again while the version is the head.
//       - below a committed version: one store to that one's `older`, which is the collector's alone.
//       - below dead versions, or an open transaction's, it stays: an installer that has seen those may link to it, and would not notice (R4). It is
//         in both places then, and goes another time.
//   (6) An entry without versions goes at once, if its bucket's floor can hold its last_read, and else when low-water has passed that (R6).
// Chains are looked at and cut in batches, each under a guard of its own, whatever the size of the commits.
// Races. A reader that has the head from before goes on down the old chain, under its guard. One that comes later finds nothing there, and loads the
//   list of runs, which was published before. A writer that began before the version was committed finds last_read, or the floor, above itself, as
//   it would have found the version (R1, step 3); so (5) raises in the same step in which the version goes, and (6) raises before the entry goes. An
//   installer that links to the head that is cut fails at its compare-and-swap.
//   A copy from the DC (S7) would hide a run's version from who looks at the chain: so nobody keeps one who has found runs, or has looked at the
//   chain before the last spill was counted (read_cache.h).
// Thread-safety: the collector's thread, which holds no guard.
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
#include "tc/mvcc/folded_commit.h"
#include "tc/mvcc/record_table.h"
#include "tc/spill/spilled_runs.h"

namespace deut::tc {

class Spiller {
 public:
  struct Options {
    SpilledRuns* runs = nullptr;  // none: nothing is spilled
    // Bytes that are to leave memory, after values could.
    std::function<uint64_t()> excess;
    // Commits before it are durable.
    std::function<Lsn()> durable;
    // ActiveTransactions::OldestFirstRecord.
    std::function<Lsn()> oldest_first_record;
    size_t at_least = 64;  // updates in a new run
    // After a run could not be written.
    Duration again_after = seconds(1);
  };
  // Updates of one round, about: it is no longer than some milliseconds.
  static constexpr size_t kPerRound = 16 << 10;

  Spiller(const Options& options, Runtime& runtime, ReclamationDomain& domain)
      : options_(options), runtime_(runtime), domain_(domain) {}

  SpilledRuns* runs() const { return options_.runs; }
  // More is pinned than its share.
  bool excess() const { return options_.runs != nullptr && options_.excess() != 0; }
  // The same, and runs can be written.
  bool pressed() const;
  // Commits before it may be spilled, if they are folded, and all that come before them.
  Lsn durable() const { return options_.durable(); }
  size_t at_least() const { return options_.at_least; }

  // Spills these commits, in commit order, before which nothing is missing, and leaves of them what stays in memory. `remove` is called, under a
  // guard, for entries that have no version any more; their last_read has to be remembered before they go (R6). Answers the bytes that have left, as
  // the collector counts them.
  uint64_t Spill(std::vector<FoldedCommit>* commits, absl::FunctionRef<void(RecordEntry*)> remove);

  // Ever.
  uint64_t versions() const { return versions_.load(std::memory_order_relaxed); }
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  struct Chain {
    RecordEntry* entry;
    RecordVersion* from;  // the newest one that goes; null: none
    bool cut = false;
  };

  // Steps.
  void LookAt(Chain* chain, Lsn through, std::vector<SpilledVersion>* versions);
  // Null: there is nothing that is not in a run yet.
  Result<SpilledRuns::RunPointer> Write(std::vector<SpilledVersion> versions, const std::vector<FoldedCommit>& commits);
  // Bytes that have left.
  uint64_t Cut(Chain* chain);
  bool Unlink(const Chain& chain);

  const Options options_;
  Runtime& runtime_;
  ReclamationDomain& domain_;
  MonotonicTime again_at_{};
  std::atomic<uint64_t> versions_{0};
  std::atomic<uint64_t> failures_{0};
};

}  // namespace deut::tc

#endif  // TC_MVCC_SPILLER_H_

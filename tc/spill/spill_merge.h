// SpillMerge: merges neighbouring spilled runs into one, a few versions at a time; it holds one block of each.
//
// S6: a reader between a version and the next newer one of its key sees the version, so it stays if there is any such reader. A key's newest version
//   here always stays, because the next newer one is elsewhere. The merge asks for the readers once, when it begins: a later reader reads at the same
//   timestamps, or newer versions (ActiveTransactions::RoundForReaders). So a version that no reader needs then is never needed again.
// Thread-safety: one thread. Errors: those of reading and writing; after one the merge must be destroyed, which removes its file.
// Ownership: shares the runs; owns the new one until Finish.
#ifndef TC_SPILL_SPILL_MERGE_H_
#define TC_SPILL_SPILL_MERGE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tc/spill/spilled_run.h"

namespace deut::tc {

class SpillMerge {
 public:
  using RunPointer = std::shared_ptr<const SpilledRun>;

  // True if any reader reads at a timestamp in (after, to]; empty: assume yes.
  using AnyReader = std::function<bool(Timestamp after, Timestamp to)>;

  // REQUIRES: `runs` are in commit order, and not empty. Leaves out commits before `applied`, and versions that no reader reads.
  SpillMerge(std::vector<RunPointer> runs, Lsn applied, AnyReader any_reader, SpilledRun::Builder merged);

  // In commit order.
  const std::vector<RunPointer>& runs() const { return runs_; }
  bool Merges(const RunPointer& run) const;
  size_t filter_bytes() const { return merged_.filter_bytes(); }

  // Handles at most `*versions` versions, and subtracts those from it. True: no version is left.
  Result<bool> Advance(size_t* versions);
  // Returns the merged run; null: it would be empty.
  Result<RunPointer> Finish();

 private:
  struct Cursor {
    const SpilledRun* run;
    size_t next_block = 0;
    std::shared_ptr<const SpillBlock> block = nullptr;
    size_t next = 0;

    // The version at the cursor; null at the end.
    Result<const SpilledVersion*> Get();
  };

  // Sets the cursor of the first version in the order of runs; null: no version is left.
  Status FindFirst(Cursor** first);
  // S6. REQUIRES: called for each version, in order.
  bool IsRead(const SpilledVersion& version);

  const std::vector<RunPointer> runs_;
  std::vector<Cursor> cursors_;  // one for each run
  const Lsn applied_;
  const AnyReader any_reader_;
  SpilledRun::Builder merged_;
  // The last version passed to IsRead.
  TableId last_table_;
  std::string last_key_;
  Timestamp last_timestamp_;  // 0: there was none
};

}  // namespace deut::tc

#endif  // TC_SPILL_SPILL_MERGE_H_

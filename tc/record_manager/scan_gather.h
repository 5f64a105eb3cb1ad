// ScanGather: the first half of a scan: finds the keys that the TC has in a stretch (paper, section 4; rules R2, R3,
// R8, R9, S4, S5).
//
// A stretch is a logical range cut to the requested bounds. For each the scan raises the range's last_read, then
//   examines its postings (R2). A scan for update (SIX, R3) posts its intent first and checks last_read last.
//   Committed and own postings give keys, not values (S5). An earlier uncommitted one is a conflict, or its keys are
//   pending (R8). Only then may the DC be asked for the stretch (S4); scan_path.h says what happens with its answer.
// R8: the nearest key within the bounds that an earlier uncommitted writer has published or declared is pending, and
//   the stretch ends before it. The records before it are delivered. If they fill the batch, or the limit, the scan
//   never reached the key and there is no conflict. Otherwise the next stretch begins at the key and looks again. By
//   then its writer has aborted (skipped), has committed (gathered), or is a conflict. If it is committing, the scan
//   may wait for that and look once more (R9).
// A writer without a key in the bounds is passed. That is sound because the writer checks last_read after each
//   publication (R1 step 5). If it publishes a key after the look, its check finds the raise. A SIX counts by its
//   keys as well: the part that it only reads is in no later reader's way.
// S8: keys that are committed and folded are in the table's runs (tc/mvcc/committed_runs.h), which are searched after
//   the postings. S9: keys that were spilled are in spilled runs (tc/spill/spilled_runs.h), which are searched last.
// Memory and time are bounded. A stretch with more gathered keys than are wanted is cut at one of them. In a large
//   write set only the keys within the bounds are looked at (tc/txn/write_set.h). Gathered keys are copies; no guard
//   is held afterwards.
// Thread-safety: used by its transaction's thread. Ownership: borrows engine and transaction.
#ifndef TC_RECORD_MANAGER_SCAN_GATHER_H_
#define TC_RECORD_MANAGER_SCAN_GATHER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "protocol/data_component.h"
#include "tc/mvcc/range_table.h"
#include "tc/record_manager/bounded_wait.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"
#include "tc/scan/batch_room.h"
#include "tc/scan/gathered_keys.h"
#include "tc/scan/resumable_scan.h"
#include "tc/scan/scan_cursor.h"

namespace deut::tc {

class ScanGather {
 public:
  ScanGather(Engine& engine, Transaction& txn, Direction direction, bool for_update);

  // Gathers the stretch that begins the range [low, high), in scan order. *bound becomes its far end, and may be what
  // the near end refers to. Its keys, distinct and in scan order, are added to `gathered`, which has none of them. If
  // there are more than `most_keys` of them it ends behind that many.
  // If `blocked` is not null the scan has not reached the stretch yet. A writer in the way at the very beginning is
  // then neither a conflict nor waited for. Instead *blocked becomes true, and nothing is gathered.
  Status Next(const TableState& table, std::string_view low, std::string_view high, size_t most_keys,
              std::string* bound, GatheredKeys* gathered, bool* blocked);
  // The same for the stretch at the scan's bound.
  Status GatherNext(const TableState& table, ResumableScan* scan, const BatchRoom& room, bool* blocked);

 private:
  // As KeyRange. The views are valid under the guard of the look.
  struct Stretch {
    std::string_view low, high;
  };
  // A key found by a gather: a view into a write set or a run, valid under the guard of the gather.
  struct Candidate {
    std::string_view key;
    bool may_be_removed = true;
  };
  // R8: the first key in scan order that decides whether the scan may go on. A view into a write set, valid under the
  // guard of the look.
  struct Pending {
    TransactionRecord* writer = nullptr;  // null: no key is pending
    std::string_view key = {};
    bool at_once = false;  // RangePrecision::kRanges: a conflict wherever the writer's keys are
  };

  bool ascending() const { return direction_ == Direction::kAscending; }
  bool Before(std::string_view a, std::string_view b) const { return ComesBefore(direction_, a, b); }

  // *done becomes false if the caller must wait and call it again.
  Status Look(const TableState& table, std::string_view low, std::string_view high, std::string* bound,
              GatheredKeys* gathered, bool* blocked, bool* done);
  // *sealed: the range is being replaced (P), and nothing was looked at.
  Status RaiseAndGather(const TableState& table, Range& range, const Stretch& stretch, bool* sealed);
  // Returns whether the walk over the postings shall go on.
  bool GatherFrom(TransactionRecord& record, TableId table, const Stretch& stretch);
  // Notes the first pending key of an earlier uncommitted writer.
  void FindPending(TransactionRecord& writer, TableId table, const Stretch& stretch);
  // Returns false if the stretch begins at the pending key, so nothing can be delivered before that is decided.
  bool EndBeforePending(Stretch* stretch);
  // S8: gathers the committed and folded keys.
  void GatherRuns(const TableState& table, const Stretch& stretch);
  // S9: gathers the keys that have left the runs for spilled runs; called after GatherRuns and without a guard. The
  // stretch is from near_end_ to *bound; its keys begin at `first`.
  Status GatherSpilled(const TableState& table, size_t first, std::string* bound, GatheredKeys* gathered);
  void GatherKeys(const WriteSet& writes, TableId table, const Stretch& stretch);
  // Adds the candidates to `gathered`. If there are too many the stretch ends behind the last one kept.
  void MergeAndCut(Stretch* stretch, GatheredKeys* gathered);

  Engine& engine_;
  Transaction& txn_;
  const Direction direction_;
  const bool for_update_;
  size_t most_keys_ = 0;
  std::vector<Candidate> candidates_;  // from postings, in no order
  std::vector<Candidate> from_runs_;   // in scan order, distinct
  Pending pending_;
  std::string key_behind_;     // the bound of a stretch that ends behind a key
  std::string_view near_end_;  // where the stretch begins
  std::string near_end_kept_;  // its copy, if `bound` holds it and will be overwritten
  BoundedWait wait_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_GATHER_H_

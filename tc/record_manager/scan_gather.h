// ScanGather: the first half of a scan: what the TC has of a stretch (paper, section 4; rules R2, R3, R8, R9, S4, S5).
//
// A stretch is a logical range cut to the requested bounds. For each: raise the range's last_read, then examine its postings (R2; with the intent
//   posted first and last_read checked last for SIX, R3): committed and own ones give keys, not values (S5); an earlier uncommitted one is a
//   conflict, or (R8) its keys are pending. Only then may the DC be asked for the stretch (S4); what is done with its answer: scan_path.h.
// R8. The nearest key within the bounds that an earlier uncommitted writer has published or declared is pending: the stretch ends before it.
//   What comes before is delivered; if that fills the batch, or the limit, the key was never reached and there is no conflict. Else the next stretch
//   begins at the key and looks again: its writer has aborted (skipped), has committed (gathered), or is a conflict, unless it is committing and the
//   scan may wait for that and look once more (R9). A writer without a key in
//   the bounds is passed. It is sound because a key that is published after the look is followed by a check of last_read that finds the raise (R1
//   step 5, which therefore follows each publication). A SIX counts by its keys as well: what it only reads is in no later reader's way.
// S8. What is committed and folded is found in the table's runs (tc/mvcc/committed_runs.h), after the postings have been walked.
// S9. What has been spilled is found in spilled runs, after those (tc/spill/spilled_runs.h).
// Memory and time are bounded: a stretch with more gathered keys than are wanted is cut at one of them, and of a large write set only the keys
//   within the bounds are looked at (tc/txn/write_set.h). What is gathered are copies; no guard is held afterwards.
// Thread-safety: used by its transaction's thread.
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
#include "tc/record_manager/standing_scan.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

// True if `a` comes before `b` in the order of a scan.
inline bool ComesBefore(Direction direction, std::string_view a, std::string_view b) {
  return direction == Direction::kAscending ? a < b : b < a;
}

// The smallest key above `key`.
inline std::string KeyBehind(std::string_view key) {
  std::string behind(key);
  behind.push_back('\0');
  return behind;
}

class ScanGather {
 public:
  ScanGather(Engine& engine, Transaction& txn, Direction direction, bool for_update);

  // Gathers the stretch that begins the range [low, high), in scan order: *bound becomes its far end; its keys, distinct and in scan order, are
  // added to `keys`, which has none of them, and their texts to `texts`. It ends behind `most_keys` gathered keys, if there are
  // more. (`bound` may be what the near end refers to.)
  // `blocked`, if not null: the scan has not come there yet, so a writer in the way at its very beginning is no conflict and not waited for; it is
  // said, and nothing is gathered.
  Status Next(const TableState& table, std::string_view low, std::string_view high, size_t most_keys,
              std::string* bound, std::vector<GatheredKey>* keys, ByteArena* texts, bool* blocked);

 private:
  // As KeyRange. Views good under the guard of the look.
  struct Stretch {
    std::string_view low, high;
  };
  // A key found by a gather; a view into a write set or a run, good under the guard of the gather.
  struct Candidate {
    std::string_view key;
    bool may_be_removed = true;
  };
  // R8: the first key in scan order that decides whether the scan may go on; a view into a write set, good under the guard of the look.
  struct Pending {
    TransactionRecord* writer = nullptr;  // null: there is none
    std::string_view key = {};
    bool at_once = false;  // by range: wherever its keys are
  };

  bool ascending() const { return direction_ == Direction::kAscending; }
  bool Before(std::string_view a, std::string_view b) const { return ComesBefore(direction_, a, b); }

  // Answers false where it is to be called again after a wait.
  Status Look(const TableState& table, std::string_view low, std::string_view high, std::string* bound,
              std::vector<GatheredKey>* keys, ByteArena* texts, bool* blocked, bool* done);
  // `sealed`: the range is being replaced (P), and nothing was looked at.
  Status RaiseAndGather(const TableState& table, Range& range, const Stretch& stretch, bool* sealed);
  // Answers whether more is to be looked at.
  bool GatherFrom(TransactionRecord& record, TableId table, const Stretch& stretch);
  // An earlier uncommitted writer is met.
  void FindPending(TransactionRecord& writer, TableId table, const Stretch& stretch);
  // False: the stretch begins at the pending key, and nothing can be delivered before that is decided.
  bool EndBeforePending(Stretch* stretch);
  // S8: what is committed and folded.
  void GatherRuns(const TableState& table, const Stretch& stretch);
  // S9: what has left them for spilled runs; after them, and without a guard. The stretch is from near_end_ to *bound; its keys begin at `first`.
  Status GatherSpilled(const TableState& table, size_t first, std::string* bound, std::vector<GatheredKey>* keys,
                       ByteArena* texts);
  void GatherKeys(const WriteSet& writes, TableId table, const Stretch& stretch);
  // What is kept of the candidates; where there are too many the stretch ends behind the last one kept.
  void MergeAndCut(Stretch* stretch, std::vector<GatheredKey>* keys, ByteArena* texts);

  Engine& engine_;
  Transaction& txn_;
  const Direction direction_;
  const bool for_update_;
  size_t most_keys_ = 0;
  std::vector<Candidate> candidates_;  // of postings, in no order
  std::vector<Candidate> from_runs_;   // in scan order, distinct
  Pending pending_;
  std::string key_behind_;     // where a stretch ends behind a key
  std::string_view near_end_;  // where it begins
  std::string near_end_kept_;  // if that is what becomes its far end
  BoundedWait wait_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_GATHER_H_

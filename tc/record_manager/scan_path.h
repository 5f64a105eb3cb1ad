// Range reads: one batch of a scan (paper, section 4; rules R2, R3, R10, S4, S5, D1).
//
// A scan goes through the table stretch by stretch; a stretch is a logical range cut to the requested bounds. For each:
//   1. raise the range's last_read, then examine its postings (R2; with the intent posted first and last_read checked last for SIX, R3):
//      committed and own ones give keys, not values (S5); an earlier uncommitted one is a conflict, or (R8, see below) its keys are pending;
//   2. only then ask the DC for the stretch, a page-size batch at a time (S4: TC first, DC second);
//   3. merge up to the bound that the batch covers: each gathered key's value comes from its chain, as for a point read; if the chain shows
//      nothing visible any more, the key is asked of the DC again, all such keys of a batch in one message. The larger
//      (timestamp, sequence) wins, the DC on ties; a tombstone removes.
// What is delivered is a prefix of the range in scan order; `resume` is where the next batch starts. No guard is held across a wait.
// R8. The nearest key within the bounds that an earlier uncommitted writer has published or declared is pending: the stretch ends before it.
//   What comes before is delivered; if that fills the batch, or the limit, the key was never reached and there is no conflict. Else the next stretch
//   begins at the key and looks again: its writer has aborted (skipped), has committed (gathered), or is a conflict, unless it is committing and the
//   scan may wait for that and look once more (R9). A writer without a key in
//   the bounds is passed. It is sound because a key that is published after the look is followed by a check of last_read that finds the raise (R1
//   step 5, which therefore follows each publication). A SIX counts by its keys as well: what it only reads is in no later reader's way.
// Memory and time are bounded by the batch: a stretch with more gathered keys than the batch is likely to take is cut at one of them, and of a
//   large write set only the keys within the bounds are looked at, once a scan has sorted it (each gather sorts a few).
// Thread-safety: one object per batch, used by one thread.
#ifndef TC_RECORD_MANAGER_SCAN_PATH_H_
#define TC_RECORD_MANAGER_SCAN_PATH_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "protocol/transaction_service.h"
#include "tc/mvcc/range_table.h"
#include "tc/mvcc/version_chain.h"
#include "tc/record_manager/bounded_wait.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class ScanPath {
 public:
  ScanPath(Engine& engine, Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline);

  Status Run();

 private:
  // A key that the TC has an update of, and what its chain shows when it is merged.
  struct Gathered {
    enum class Kind : uint8_t { kValue, kTombstone, kAskDc };
    std::string key;
    uint64_t hash = 0;
    Kind kind = Kind::kAskDc;
    Version version;
    std::string value;
    DataRequest* again = nullptr;
  };
  // A key found by a gather; a view into a write set, good under the guard of the gather.
  struct Candidate {
    std::string_view key;
    uint64_t hash = 0;
  };
  // R8: the first key in scan order that decides whether the scan may go on; a view into a write set, good under the guard of the look.
  struct Pending {
    TransactionRecord* writer = nullptr;  // null: there is none
    std::string_view key = {};
    bool at_once = false;  // by range: wherever its keys are
  };
  struct Stretch {
    std::string low, high;       // as KeyRange
    std::vector<Gathered> keys;  // in scan order, distinct
  };

  bool ascending() const { return scan_.direction == Direction::kAscending; }
  // True if `a` comes before `b` in scan order.
  bool Before(std::string_view a, std::string_view b) const { return ascending() ? a < b : b < a; }
  // Nothing of the requested range is left.
  bool Exhausted() const;

  // Step 1, for the stretch that begins where the scan stands. Look answers false where it is to be called again after a wait.
  Status NextStretch(const TableState& table, Stretch* stretch);
  Status Look(const TableState& table, Stretch* stretch, bool* done);
  // `sealed`: the range is being replaced (P), and nothing was looked at.
  Status RaiseAndGather(const TableState& table, Range& range, const Stretch& stretch, bool* sealed);
  // Answers whether more is to be looked at.
  bool GatherFrom(TransactionRecord& record, TableId table, const Stretch& stretch);
  // An earlier uncommitted writer is met.
  void FindPending(TransactionRecord& writer, TableId table, const Stretch& stretch);
  // False: the stretch begins at the pending key, and nothing can be delivered before that is decided.
  bool EndBeforePending(Stretch* stretch);
  // Answers whether it has any key of the stretch.
  bool GatherKeys(const WriteSet& writes, TableId table, const Stretch& stretch, bool final);
  // What is kept of the candidates; where there are too many the stretch ends behind the last one kept.
  void SortAndCut(Stretch* stretch);
  size_t MostKept() const;

  // Steps 2 and 3 until the stretch is delivered or the batch is full.
  Status Deliver(const TableState& table, Stretch& stretch);
  Status AskDc(const TableState& table, const Stretch& stretch, size_t keys_left, DataRequest* request);
  Status Resolve(const TableState& table, Stretch& stretch, size_t begin, size_t end, std::vector<DataRequest>* again);
  Status Merge(Stretch& stretch, size_t* next_key, size_t end, RecordBatch records);
  void Emit(std::string_view key, std::string_view value, Version version);
  // With so many more records, of so many bytes in all.
  bool Full(size_t more_records, size_t more_bytes) const;
  // Where the scan goes on if the batch ends after `key`.
  void StopAfter(std::string_view key);

  Engine& engine_;
  Transaction& txn_;
  const Operation& scan_;
  OperationResult* const result_;
  const Deadline deadline_;
  ReaderView view_;
  std::string low_, high_;  // what is left of the requested range
  std::vector<Candidate> candidates_;
  Pending pending_;
  BoundedWait wait_;
  int64_t may_sort_ = 0;  // keys of large write sets that this gather may still sort
  bool full_ = false;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_PATH_H_

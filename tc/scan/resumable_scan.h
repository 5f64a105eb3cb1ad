// ResumableScan: the state that a scan keeps from one batch to the next: its position, the keys gathered ahead, and
// the DC's bulk scan.
//
// A client asks for each batch with the resume key of the one before. If the transaction has a resumable scan at
//   that key, with the same range, direction and scan sequence, the batch continues it. Otherwise the batch begins a
//   scan of its own. So this state saves work and decides nothing: a request that is repeated, or that skips a part, is
//   answered correctly without it.
// S4: the TC has raised, looked and gathered up to the cursor's bound, and grants the DC no more. `gathered` has the
//   keys of the part that is not delivered yet, at most kMaxKeysAhead.
// A batch that is asked for a second time begins a scan of its own. The resumable scan that had answered it is
//   further on, and no request will continue it. So it ends then, and does not hold a stream of the DC any longer.
// A scan is kept if its batch ended because it was full of bytes. A scan that has reached its limit of records is
//   probably over.
// Bounds: a transaction has at most kMaxResumable resumable scans, and drops the least recently used one. Each holds
//   at most one answer of the DC, its keys, and the bytes granted to the DC, which ScanAheadBudget bounds for all
//   scans together. All end with the transaction. The bulk scan of one that is not used for some seconds ends earlier,
//   and is opened again when it is wanted.
// Thread-safety: as its transaction. Ownership: its transaction owns it.
#ifndef TC_SCAN_RESUMABLE_SCAN_H_
#define TC_SCAN_RESUMABLE_SCAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "protocol/data_component.h"
#include "protocol/record_batch.h"
#include "protocol/transaction_service.h"
#include "tc/scan/batch_room.h"
#include "tc/scan/bulk_scan_state.h"
#include "tc/scan/byte_arena.h"
#include "tc/scan/gather_estimate.h"
#include "tc/scan/gathered_keys.h"
#include "tc/scan/scan_ahead_budget.h"
#include "tc/scan/scan_cursor.h"
#include "tc/scan/scan_merge.h"

namespace deut::tc {

struct ResumableScan {
  static constexpr size_t kMaxResumable = 4;
  static constexpr size_t kMaxKeysAhead = 4096;
  static constexpr size_t kMaxStretchesAhead = 1024;
  static constexpr size_t kMaxReusedKeyCapacity = 256;  // keys
  static constexpr size_t kMaxReusedBytes = 4 * ByteArena::kChunk;
  // Limits on the gathered keys kept of one stretch; between them it is the number that the batch is likely to pass. A
  // stretch with more keys ends behind the last one kept. A scan that goes on behind its first stretch has met small
  // ranges, or keys that show nothing, so it keeps more.
  static constexpr size_t kMinGatheredFirst = 8;
  static constexpr size_t kMinGathered = 64;
  static constexpr size_t kMaxGathered = 4096;
  // The most merged keys that are kept before they are dropped.
  static constexpr size_t kMaxKeysBehind = 1024;

  // Returns whether `scan` asks for the next batch of this scan.
  bool ContinuesWith(const Operation& scan) const {
    return IsSameScan(scan, own_below) && scan.low == cursor.low && scan.high == cursor.high;
  }

  // Returns whether `scan` asks again for the batch that this scan has answered last.
  bool HasAnswered(const Operation& scan) const {
    return IsSameScan(scan, own_below) && (cursor.ascending() ? scan.low : scan.high) == last_from &&
           (cursor.ascending() ? scan.high == cursor.high : scan.low == cursor.low);
  }

  // Returns whether this scan was begun ahead for `scan`.
  bool PrefetchedFor(const Operation& scan) const {
    return IsSameScan(scan, 0) && scan.low == cursor.low && scan.high == cursor.high;
  }

  // Returns whether its memory may be used for another scan, once it has ended: it had no stream, and is small.
  bool IsReusable() const {
    return bulk.stream == nullptr && !bulk.flow && gathered.keys.capacity() <= kMaxReusedKeyCapacity &&
           gathered.texts.capacity() + gathered.values.capacity() <= kMaxReusedBytes;
  }
  // Resets it as if just constructed, but keeps memory and estimate. The scan that takes it sets the rest. REQUIRES:
  // IsReusable().
  void Reset() {
    last_from.clear();
    cursor.Reset();
    gathered.Clear();
    gathered.values.Clear();
    answer.reset();
    first_request.reset();
    spare = RecordBatch();
    bulk.Reset();
    share.Release();
  }

  // Returns the most gathered keys that the next stretch may have.
  size_t MaxGatheredKeys(const BatchRoom& room) const {
    if (room.limit_records() == 0) return kMaxGathered;
    return std::clamp(estimate.KeysFor(room.RecordsLeft()), cursor.gathered ? kMinGathered : kMinGatheredFirst,
                      kMaxGathered);
  }

  // Drops the answer, which has been merged to its end, and moves to where it ends.
  void DropMergedAnswer() {
    RecordBatch& merged = answer->records;
    if (merged.bytes().capacity() > spare.bytes().capacity()) spare = std::exchange(merged, RecordBatch());
    spare.Clear();
    Advance(answer->to_the_bound, &answer->covered);
    answer.reset();
  }
  // Moves to where an answer ends: the bound, or *covered, which is moved from.
  void Advance(bool to_the_bound, std::string* covered) {
    cursor.MoveTo(to_the_bound, covered);
    if (gathered.ahead() == 0) {
      gathered.Clear();
    } else if (gathered.next > kMaxKeysBehind) {
      gathered.DropMerged();
    }
  }

  // Ends the DC's bulk scan; the next batch opens another.
  void EndStream() {
    bulk.End();
    share.Release();
  }

  TableId table;
  bool for_update = false;
  uint32_t own_below = 0;  // R10
  ScanCursor cursor;
  std::string last_from;  // where the last batch began
  GatheredKeys gathered;
  size_t keys_passed = 0;  // merged in this batch
  GatherEstimate estimate;
  std::optional<DcAnswer> answer;  // not merged to its end
  // For a scan that was begun ahead: its request and, when it is run, the answer. Until then `share` is charged for
  // both.
  std::unique_ptr<DataRequest> first_request;
  RecordBatch spare;     // empty; the buffer of an answer that was copied, for the next one
  BulkScanState bulk;    // used from the second batch on
  ScanAheadShare share;  // its part of the budget for batches that are granted ahead of need

 private:
  bool IsSameScan(const Operation& scan, uint32_t sequence) const {
    return scan.scan_sequence == sequence && scan.table == table && scan.direction == cursor.direction &&
           scan.for_update == for_update;
  }
};

}  // namespace deut::tc

#endif  // TC_SCAN_RESUMABLE_SCAN_H_

// ResumableScan: the state that a scan keeps from one batch to the next: its position, the keys gathered ahead, and
// the DC's bulk scan.
//
// A client asks for each batch with the resume key of the one before. If the transaction has a resumable scan at
//   that key, with the same range, direction and scan sequence, the batch continues it. Otherwise the batch begins a
//   scan of its own. So this state saves work and decides nothing: a request that is repeated, or that skips a part, is
//   answered correctly without it.
// S4: the TC has raised, looked and gathered up to `bound`, and grants the DC no more. `keys` has the gathered keys
//   of the part that is not delivered yet: copies, at most kMaxKeysAhead.
// A batch that is asked for a second time begins a scan of its own. The resumable scan that had answered it is
//   further on, and no request will continue it. So it ends then, and does not hold a stream of the DC any longer.
// A scan is kept if its batch ended because it was full of bytes. A scan that has reached its limit of records is
//   probably over.
// Bounds: a transaction has at most kMaxResumable resumable scans, and drops the least recently used one. Each holds
//   at most one answer of the DC, its keys, and the bytes granted to the DC, which ScanAheadBudget bounds for all
//   scans together. All end with the transaction. The bulk scan of one that is not used for some seconds ends earlier
//   (RecordManager::EndIdleStreams), and is opened again when it is wanted.
// Thread-safety: as its transaction. Ownership: its transaction owns it.
#ifndef TC_RECORD_MANAGER_RESUMABLE_SCAN_H_
#define TC_RECORD_MANAGER_RESUMABLE_SCAN_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "protocol/data_component.h"
#include "protocol/transaction_service.h"
#include "tc/mvcc/version_chain.h"
#include "tc/scan/byte_arena.h"
#include "tc/scan/gather_estimate.h"
#include "tc/scan/scan_ahead_budget.h"
#include "tc/scan/scan_flow.h"

namespace deut::tc {

// A key that the TC has an update of, and what its chain shows when it is merged (scan_path.h). The scan's arenas
// hold the texts.
struct GatheredKey {
  enum class Kind : uint8_t { kValue, kTombstone, kInLog, kAskDc };
  std::string_view key;
  Kind kind = Kind::kAskDc;
  bool may_be_removed = true;  // false: none of its updates is a removal
  uint64_t hash = 0;           // set when its chain is looked at
  Version version;
  std::string_view value;
  Lsn place;  // for kInLog, as value_bytes
  uint32_t value_bytes = 0;
  DataRequest* reask = nullptr;
};

struct ResumableScan {
  static constexpr size_t kMaxResumable = 4;
  static constexpr size_t kMaxKeysAhead = 4096;
  static constexpr size_t kMaxStretchesAhead = 1024;
  static constexpr size_t kMaxReusedKeyCapacity = 256;  // keys
  static constexpr size_t kMaxReusedBytes = 4 * ByteArena::kChunk;

  // Returns whether `scan` asks for the next batch of this scan.
  bool ContinuesWith(const Operation& scan) const {
    return scan.scan_sequence == own_below && scan.table == table && scan.direction == direction &&
           scan.for_update == for_update && scan.low == low && scan.high == high;
  }

  // Returns whether `scan` asks again for the batch that this scan has answered last.
  bool HasAnswered(const Operation& scan) const {
    const bool ascending = direction == Direction::kAscending;
    return scan.scan_sequence == own_below && scan.table == table && scan.direction == direction &&
           scan.for_update == for_update && (ascending ? scan.low : scan.high) == last_from &&
           (ascending ? scan.high == high : scan.low == low);
  }

  // Returns whether this scan was begun ahead for `scan`.
  bool PrefetchedFor(const Operation& scan) const {
    return scan.scan_sequence == 0 && scan.table == table && scan.direction == direction &&
           scan.for_update == for_update && scan.low == low && scan.high == high;
  }

  // Returns whether its memory may be used for another scan, once it has ended: it had no stream, and is small.
  bool IsReusable() const {
    return stream == nullptr && !flow && keys.capacity() <= kMaxReusedKeyCapacity &&
           key_bytes.capacity() + values.capacity() <= kMaxReusedBytes;
  }
  // Resets it as if just constructed, but keeps memory and estimate. The scan that takes it sets the rest. REQUIRES:
  // IsReusable().
  void Reset() {
    last_from.clear();
    gathered = false;
    bound.clear();
    ClearKeys();
    values.Clear();
    answer.reset();
    first_request.reset();
    spare = RecordBatch();
    permit.Release();
    share.Release();
    stretch_ends.clear();
    stretches_passed = records_taken = 0;
    last_used = no_stream_before = MonotonicTime{};
  }

  // Drops all keys.
  void ClearKeys() {
    keys.clear();
    key_bytes.Clear();
    next_key = 0;
  }
  // Drops the merged keys.
  void DropMergedKeys() {
    keys.erase(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(next_key));
    next_key = 0;
    ByteArena moved;
    for (GatheredKey& rest : keys) rest.key = moved.Copy(rest.key);
    key_bytes = std::move(moved);
  }

  // Ends the DC's bulk scan; the next batch opens another.
  void EndStream() {
    stream.reset();
    flow.reset();
    share.Release();
    permit.Release();
  }

  TableId table;
  Direction direction = Direction::kAscending;
  bool for_update = false;
  uint32_t own_below = 0;  // R10
  std::string low, high;   // the rest of the requested range
  std::string last_from;   // where the last batch began

  // The part from the scan's position up to `bound`, in scan order, is raised, looked at and gathered. Ascending
  // `bound` is exclusive, descending inclusive; empty: the end of all keys in that direction.
  bool gathered = false;
  std::string bound;
  std::vector<GatheredKey> keys;  // in scan order; those before next_key are merged
  size_t next_key = 0;
  size_t keys_passed = 0;  // merged in this batch
  GatherEstimate estimate;
  ByteArena key_bytes;  // texts of `keys`
  ByteArena values;     // values of the keys that are being merged

  // An answer of the DC, up to `covered`, that is not merged to its end. Its first merged_records records, of
  // merged_bytes bytes, are.
  struct Answer {
    RecordBatch records;
    size_t merged_records = 0;
    size_t merged_bytes = 0;
    bool to_the_bound = false;  // false: up to `covered`
    std::string covered;
  };
  std::optional<Answer> answer;
  // For a scan that was begun ahead (prefetched_scan.h): its request and, when it is run, the answer. Until then
  // `share` is charged for both.
  std::unique_ptr<DataRequest> first_request;
  RecordBatch spare;  // empty; the buffer of an answer that was copied, for the next one

  // Used from the second batch on.
  ScanPermit permit;  // held with the stream, which ends first
  std::unique_ptr<ScanStream> stream;
  std::optional<ScanFlow> flow;
  ScanAheadShare share;
  std::deque<std::string> stretch_ends;  // far ends of the stretches gathered and not passed
  uint64_t stretches_passed = 0;
  uint64_t records_taken = 0;

  MonotonicTime last_used{};
  MonotonicTime no_stream_before{};  // the DC had no thread for a stream; no request for one before
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_RESUMABLE_SCAN_H_

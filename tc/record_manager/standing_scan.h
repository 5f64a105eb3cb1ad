// StandingScan: what a scan keeps from one batch to the next: how far it has come, what was gathered ahead, and the DC's bulk scan.
//
// A client asks for each batch with the resume key of the one before. If the transaction has a standing scan that stands there, with the same range,
//   direction and scan sequence, it goes on; else the batch begins a scan of its own. So this state saves work and decides nothing: a request that is
//   sent again, or one that leaves a part out, is answered rightly without it.
// S4. `bound` is how far the TC was raised, looked at and gathered; the DC is granted no more. `keys` are what was gathered of the part that
//   is not delivered yet: copies, at most kMaxKeysAhead.
// A batch that is asked for once more begins a scan of its own. The one that had answered it stands further on, where nobody comes any more: it
//   ends then, and does not keep a stream of the DC.
// A scan is kept when a batch has ended because it was full of bytes: one with a limit of records that was reached is likely over.
// Bounded: kMaxStanding of them a transaction, the one not used for longest goes; each holds at most one answer of the DC, its keys, and what
//   the DC is granted, of which all scans together have ScanAheadBudget. All end with the transaction; the DC's part of one that is not used for some
//   seconds ends before (Transaction's owner calls EndStreams), and is opened again when it is wanted.
// Thread-safety: as its transaction.
#ifndef TC_RECORD_MANAGER_STANDING_SCAN_H_
#define TC_RECORD_MANAGER_STANDING_SCAN_H_

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
#include "tc/record_manager/byte_arena.h"
#include "tc/record_manager/gather_estimate.h"
#include "tc/record_manager/scan_ahead_budget.h"
#include "tc/record_manager/scan_flow.h"

namespace deut::tc {

// A key that the TC has an update of, and what its chain shows when it is merged (scan_path.h). Texts lie in the scan's arenas.
struct GatheredKey {
  enum class Kind : uint8_t { kValue, kTombstone, kInLog, kAskDc };
  std::string_view key;
  Kind kind = Kind::kAskDc;
  bool may_be_removed = true;  // else none of its updates is a removal
  uint64_t hash = 0;           // when its chain is looked at
  Version version;
  std::string_view value;
  Lsn place;  // kInLog, with value_bytes
  uint32_t value_bytes = 0;
  DataRequest* again = nullptr;
};

struct StandingScan {
  static constexpr size_t kMaxStanding = 4;
  static constexpr size_t kMaxKeysAhead = 4096;
  static constexpr size_t kMaxStretchesAhead = 1024;
  static constexpr size_t kMostKept = 256;  // keys
  static constexpr size_t kMostKeptBytes = 4 * ByteArena::kChunk;

  // The batch that `scan` asks for is the next of this scan.
  bool GoesOnWith(const Operation& scan) const {
    return scan.scan_sequence == own_below && scan.table == table && scan.direction == direction &&
           scan.for_update == for_update && scan.low == low && scan.high == high;
  }

  // `scan` asks once more for the batch that this scan has answered last.
  bool HasAnswered(const Operation& scan) const {
    const bool ascending = direction == Direction::kAscending;
    return scan.scan_sequence == own_below && scan.table == table && scan.direction == direction &&
           scan.for_update == for_update && (ascending ? scan.low : scan.high) == last_from &&
           (ascending ? scan.high == high : scan.low == low);
  }

  // It was begun ahead for this one.
  bool BegunFor(const Operation& scan) const {
    return scan.scan_sequence == 0 && scan.table == table && scan.direction == direction &&
           scan.for_update == for_update && scan.low == low && scan.high == high;
  }

  // It has ended, and its memory may be used for another scan: it had no stream, and is small.
  bool MayBeginAnew() const {
    return stream == nullptr && !flow && keys.capacity() <= kMostKept &&
           key_bytes.capacity() + values.capacity() <= kMostKeptBytes;
  }
  // As made just now, but in its memory and with its estimate, for those to fill in who make one. REQUIRES: MayBeginAnew().
  void BeginAnew() {
    last_from.clear();
    gathered = false;
    bound.clear();
    ForgetKeys();
    values.Clear();
    answer.reset();
    first.reset();
    spare = RecordBatch();
    permit.Release();
    share.Release();
    ends.clear();
    ends_passed = records_taken = 0;
    used = stream_again_at = MonotonicTime{};
  }

  // All of them.
  void ForgetKeys() {
    keys.clear();
    key_bytes.Clear();
    next_key = 0;
  }
  // Those that are merged.
  void ForgetMergedKeys() {
    keys.erase(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(next_key));
    next_key = 0;
    ByteArena moved;
    for (GatheredKey& rest : keys) rest.key = moved.Copy(rest.key);
    key_bytes = std::move(moved);
  }

  // Gives the DC's part up; the next batch opens another.
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
  std::string low, high;   // what is left of the requested range
  std::string last_from;   // where the last batch began

  // Raised, looked at and gathered from where the scan stands up to here, in scan order: ascending exclusive, descending inclusive, empty =
  // the end of all keys in that direction.
  bool gathered = false;
  std::string bound;
  std::vector<GatheredKey> keys;  // in scan order; those before next_key are merged
  size_t next_key = 0;
  size_t keys_passed = 0;  // merged, in this batch
  GatherEstimate estimate;
  ByteArena key_bytes;  // of keys
  ByteArena values;     // of those that are being merged

  // What the DC has answered, up to `covered`, and not merged to its end. Its first records are: so many, of so many bytes.
  struct Answer {
    RecordBatch records;
    size_t merged_records = 0;
    size_t merged_bytes = 0;
    bool to_the_bound = false;  // else:
    std::string covered;
  };
  std::optional<Answer> answer;
  // Of one that was begun ahead (begun_scan.h): what it has asked for, and, when it is run, the answer. `share` counts it until then.
  std::unique_ptr<DataRequest> first;
  RecordBatch spare;  // empty; the buffer of an answer that was copied, for the next one

  // From the second batch on.
  ScanPermit permit;  // held with the stream, which ends first
  std::unique_ptr<ScanStream> stream;
  std::optional<ScanFlow> flow;
  ScanAheadShare share;
  std::deque<std::string> ends;  // of the stretches gathered and not passed
  uint64_t ends_passed = 0;
  uint64_t records_taken = 0;

  MonotonicTime used{};
  MonotonicTime stream_again_at{};  // the DC had no thread for one; until then it is not asked for one
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_STANDING_SCAN_H_

// Operation: one read, write or scan of a transaction, as a client asks for it, and its result. TransactionService
// carries them (transaction_service.h).
// Thread-safety: values. Ownership: an Operation views bytes of its caller; an OperationResult owns its bytes. Errors:
// the status of a result; the fields say which one a failed condition gives.
#ifndef PROTOCOL_OPERATION_H_
#define PROTOCOL_OPERATION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "protocol/data_component.h"
#include "protocol/record_batch.h"

namespace deut {

enum class OperationKind : uint8_t {
  kGet = 0,
  kPut = 1,     // blind: writes whether the key is there or not
  kInsert = 2,  // ALREADY_EXISTS if the key is there
  kUpdate = 3,  // NOT_FOUND if it is not
  kRemove = 4,  // blind: the key is absent afterwards; the result does not say whether it was there
  kScan = 5,    // one batch of [low, high)
  // Atomic changes of a number (number.h). `value` is the operand and has eight bytes. The result's record is the key's
  // new value. INVALID_ARGUMENT if the key's present value has another length.
  kAdd = 6,  // wraps on overflow; an absent key counts as 0
  kMin = 7,  // the smaller of both, signed; an absent key becomes the operand
  kMax = 8,  // the larger of both, signed; an absent key becomes the operand
  kCompareAndSet =
      9,  // writes `value` if the key has `expected` (or is absent, with expect_absent), else CONDITION_FAILED; then
          // the result's record is the present value
  kRemoveRange =
      10,  // removes the keys of one batch of [low, high); limits, `complete` and `resume` as for a scan; the answer has no records
};

// The field of an operation into which the TC writes the transaction's timestamp. It takes eight bytes, most
// significant first, so that stamps sort in commit order.
enum class Stamp : uint8_t {
  kNone = 0,
  kKey = 1,
  kValue = 2,
};
constexpr uint32_t kStampBytes = 8;

struct Operation {
  OperationKind kind = OperationKind::kGet;
  TableId table = {};
  std::string_view key = {};
  std::string_view value = {};
  // kScan: as in DataRequest. A batch has at most limit_records records (0 = limited by bytes only) and about
  // limit_bytes bytes. Its work is bounded, too: over many deleted records it ends early, perhaps without a record.
  std::string_view low = {};
  std::string_view high = {};
  Direction direction = Direction::kAscending;
  uint32_t limit_records = 0;
  uint32_t limit_bytes = 256 << 10;
  // The scan announces that the transaction will update the records that it reads (SIX, R3).
  bool for_update = false;
  // 0 opens a scan. A later batch passes the OperationResult::scan_sequence of the scan's first batch. The scan then
  // sees only those of the transaction's own writes that precede its opening (R10).
  uint32_t scan_sequence = 0;
  // kScan: a prefetch, for which nobody waits yet. If it fails, for any reason, the transaction stays open as if the
  // scan had not been sent. A caller that needs the batch then repeats the scan without `prefetch`.
  bool prefetch = false;
  // kCompareAndSet only.
  std::string_view expected = {};
  bool expect_absent = false;
  // kPut, kInsert: the timestamp replaces bytes [stamp_offset, stamp_offset + 8) of the key or the value. The result's
  // record then has the key as written, and no value.
  Stamp stamp = Stamp::kNone;
  uint32_t stamp_offset = 0;
};

struct OperationResult {
  Status status;
  // kGet, atomic and stamped operations: 0 or 1 record. kScan: the batch. The versions are those of the records, or
  // upper bounds of them.
  RecordBatch records;
  // kRemoveRange: the number of removed keys.
  uint32_t removed = 0;
  // kScan, kRemoveRange: whether the range is done, else the key to resume at. Ascending, `resume` is the next low;
  // descending, the next high. Nothing else says that a scan is at its end: a batch without records may not be the last.
  bool complete = false;
  std::string resume;
  uint32_t scan_sequence = 0;
  // If this operation's failure ended a one-shot transaction: that transaction's timestamp. At that place in the serial
  // order the precondition did not hold (D1). It is 0 in all other results. An interactive transaction has its
  // timestamp from Begin.
  Timestamp failed_precondition_at = {};
};

// Returns the timestamp at which a failed precondition ended the one-shot transaction with these results; 0 if none
// did.
inline Timestamp FailedPreconditionAt(absl::Span<const OperationResult> results) {
  for (const OperationResult& result : results) {
    if (result.failed_precondition_at != Timestamp{0}) return result.failed_precondition_at;
  }
  return Timestamp{0};
}

// Stores the timestamp of a one-shot transaction in its first failed result, because that failure ended it. 0 stores
// nothing.
inline void SetFailedPreconditionAt(Timestamp timestamp, absl::Span<OperationResult> results) {
  if (timestamp == Timestamp{0}) return;
  for (OperationResult& result : results) {
    if (result.status.ok()) continue;
    result.failed_precondition_at = timestamp;
    return;
  }
}

// Whether `batch` is the scan's last: its range is exhausted, or the batch has the number of records that the scan
// asked for.
inline bool IsOver(const Operation& scan, const OperationResult& batch) {
  return batch.complete || (scan.limit_records != 0 && batch.records.size() >= scan.limit_records);
}

}  // namespace deut

#endif  // PROTOCOL_OPERATION_H_

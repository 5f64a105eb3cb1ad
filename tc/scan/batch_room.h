// BatchRoom: what still fits into a batch of a scan: its limits, and the records that it has.
// Thread-safety: as the batch. Ownership: borrows the batch, which outlives it.
#ifndef TC_SCAN_BATCH_ROOM_H_
#define TC_SCAN_BATCH_ROOM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "protocol/record_batch.h"

namespace deut::tc {

// A batch ends after this many answers of the DC, also if they have no record. The DC reads at most 256 pages for an
// answer. So a batch over pages in memory that hold nothing takes some tens of milliseconds.
inline constexpr size_t kMaxStepsPerBatch = 64;

class BatchRoom {
 public:
  // limit_records 0: no limit on records.
  BatchRoom(RecordBatch& records, uint32_t limit_records, uint32_t limit_bytes)
      : records_(records), limit_records_(limit_records), limit_bytes_(limit_bytes) {}

  RecordBatch& records() const { return records_; }
  uint32_t limit_records() const { return limit_records_; }
  uint32_t limit_bytes() const { return limit_bytes_; }

  // Returns whether the batch would be full with that many more records and bytes.
  bool Full(size_t more_records, size_t more_bytes) const {
    return (limit_records_ != 0 && records_.size() + more_records >= limit_records_) ||
           records_.bytes().size() + more_bytes >= limit_bytes_;
  }
  // Returns whether the room left is too small to be worth a request.
  bool NearlyFull() const { return !records_.empty() && records_.bytes().size() >= limit_bytes_ - limit_bytes_ / 4; }
  // Returns whether `records` more records of `bytes` bytes in all fit.
  bool AllFit(size_t records, size_t bytes) const {
    if (limit_records_ != 0 && records_.size() + records > limit_records_) return false;
    return records_.bytes().size() + bytes <= limit_bytes_ || (records_.empty() && records <= 1);
  }
  // Returns whether the limit of records is not reached yet.
  bool BelowRecordLimit() const { return limit_records_ == 0 || records_.size() < limit_records_; }
  // The records that still fit. REQUIRES: there is a limit of records.
  size_t RecordsLeft() const { return limit_records_ - records_.size(); }
  uint32_t BytesLeft() const {
    return limit_bytes_ - static_cast<uint32_t>(std::min<size_t>(records_.bytes().size(), limit_bytes_));
  }

 private:
  RecordBatch& records_;
  const uint32_t limit_records_;
  const uint32_t limit_bytes_;
};

}  // namespace deut::tc

#endif  // TC_SCAN_BATCH_ROOM_H_

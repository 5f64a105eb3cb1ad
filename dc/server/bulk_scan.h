// BulkScan: the DC's side of one scan stream (rule S4). It reads the tree on the thread that requests the next batch,
// and only within the grant. Keys are read up to the granted bound, and bytes up to the granted sum (a batch may
// exceed it by one record).
// Its whole state is the remaining key range; it holds nothing between batches.
// Thread-safety: one thread at a time. Ownership: borrows objects of the server; must end before the server.
#ifndef DC_SERVER_BULK_SCAN_H_
#define DC_SERVER_BULK_SCAN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "dc/record_ops/record_operations.h"
#include "dc/server/fencing.h"
#include "protocol/data_component.h"

namespace deut::dc {

class BulkScan final : public ScanStream {
 public:
  BulkScan(Fencing& fencing, RecordOperations& operations, const Sender& sender, const ScanSpec& spec);

  // Extends the grant. INVALID_ARGUMENT if the bound moves back.
  Status Grant(std::string_view bound, uint64_t bytes) override;
  // Reads the next batch. WRONG_STATE if the grant is used up. An empty batch states that a key range holds no
  // records. The batch is short if the deadline passes while pages are loaded.
  Status Next(ScanBatch* batch, Deadline deadline) override;

 private:
  bool ascending() const { return spec_.direction == Direction::kAscending; }
  // The bound of `left_` that the scan moves.
  std::string& moving() { return ascending() ? left_.low : left_.high; }
  bool BoundReached() const;

  Fencing& fencing_;
  RecordOperations& operations_;
  const Sender sender_;
  const ScanSpec spec_;
  ScanCursor left_;  // remaining part of the scan's range
  bool granted_ = false;
  bool to_the_end_ = false;
  std::string bound_;
  uint64_t bytes_ = 0;
  RecordOperations::ScanReadAhead ahead_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_BULK_SCAN_H_

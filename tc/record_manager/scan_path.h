// Range reads: one batch of a scan (paper, section 4; rules R2, R3, R10, S4, S5, D1).
//
// A scan goes through the table stretch by stretch. For each:
//   1. raise, look, gather keys (scan_gather.h);
//   2. only then ask the DC for the stretch, a page-size batch at a time (S4: TC first, DC second);
//   3. merge up to the bound that the batch covers: each gathered key's value comes from its chain, as for a point read; if the chain shows
//      nothing visible any more, the key is asked of the DC again, all such keys of a batch in one message. The larger
//      (timestamp, sequence) wins, the DC on ties; a tombstone removes.
// What is delivered is a prefix of the range in scan order; `resume` is where the next batch starts. No guard is held across a wait.
// Memory and time are bounded by the batch.
// Thread-safety: one object per batch, used by one thread.
#ifndef TC_RECORD_MANAGER_SCAN_PATH_H_
#define TC_RECORD_MANAGER_SCAN_PATH_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "protocol/transaction_service.h"
#include "tc/mvcc/version_chain.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/scan_gather.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

class ScanPath {
 public:
  ScanPath(Engine& engine, Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline);

  Status Run();

 private:
  bool ascending() const { return scan_.direction == Direction::kAscending; }
  // True if `a` comes before `b` in scan order.
  bool Before(std::string_view a, std::string_view b) const { return ComesBefore(scan_.direction, a, b); }
  // Nothing of the requested range is left.
  bool Exhausted() const;

  // Gathered keys that a stretch may have.
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
  ScanGather gather_;
  bool full_ = false;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_PATH_H_

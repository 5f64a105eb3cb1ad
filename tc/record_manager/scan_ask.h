// ScanAsk: step 2 of a scan (scan_path.h): asks the DC for the gathered part, in one message (rule S4).
// Errors: those of the DC; INTERNAL if its answer breaks a rule.
// Thread-safety: one thread at a time. Ownership: borrows everything.
#ifndef TC_RECORD_MANAGER_SCAN_ASK_H_
#define TC_RECORD_MANAGER_SCAN_ASK_H_

#include <cstdint>
#include <string_view>

#include "common/base/status.h"
#include "protocol/data_component.h"
#include "protocol/transaction_service.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"
#include "tc/scan/batch_room.h"
#include "tc/scan/resumable_scan.h"

namespace deut::tc {

// One call of a scan, which makes one batch. The parts of the scan share it.
struct ScanCall {
  Engine& engine;
  Transaction& txn;
  const Operation& scan;
  const Deadline deadline;
  const BatchRoom room;
};

class ScanAsk {
 public:
  explicit ScanAsk(const ScanCall& call) : call_(call) {}

  // The most bytes that one message asks of the DC.
  static constexpr uint32_t kShortScanBytes = 256 << 10;

  // Asks for the gathered part of the rest of the range. The answer is checked.
  Status AskOnce(const TableState& table, ResumableScan& scan, DataRequest* request) const;

  // Makes the request for the gathered part of [low, high).
  void MakeRequest(const ResumableScan& scan, std::string_view low, std::string_view high, DataRequest* request) const;
  // Sends the request and waits for the answer.
  Status AskDc(const TableState& table, DataRequest* request) const;
  // Checks that the DC has answered what it was asked: [low, high).
  Status CheckAnswer(const DataRequest& request, const ScanCursor& cursor, std::string_view low,
                     std::string_view high) const;

 private:
  // Returns about how many bytes the answer has at most, if its records are like those before. REQUIRES: the batch
  // has some.
  uint64_t ExpectedBytes(const DataRequest& request) const;

  const ScanCall& call_;
};

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_SCAN_ASK_H_

// BulkScan: a granted scan of the DC that survives restarts of the DC (rules S4, X3). When the stream breaks it waits for the gate,
// opens a new stream at the resume key and grants it again what was granted and not yet delivered.
//
// A stream may break alone: the DC cuts off one that holds its threads for too long, and may end any one of them. So a broken stream is opened
// again first, and only if that fails, or the new one breaks without a batch, the connection counts as lost, which closes the gate to all
// readers. Nothing is read from another life meanwhile: the new stream names the life that the gate is open for, and another one refuses it (X3).
//
// Why granting again is allowed: S4 forbids merging a batch that was asked for before the gather of its stretch. A grant is
// given after that gather; asking later for the same stretch is asking after it, too.
// Thread-safety: one thread at a time. Ownership: must not outlive the link; destroying it cancels the scan.
#ifndef TC_DC_LINK_BULK_SCAN_H_
#define TC_DC_LINK_BULK_SCAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/data_component.h"

namespace deut::tc {

class DcGate;

class BulkScan final : public ScanStream {
 public:
  // Use DcLink::OpenScan. `sender` is without an incarnation, which comes from the gate.
  BulkScan(DataComponent& dc, DcGate& gate, Sender sender, ScanSpec spec);
  ~BulkScan() override;
  BulkScan(const BulkScan&) = delete;
  BulkScan& operator=(const BulkScan&) = delete;

  // Opens a stream for what is left of the range, behind the gate, and grants it what is left of the grants. Next does so by itself.
  Status Open(Deadline deadline);

  // As ScanStream::Grant: up to the key `bound` (empty = to the end of the range), and `bytes` more of answer. Never waits.
  // REQUIRES: raised and gathered up to `bound` (S4); bounds only move forward.
  Status Grant(std::string_view bound, uint64_t bytes) override;

  // As ScanStream::Next; keys already delivered do not come again. At the deadline UNAVAILABLE (at the gate) or DEADLINE_EXCEEDED (the
  // stream has nothing yet); the scan may be continued.
  Status Next(ScanBatch* batch, Deadline deadline) override;
  bool ReadsAhead() const override { return stream_ != nullptr && stream_->ReadsAhead(); }

 private:
  // The stream's status says that it, the connection or this life of the DC is gone: drops the stream, and reports what is more than the stream.
  bool Interrupted(const Status& status);
  // Checks the batch and takes it off what is left. CORRUPTION if it does not speak for a next stretch inside the grant.
  Status Deliver(const ScanBatch& batch);

  DataComponent& dc_;
  DcGate& gate_;
  Sender sender_;
  ScanSpec spec_;  // its range shrinks to what is left
  std::unique_ptr<ScanStream> stream_;
  uint64_t session_ = 0;     // of the gate, in which stream_ was opened
  bool cut_off_ = false;     // a stream of this session has broken, and no batch has come since
  std::string bound_;        // the furthest bound granted
  uint64_t left_bytes_ = 0;  // granted and not yet delivered
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_BULK_SCAN_H_

// BulkScan: a granted scan of the DC that survives restarts of the DC (rules S4, X3). When the stream breaks it waits
// for the gate, and opens a new stream at the resume key. It grants the undelivered part of the grant again.
//
// A stream may break alone: the DC cuts off one that holds its threads for too long, and may end any of them. So a
// broken stream is opened again first. Only if that fails, or the new one breaks without a batch, the connection
// counts as lost, which closes the gate to all readers. Meanwhile nothing is read from another incarnation: the new
// stream names the incarnation that the gate is open for, and another one refuses it (X3).
//
// A repeated grant is allowed. S4 forbids to merge a batch that was requested before the gather of its keys. A grant
// is given after that gather, so a later request for the same keys comes after it, too.
// Thread-safety: one thread at a time. Ownership: must not outlive the link; its destructor cancels the scan.
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
  // Use DcLink::OpenScan. `sender` has no incarnation yet; the gate supplies it.
  BulkScan(DataComponent& dc, DcGate& gate, Sender sender, ScanSpec spec);
  ~BulkScan() override;
  BulkScan(const BulkScan&) = delete;
  BulkScan& operator=(const BulkScan&) = delete;

  // Opens a stream for the rest of the range, behind the gate, and grants it the rest of the grants. Next does so by
  // itself.
  Status Open(Deadline deadline);

  // As ScanStream::Grant: up to the key `bound` (empty = to the end of the range), and `bytes` more of answer. Never
  // waits. REQUIRES: the caller has raised and gathered up to `bound` (S4); bounds only move forward.
  Status Grant(std::string_view bound, uint64_t bytes) override;

  // As ScanStream::Next; delivered keys do not come again. At the deadline UNAVAILABLE (at the gate) or
  // DEADLINE_EXCEEDED (the stream has nothing yet). The scan may be continued then.
  Status Next(ScanBatch* batch, Deadline deadline) override;
  bool ReadsAhead() const override { return stream_ != nullptr && stream_->ReadsAhead(); }

 private:
  // True if `status` says that the stream, the connection or this incarnation is gone. Drops the stream, and reports
  // a loss to the gate if more than the stream is gone.
  bool Interrupted(const Status& status);
  // Checks the batch and removes it from the remaining range and grant. CORRUPTION if it does not cover a next part
  // of the range inside the grant.
  Status Deliver(const ScanBatch& batch);

  DataComponent& dc_;
  DcGate& gate_;
  Sender sender_;
  ScanSpec spec_;  // its range shrinks to the undelivered part
  std::unique_ptr<ScanStream> stream_;
  uint64_t session_ = 0;              // the gate's session in which stream_ was opened
  bool broke_without_batch_ = false;  // a stream of this session has broken, and no batch has come since
  std::string bound_;                 // the furthest bound granted
  uint64_t left_bytes_ = 0;           // granted and not yet delivered
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_BULK_SCAN_H_

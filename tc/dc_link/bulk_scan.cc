#include "tc/dc_link/bulk_scan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/dc_link/dc_gate.h"

namespace deut::tc {

BulkScan::BulkScan(DataComponent& dc, DcGate& gate, Sender sender, ScanSpec spec)
    : dc_(dc), gate_(gate), sender_(sender), spec_(std::move(spec)) {}

BulkScan::~BulkScan() = default;

bool BulkScan::Interrupted(const Status& status) {
  const DcGate::Pass now = gate_.pass();  // open to this session: its connection is not lost, even if it does not ship
  const bool alone = status == ErrorCode::kUnavailable && stream_ != nullptr && !broke_without_batch_ && now.open() &&
                     now.session == session_;
  if (alone && DEUT_STEP("X3.cut_stream_is_no_loss")) {
    broke_without_batch_ = true;
  } else if (!gate_.ReportIfLost(status, session_)) {
    return false;
  }
  stream_.reset();
  return true;
}

Status BulkScan::Open(Deadline deadline) {
  for (;;) {
    DcGate::Pass pass;
    DEUT_RETURN_IF_ERROR(gate_.WaitOpen(deadline, &pass));
    DEUT_DCHECK(pass.session >= session_);  // sessions are numbered in ascending order
    if (session_ != pass.session) broke_without_batch_ = false;
    session_ = pass.session;
    sender_.incarnation = pass.incarnation;
    Result<std::unique_ptr<ScanStream>> opened = dc_.OpenScan(sender_, spec_, deadline);
    Status status = opened.status();
    if (opened.ok()) {
      stream_ = std::move(*opened);
      if (left_bytes_ == 0) return Status::Ok();
      status = stream_->Grant(bound_, left_bytes_);
      if (status.ok()) return status;
    }
    if (!Interrupted(status)) return status;
  }
}

Status BulkScan::Grant(std::string_view bound, uint64_t bytes) {
  const bool ascending = spec_.direction == Direction::kAscending;
  DEUT_DCHECK(bound.empty() || (ascending ? bound >= bound_ : bound_.empty() || bound <= bound_));
  bound_ = bound;
  left_bytes_ += bytes;
  if (stream_ == nullptr) return Status::Ok();  // Next opens one and grants it
  Status status = stream_->Grant(bound, bytes);
  if (!status.ok() && Interrupted(status)) return gate_.finished() ? gate_.final_status() : Status::Ok();
  return status;
}

Status BulkScan::Next(ScanBatch* batch, Deadline deadline) {
  for (;;) {
    if (stream_ == nullptr) DEUT_RETURN_IF_ERROR(Open(deadline));
    Status status = stream_->Next(batch, deadline);
    if (status.ok()) return Deliver(*batch);
    if (!Interrupted(status)) return status;
  }
}

Status BulkScan::Deliver(const ScanBatch& batch) {
  const bool ascending = spec_.direction == Direction::kAscending;
  KeyRange& left = spec_.range;
  // The caller merges up to `covered`. It would lose keys if a batch covered less than was delivered, or more than
  // was granted.
  const std::string& far_end = ascending ? left.high : left.low;
  bool sound = true;
  if (batch.complete) {
    sound = bound_ == far_end || bound_.empty() ||
            (ascending ? !left.high.empty() && bound_ >= left.high : bound_ <= left.low);
  } else if (ascending) {
    sound = !batch.covered.empty() && batch.covered >= left.low && (bound_.empty() || batch.covered <= bound_);
  } else {
    sound = !batch.covered.empty() && (left.high.empty() || batch.covered <= left.high) && batch.covered >= bound_;
  }
  // The batch must continue behind the delivered keys. Otherwise some would be merged twice.
  const RecordBatch::Iterator first(batch.records);
  const bool goes_on = !first.Valid() || (ascending ? first.record().key >= left.low
                                                    : left.high.empty() || first.record().key < left.high);
  if (!goes_on) return DEUT_ERROR(kCorruption, "the DC's scan batch begins with a record that was delivered before");
  if (!sound) {
    return DEUT_ERROR(kCorruption, "the DC's scan batch covers ", batch.complete ? "the whole range" : batch.covered,
                      ", which is not between what it covered before and the bound granted");
  }
  // A stream that brings no progress before it is cut off again counts as none.
  if (batch.complete || first.Valid() || batch.covered != (ascending ? left.low : left.high))
    broke_without_batch_ = false;
  const uint64_t bytes = batch.records.bytes().size();
  left_bytes_ -= std::min(left_bytes_, bytes);
  if (!batch.complete) (ascending ? left.low : left.high) = batch.covered;
  return Status::Ok();
}

}  // namespace deut::tc

#include "dc/server/bulk_scan.h"

#include <algorithm>
#include <limits>

#include "common/testing/test_points.h"

namespace deut::dc {
namespace {

// Pages that one batch may read: bounds the time of a batch over pages without records.
constexpr uint64_t kPagesPerBatch = 256;

}  // namespace

BulkScan::BulkScan(Fencing& fencing, RecordOperations& operations, const Sender& sender, const ScanSpec& spec)
    : fencing_(fencing),
      operations_(operations),
      sender_(sender),
      spec_(spec),
      left_{spec.range.low, spec.range.high, false} {}

Status BulkScan::Grant(std::string_view bound, uint64_t bytes) {
  const bool to_the_end = bound.empty();
  if (granted_) {
    const bool back = to_the_end_ ? !to_the_end : !to_the_end && (ascending() ? bound < bound_ : bound > bound_);
    if (back) return DEUT_ERROR(kInvalidArgument, "the granted bound of a scan moves forward only");
  }
  granted_ = true;
  to_the_end_ = to_the_end;
  bound_ = bound;
  bytes_ += std::min(bytes, std::numeric_limits<uint64_t>::max() - bytes_);
  return Status::Ok();
}

bool BulkScan::BoundReached() const {
  if (to_the_end_) return false;
  if (ascending()) return left_.low >= bound_;
  return !left_.high.empty() && left_.high <= bound_;
}

Status BulkScan::Next(ScanBatch* batch, Deadline deadline) {
  const Fencing::Admission admission(fencing_, sender_);
  DEUT_RETURN_IF_ERROR(admission.status());
  if (!granted_ || bytes_ == 0 || BoundReached()) return DEUT_ERROR(kWrongState, "the scan's grant is used up");
  // The part of the remaining range that was granted.
  ScanCursor stretch = left_;
  if (!to_the_end_ && DEUT_STEP("S4.only_inside_the_grant")) {
    if (ascending()) {
      if (stretch.high.empty() || bound_ < stretch.high) stretch.high = bound_;
    } else {
      stretch.low = std::max(stretch.low, bound_);
    }
  }
  batch->records.Clear();
  ScanBudget budget;
  budget.bytes = std::min<uint64_t>(spec_.batch_bytes, bytes_);
  DEUT_RETURN_IF_ERROR(operations_.Scan(spec_.table, spec_.direction, &stretch, &budget, kPagesPerBatch,
                                        &batch->records, &ahead_, deadline));
  left_.pages = stretch.pages;
  bytes_ -= std::min<uint64_t>(bytes_, batch->records.bytes().size());

  if (stretch.complete) {
    // The whole granted range has been read. The scan is complete if that was the whole remaining range.
    const std::string& end = ascending() ? stretch.high : stretch.low;
    left_.complete = end == (ascending() ? left_.high : left_.low);
    moving() = end;
  } else {
    moving() = ascending() ? stretch.low : stretch.high;
  }
  batch->complete = left_.complete;
  batch->covered = moving();
  return Status::Ok();
}

}  // namespace deut::dc

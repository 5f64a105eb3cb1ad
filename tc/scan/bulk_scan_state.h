// BulkScanState: the bulk scan of the DC that a scan reads from its second batch on, and how far it is granted ahead
// (S4). A stretch is a part of the range that was gathered in one step.
// Thread-safety: as its scan. Ownership: owns the stream; the permits outlive it.
#ifndef TC_SCAN_BULK_SCAN_STATE_H_
#define TC_SCAN_BULK_SCAN_STATE_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "common/runtime/runtime.h"
#include "protocol/data_component.h"
#include "tc/scan/scan_ahead_budget.h"
#include "tc/scan/scan_cursor.h"
#include "tc/scan/scan_flow.h"
#include "tc/scan/scan_merge.h"

namespace deut::tc {

struct BulkScanState {
  // Returns whether it holds a permit, without which no stream may be opened.
  bool TryAcquirePermit(ScanPermits& permits, Runtime& runtime) {
    if (no_stream_before != MonotonicTime{} && runtime.Now() < no_stream_before) return false;
    return permit.TryAcquire(permits);
  }
  // Begins the bookkeeping for a stream that is about to be opened.
  void Begin(const ScanCursor& cursor, uint32_t batch_bytes) {
    flow.emplace(batch_bytes);
    stretch_ends.clear();
    stretches_passed = records_taken = 0;
    if (!cursor.AtBound()) stretch_ends.push_back(cursor.bound);
  }
  // Ends the DC's bulk scan.
  void End() {
    stream.reset();
    flow.reset();
    permit.Release();
  }
  // REQUIRES: there is no stream.
  void Reset() {
    permit.Release();
    stretch_ends.clear();
    stretches_passed = records_taken = 0;
    last_used = no_stream_before = MonotonicTime{};
  }

  // Estimates the bytes that are gathered and not taken. REQUIRES: Begin.
  uint64_t AheadBytes() const {
    const uint64_t stretch = stretches_passed == 0 ? std::max(flow->batch_bytes(), flow->taken_bytes())
                                                   : std::max<uint64_t>(flow->taken_bytes() / stretches_passed, 1);
    // The first stretch is taken in part. It counts as none, so that an answer does not end at a range's border merely
    // because nobody had looked beyond it.
    return stretch_ends.empty() ? 0 : stretch * (stretch_ends.size() - 1);
  }
  // Drops the ends of the stretches that the answer has passed.
  void DropPassedEnds(const ScanCursor& cursor, const DcAnswer& answer) {
    const auto passed = [&](const std::string& end) {
      if (answer.to_the_bound) return true;
      return !end.empty() && (cursor.ascending() ? end <= answer.covered : end >= answer.covered);
    };
    for (; !stretch_ends.empty() && passed(stretch_ends.front()); ++stretches_passed) stretch_ends.pop_front();
  }
  // Returns about how many bytes `records` more records take, if they are like those before. REQUIRES: some are taken.
  uint64_t BytesOf(uint64_t records) const { return records * (flow->taken_bytes() / records_taken + 1); }

  ScanPermit permit;  // held with the stream, which ends first
  std::unique_ptr<ScanStream> stream;
  std::optional<ScanFlow> flow;
  std::deque<std::string> stretch_ends;  // far ends of the stretches gathered and not passed, in scan order
  uint64_t stretches_passed = 0;
  uint64_t records_taken = 0;

  MonotonicTime last_used{};
  MonotonicTime no_stream_before{};  // the DC had no thread for a stream; no request for one before
};

}  // namespace deut::tc

#endif  // TC_SCAN_BULK_SCAN_STATE_H_

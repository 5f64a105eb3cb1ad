// ScanFlow: how far ahead of its reader a bulk scan of the DC is granted (S4; "Long scans" in
// tc/README.md).
//
// The window is the number of bytes that may be granted and not yet taken. It has to hold what the reader takes
//   during one round trip. If it is smaller the reader waits for each batch; a larger one is of no use.
// Two figures are measured. The round trip is the shortest time seen from a grant to the first batch under it. The
//   pace is what the reader took during the last round trip.
// The reader may have waited in that time although it took at least half of the window. Then the distance to the DC
//   holds it up, and the window doubles. Otherwise the window moves towards twice the bytes taken in a round trip. So
//   it does not grow for a scan that is held up by the reader or the DC.
// A scan begins with one batch, and never has more granted than it has taken already. So if the reader stops early,
//   at most half of the work was in vain.
// Thread-safety: none.
#ifndef TC_SCAN_SCAN_FLOW_H_
#define TC_SCAN_SCAN_FLOW_H_

#include <algorithm>
#include <cstdint>

#include "common/runtime/time.h"

namespace deut::tc {

class ScanFlow {
 public:
  static constexpr uint64_t kMaxWindow = 8 << 20;

  explicit ScanFlow(uint64_t batch_bytes) : batch_(batch_bytes), window_(batch_bytes) {}

  uint64_t window() const { return std::max(batch_, std::min(window_, taken_)); }
  uint64_t batch_bytes() const { return batch_; }
  // Bytes granted and not yet taken.
  uint64_t granted_untaken_bytes() const { return granted_untaken_; }
  // Returns what to grant now within `window`: nothing, or enough to be worth a message. Waiting for more would halve
  // the window.
  uint64_t BytesToGrant(uint64_t window) const {
    const uint64_t room = window - std::min(window, granted_untaken_);
    return granted_untaken_ == 0 || room >= std::max(std::min(batch_, window / 2), window / 8) ? room : 0;
  }
  uint64_t taken_bytes() const { return taken_; }
  Duration round_trip() const { return round_trip_; }

  void OnGrant(MonotonicTime now, uint64_t bytes) {
    if (!sampling_) {
      sampling_ = true;
      sampled_from_ = now;
      sample_behind_ = taken_ + granted_untaken_;
    }
    granted_untaken_ += bytes;
  }

  // `waited`: the time since the reader wanted the batch.
  void OnBatchTaken(MonotonicTime now, uint64_t bytes, Duration waited) {
    taken_ += bytes;
    granted_untaken_ -= std::min(granted_untaken_, bytes);
    if (sampling_ && taken_ > sample_behind_) {
      sampling_ = false;
      const Duration sample = now - sampled_from_;
      if (round_trip_ == Duration{0} || sample < round_trip_) round_trip_ = sample;
      if (period_from_ == MonotonicTime{}) period_from_ = sampled_from_;
    }
    if (round_trip_ == Duration{0}) return;
    period_bytes_ += bytes;
    period_waited_ = period_waited_ || waited > round_trip_ / 8;
    const Duration elapsed = now - period_from_;
    if (elapsed < round_trip_) return;
    const double per_round_trip = static_cast<double>(period_bytes_) * static_cast<double>(round_trip_.count()) /
                                  static_cast<double>(std::max<int64_t>(elapsed.count(), 1));
    if (period_waited_ && period_bytes_ >= window_ / 2) {
      window_ *= 2;
    } else {
      window_ = std::max(static_cast<uint64_t>(2 * per_round_trip),
                         window_ - window_ / 8);  // one slow period does not prove a slow reader
    }
    window_ = std::clamp(window_, batch_, std::max(kMaxWindow, batch_));
    period_from_ = now;
    period_bytes_ = 0;
    period_waited_ = false;
  }

 private:
  const uint64_t batch_;
  uint64_t window_;
  uint64_t granted_untaken_ = 0;
  uint64_t taken_ = 0;
  Duration round_trip_{0};
  bool sampling_ = false;
  MonotonicTime sampled_from_{};
  uint64_t sample_behind_ = 0;
  MonotonicTime period_from_{};
  uint64_t period_bytes_ = 0;
  bool period_waited_ = false;
};

}  // namespace deut::tc

#endif  // TC_SCAN_SCAN_FLOW_H_

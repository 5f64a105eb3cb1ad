// ScanFlow: how far ahead of its reader a bulk scan of the DC is granted (architecture, section 6: flow control of scans).
//
// The window is what may be granted and not yet taken. It has to hold what the reader takes during one round trip, or each batch is waited for; more
//   is of no use. Both are measured: the round trip from a grant to the first batch under it (the shortest seen), the pace from what was taken during
//   the last round trip. A reader that has waited in it though it took what the window held is held up by the distance: the window doubles. Else it
//   becomes twice what is taken in a round trip, so that one who is held up by the reader, or the DC, goes no further.
// A scan begins with one batch, and never has more granted than it has taken already: whoever stops early has at most half of the work done in vain.
// Thread-safety: none.
#ifndef TC_RECORD_MANAGER_SCAN_FLOW_H_
#define TC_RECORD_MANAGER_SCAN_FLOW_H_

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
  // Granted and not yet taken.
  uint64_t credit() const { return credit_; }
  // What is to be granted now within `window`: nothing, or enough to be worth a message. Waiting for more would halve the window.
  uint64_t ToGrant(uint64_t window) const {
    const uint64_t room = window - std::min(window, credit_);
    return credit_ == 0 || room >= std::max(std::min(batch_, window / 2), window / 8) ? room : 0;
  }
  uint64_t taken() const { return taken_; }
  Duration round_trip() const { return round_trip_; }

  void Granted(MonotonicTime now, uint64_t bytes) {
    if (!sampling_) {
      sampling_ = true;
      sampled_from_ = now;
      sample_behind_ = taken_ + credit_;
    }
    credit_ += bytes;
  }

  // `waited`: from when the batch was wanted.
  void Taken(MonotonicTime now, uint64_t bytes, Duration waited) {
    taken_ += bytes;
    credit_ -= std::min(credit_, bytes);
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
                         window_ - window_ / 8);  // one slow period is not yet a slow reader
    }
    window_ = std::clamp(window_, batch_, std::max(kMaxWindow, batch_));
    period_from_ = now;
    period_bytes_ = 0;
    period_waited_ = false;
  }

 private:
  const uint64_t batch_;
  uint64_t window_;
  uint64_t credit_ = 0;
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

#endif  // TC_RECORD_MANAGER_SCAN_FLOW_H_

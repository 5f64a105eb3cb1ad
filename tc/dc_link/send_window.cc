#include "tc/dc_link/send_window.h"

#include "common/base/check.h"

namespace deut::tc {

void SendWindow::Restart(Position applied, MonotonicTime now) {
  in_flight_.clear();
  bytes_ = 0;
  acknowledged_ = applied;
  last_progress_ = now;
}

void SendWindow::Sent(Position to, uint64_t bytes, MonotonicTime now) {
  DEUT_CHECK(in_flight_.empty() || to > in_flight_.back().to);
  if (in_flight_.empty()) last_progress_ = now;
  in_flight_.push_back(Batch{to, bytes});
  bytes_ += bytes;
}

void SendWindow::Acknowledge(Position applied, MonotonicTime now) {
  DEUT_CHECK(applied >= acknowledged_);
  acknowledged_ = applied;
  while (!in_flight_.empty() && in_flight_.front().to <= applied) {
    DEUT_CHECK(bytes_ >= in_flight_.front().bytes);
    bytes_ -= in_flight_.front().bytes;
    in_flight_.pop_front();
    last_progress_ = now;
  }
  DEUT_CHECK(!in_flight_.empty() || bytes_ == 0);
}

}  // namespace deut::tc

#include "tc/dc_link/send_window.h"

namespace deut::tc {

void SendWindow::Restart(MonotonicTime now) {
  in_flight_.clear();
  bytes_ = 0;
  last_progress_ = now;
}

void SendWindow::Sent(Position to, uint64_t bytes, MonotonicTime now) {
  if (in_flight_.empty()) last_progress_ = now;
  in_flight_.push_back(Batch{to, bytes});
  bytes_ += bytes;
}

void SendWindow::Acknowledge(Position applied, MonotonicTime now) {
  while (!in_flight_.empty() && in_flight_.front().to <= applied) {
    bytes_ -= in_flight_.front().bytes;
    in_flight_.pop_front();
    last_progress_ = now;
  }
}

}  // namespace deut::tc

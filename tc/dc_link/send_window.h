// SendWindow: the batches that were sent on the present log stream and are not acknowledged yet, oldest first. Their
// bytes are bounded, and a DC that acknowledges none of them for a while counts as unreachable.
// Thread-safety: one thread. Units: bytes of entries.
#ifndef TC_DC_LINK_SEND_WINDOW_H_
#define TC_DC_LINK_SEND_WINDOW_H_

#include <cstdint>
#include <deque>

#include "common/base/ids.h"
#include "common/runtime/time.h"

namespace deut::tc {

class SendWindow {
 public:
  SendWindow(uint64_t window_bytes, Duration stall_timeout)
      : window_bytes_(window_bytes), stall_timeout_(stall_timeout) {}

  // A new stream begins, at `applied`: nothing is in flight on it.
  void Restart(Position applied, MonotonicTime now);
  // A batch was sent that ends at `to`. REQUIRES: behind the end of the one before.
  void Sent(Position to, uint64_t bytes, MonotonicTime now);
  // Drops the batches that end at or before `applied`. REQUIRES: that never goes back on one stream, because a stream
  // belongs to one incarnation.
  void Acknowledge(Position applied, MonotonicTime now);

  // A batch that is larger than the window is sent alone.
  bool HasRoomFor(uint64_t bytes) const { return in_flight_.empty() || bytes_ + bytes <= window_bytes_; }
  bool empty() const { return in_flight_.empty(); }
  uint64_t bytes() const { return bytes_; }

  // True if batches are in flight, and none was acknowledged for the timeout.
  bool Stalled(MonotonicTime now) const { return !in_flight_.empty() && now >= stalls_at(); }
  // REQUIRES: not empty.
  MonotonicTime stalls_at() const { return last_progress_ + stall_timeout_; }

 private:
  struct Batch {
    Position to;
    uint64_t bytes;
  };

  const uint64_t window_bytes_;
  const Duration stall_timeout_;
  std::deque<Batch> in_flight_;
  uint64_t bytes_ = 0;
  Position acknowledged_;
  MonotonicTime last_progress_{};  // when a batch was acknowledged, or sent into an empty window
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_SEND_WINDOW_H_

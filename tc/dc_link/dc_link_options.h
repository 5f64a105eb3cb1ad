// DcLinkOptions: who this TC is, and the limits and times of its link to a DC. Plain values; defaults suit production.
#ifndef TC_DC_LINK_DC_LINK_OPTIONS_H_
#define TC_DC_LINK_DC_LINK_OPTIONS_H_

#include <cstdint>
#include <functional>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/time.h"

namespace deut::tc {

struct DcLinkOptions {
  TcId tc;
  TcEpoch epoch;       // durable before the link starts (X4, X5)
  uint64_t nonce = 0;  // drawn at TC start; not 0

  // Shipping. A batch is cut at the first entry that reaches batch_bytes; at most window_bytes are sent and not yet applied.
  uint64_t batch_bytes = 256 << 10;
  uint64_t window_bytes = 8 << 20;
  // A low-water record is appended to the log at most once per this time or this much log (X1).
  Duration low_water_period = milliseconds(10);
  uint64_t low_water_log_bytes = 1 << 20;

  // X7: puts are refused while the DC's free bytes, less what it has yet to apply, are below this.
  uint64_t reserve_bytes = 0;

  // S2: redo start is computed again after this much time, when there is something new to compute it from.
  Duration redo_start_period = seconds(1);

  // Reconnecting: pauses grow from min to max, each drawn between half and all of its length.
  Duration reconnect_min = milliseconds(50);
  Duration reconnect_max = seconds(1);
  // How long one Hello or one opening of the log stream may take before it is tried again.
  Duration connect_timeout = seconds(5);
  // A DC that has acknowledged nothing for this long, with batches in flight, is taken for unreachable: Hello again, resend.
  Duration stall_timeout = seconds(30);

  // Called once, on any thread, when this link can never serve again; it must not call back into the link, nor block on it.
  //   FENCED                      another TC has taken over: this one is a zombie and must refuse its clients (X5)
  //   CORRUPTION, WRONG_STATE     the DC is not the one, or not in the state, that the log says (X4, S2); nothing was deleted
  //   VERSION_MISMATCH            the peers speak different protocol versions
  //   IO_ERROR and others         the redo log cannot be read
  std::function<void(const Status&)> on_fatal;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_DC_LINK_OPTIONS_H_

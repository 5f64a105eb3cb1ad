// DcLinkOptions: the limits and times of a TC's link to a DC. Plain values; the defaults suit production.
#ifndef TC_DC_LINK_DC_LINK_OPTIONS_H_
#define TC_DC_LINK_DC_LINK_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/status.h"
#include "common/runtime/time.h"

namespace deut::tc {

struct DcLinkOptions {
  // For messages: what people call this DC, such as its address.
  std::string dc_name = "the DC";

  // Shipping. A batch is cut at the first entry that reaches batch_bytes; at most window_bytes are sent and not yet applied. Smaller
  // batches leave at once when the last one left at least `linger` ago, else when it has passed.
  uint64_t batch_bytes = 256 << 10;
  uint64_t window_bytes = 8 << 20;
  Duration linger = milliseconds(1);
  // S1: while a commit waits for low-water, rounds are asked for at this pace, ever slower up to the second figure.
  Duration round_min = milliseconds(1);
  Duration round_max = milliseconds(10);
  // X7: puts are refused while the DC's free bytes, less what it has yet to apply, are below this.
  uint64_t reserve_bytes = 64 << 20;

  // S2: redo start is computed at most this often, and logged when it has advanced by at least so much log.
  Duration redo_start_period = seconds(1);
  uint64_t redo_start_bytes = 4 << 20;

  // X4. How far the log is durable goes with every batch; while there is nothing to send, or only what S1 holds back, alone, at most this often.
  Duration tell_durable_period = seconds(1);

  // Reconnecting: pauses grow from min to max, each drawn between half and all of its length.
  Duration reconnect_min = milliseconds(50);
  Duration reconnect_max = seconds(1);
  // How long one Hello or one opening of the log stream may take before it is tried again.
  Duration connect_timeout = seconds(5);
  // A DC that has acknowledged or taken nothing for this long, with batches in flight, is taken for unreachable: Hello again, resend.
  Duration stall_timeout = seconds(10);

  // Called on the link's thread when a DC has been asked (HelloRequest::inquiry) and found to be the log's own, in a state that the log
  // can bring up to
  // date, and nothing was changed on either side yet: begins the log's life. None: it has begun. After RESOURCE_EXHAUSTED the DC is asked again, and
  // it is called again; another error ends the link.
  std::function<Status()> begin_log;

  // Called once, on any thread, when this link can never serve again; it must not call back into the link, nor block on it.
  //   FENCED                      another TC has taken over: this one is a zombie and must refuse its clients (X5)
  //   CORRUPTION, WRONG_STATE     the DC is not the one, or not in the state, that the log says (X4, S2); nothing was deleted
  //   VERSION_MISMATCH            the peers speak different protocol versions
  //   IO_ERROR and others         the redo log cannot be read
  std::function<void(const Status&)> on_fatal;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_DC_LINK_OPTIONS_H_

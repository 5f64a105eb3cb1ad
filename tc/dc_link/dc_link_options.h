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
  // The operators' name of this DC in messages, such as its address.
  std::string dc_name = "the DC";

  // Shipping. A batch is cut at the first entry that reaches batch_bytes. At most window_bytes are sent and not yet
  // applied. A smaller batch leaves at once if the last one left at least `linger` ago, otherwise when `linger` has
  // passed.
  uint64_t batch_bytes = 256 << 10;
  uint64_t window_bytes = 8 << 20;
  Duration linger = milliseconds(1);
  // S1: while a commit waits for low-water, rounds of low-water are requested with this pause. The pause grows up to
  // the second figure.
  Duration round_min = milliseconds(1);
  Duration round_max = milliseconds(10);
  // X7: puts are refused while the DC's free bytes, less the bytes that it has yet to apply, are below this.
  uint64_t reserve_bytes = 64 << 20;

  // S2: the redo start is computed at most this often. It is logged when it has advanced by at least redo_start_bytes
  // of log.
  Duration redo_start_period = seconds(1);
  uint64_t redo_start_bytes = 4 << 20;

  // X4. Every batch carries the durable LSN. While there is nothing to send, or S1 holds everything back, an empty
  // batch carries it, at most this often.
  Duration tell_durable_period = seconds(1);

  // Reconnecting: pauses grow from min to max. Each is drawn between half and all of its length.
  Duration reconnect_min = milliseconds(50);
  Duration reconnect_max = seconds(1);
  // Limit of one Hello, or of one opening of the log stream, before it is retried.
  Duration connect_timeout = seconds(5);
  // A DC that acknowledges or accepts nothing for this long, with batches in flight, counts as unreachable: the link
  // says Hello again and resends.
  Duration stall_timeout = seconds(10);

  // Begins the new TC epoch of the log. Called on the link's thread when a DC has answered an inquiry
  // (HelloRequest::inquiry) and passed the checks of peer_check.h. Nothing has changed on either side yet. Null: the
  // epoch has begun already. After RESOURCE_EXHAUSTED the link asks the DC again and repeats the call. Another error
  // ends the link.
  std::function<Status()> begin_log;

  // Called once, on any thread, when this link can never serve again. It must not call back into the link, nor block
  // on it.
  //   FENCED                      another TC has taken over: this one is a zombie and must refuse its clients (X5)
  //   CORRUPTION, WRONG_STATE     the DC is not the one, or not in the state, that the log says (X4, S2); nothing was
  //   deleted
  //   VERSION_MISMATCH            the peers speak different protocol versions
  //   IO_ERROR and others         the redo log cannot be read
  std::function<void(const Status&)> on_fatal;
};

}  // namespace deut::tc

#endif  // TC_DC_LINK_DC_LINK_OPTIONS_H_

// ReplayConnection opens a new connection to an HTTP/2 server without TLS. It sends again, frame by frame, the bytes
// that a client sent over an old one (FaultProxy::Recorded). Such bytes are self-contained: header tables, stream
// numbers and calls begin anew with each connection. The server sees a second peer that repeats, late, everything
// that the first one sent.
//
// Pings are left out. Answers are parsed only for their windows (a server ends a connection that sends more than its
// window), counted, and thrown away. The call blocks until everything is sent and no answer arrives for `linger`, or
// until the server hangs up. It also ends if the server grants no window, or sends no answer at all, for `patience`.
// Thread-safety: a function without state. It trusts no byte: the server's answers may contain anything.
#ifndef INTEGRATION_HARNESS_STREAM_REPLAY_H_
#define INTEGRATION_HARNESS_STREAM_REPLAY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/runtime/runtime.h"

namespace deut::testing {

struct ReplayOptions {
  Duration patience = milliseconds(500);
  Duration linger = milliseconds(20);
};

struct ReplayReport {
  bool connected = false;
  bool complete = false;        // every frame was sent
  uint64_t frames = 0;          // number of frames sent
  uint64_t data_bytes = 0;      // bytes of data frames sent
  uint64_t answered_bytes = 0;  // bytes of data frames received
  uint64_t ended_streams = 0;   // calls that the server ended or reset
};

ReplayReport ReplayConnection(uint16_t server_port, std::string_view to_server, const ReplayOptions& options = {});

// Returns the number of log streams that the recorded bytes open (calls of ApplyLog with a literal name; indexed
// names are not counted). 0: the connection carries none.
uint64_t LogStreamsIn(std::string_view to_server);

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_STREAM_REPLAY_H_

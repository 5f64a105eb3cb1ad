// ReplayConnection: opens a new connection to a server of HTTP/2 without TLS, and sends once more, frame by frame, what a client has sent
// over an old one (FaultProxy::Recorded). Such bytes are complete in themselves: header tables, stream numbers and calls begin anew
// with the connection. To the server it is a second peer that says, late, everything the first one said.
//
// Pings are left out. Answers are read for their windows only (a server ends a connection that sends more than it has room for), counted,
// and thrown away. Blocks; ends when all is sent and nothing more is answered for `linger`, when the server hangs up, or when it gives no
// room, or no answer at all, for `patience`.
// Thread-safety: a function without state. It reads nothing but bytes: what the server answers may be anything.
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
  uint64_t frames = 0;          // sent
  uint64_t data_bytes = 0;      // in frames of data, sent
  uint64_t answered_bytes = 0;  // in frames of data, received
  uint64_t ended_streams = 0;   // calls that the server has ended or reset
};

ReplayReport ReplayConnection(uint16_t server_port, std::string_view to_server, const ReplayOptions& options = {});

// How many log streams the recorded bytes open (calls of ApplyLog whose name is spelt out; a name that is referred to is not counted).
// 0: the connection carries none.
uint64_t LogStreamsIn(std::string_view to_server);

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_STREAM_REPLAY_H_

// FaultProxy: a TCP proxy between two processes of a test, whose faults can be changed while connections are open. It
// also records the bytes that clients send, so that they can be sent again (stream_replay.h).
//
//   FaultProxy proxy(port, "127.0.0.1:7702", {});
//   proxy.SetFlow(Direction::kToServer, {.delay = milliseconds(1)});
//   proxy.SetPartitioned(true);  ...  proxy.Heal();
//
// Faults of a flow apply to all connections, open and new ones, until they are changed:
//   delay       every byte arrives later by this time; the order stays
//   bandwidth   limit for all connections of the direction together
//   drop        bytes are read and thrown away. A connection that has lost bytes is damaged: Heal resets it, so that its peers find out
//   partition   bytes stay where they are and arrive after the heal, as if TCP had sent them again; no connection is accepted meanwhile
// Other faults happen once, to the connections that are open:
//   Reset       both ends get a RST
//   HalfOpen    one end gets a RST, the other learns nothing: the proxy throws its bytes away until it gives up by itself
// One thread with epoll owns the state of all connections. It reads at most kMaxQueuedBytes ahead per connection and
// direction.
// Thread-safety: any thread may call all methods; a change is in force when the call returns. Ownership: the
// destructor joins the thread and closes all connections. Errors: end the test process (no port).
#ifndef INTEGRATION_HARNESS_FAULT_PROXY_H_
#define INTEGRATION_HARNESS_FAULT_PROXY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/runtime/runtime.h"

namespace deut::testing {

enum class Direction : uint8_t { kToServer, kToClient };
enum class End : uint8_t { kClient, kServer };

struct FlowFaults {
  bool drop = false;
  Duration delay{0};
  uint64_t bytes_per_second = 0;  // 0 = no limit
};

// The bytes that the client of one connection has sent.
struct RecordedConnection {
  uint64_t number = 0;  // counts from 1 in the order of acceptance
  bool open = false;    // the connection is still open
  bool whole = true;    // false: only the first bytes were kept
  std::string to_server;
};

struct FaultProxyOptions {
  // Keeps the first record_bytes to the server of each connection, for the latest record_connections connections.
  uint64_t record_bytes = 0;
  uint32_t record_connections = 16;
};

struct FaultProxyCounters {
  uint64_t accepted = 0;
  uint64_t open = 0;                      // connections whose client end is open
  uint64_t refused = 0;                   // accepted, but the server could not be reached, so they got a RST
  uint64_t to_server = 0, to_client = 0;  // bytes delivered
  uint64_t dropped = 0;                   // bytes thrown away
  uint64_t resets = 0;                    // connections reset by a fault
};

class FaultProxy {
 public:
  // Listens on 127.0.0.1:`port` and connects to 127.0.0.1:`server_port` for each connection that it accepts.
  FaultProxy(uint16_t port, uint16_t server_port, FaultProxyOptions options);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  // Connections accepted from now on go to this port.
  void SetServer(uint16_t server_port);
  void SetFlow(Direction direction, FlowFaults faults);
  void SetPartitioned(bool partitioned);
  // Each returns the number of connections that it has hit.
  uint64_t Reset();
  uint64_t HalfOpen(End told);
  // Removes all faults of flows and the partition. Damaged connections are reset; half-open ones stay half open.
  void Heal();

  FaultProxyCounters Counters();
  // Returns the latest recorded connections, oldest first.
  std::vector<RecordedConnection> Recorded();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_FAULT_PROXY_H_

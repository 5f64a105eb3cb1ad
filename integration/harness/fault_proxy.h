// FaultProxy: a TCP proxy between two processes of a test, whose faults can be changed while connections are open. It also records what
// clients have sent, so that it can be sent once more (stream_replay.h).
//
//   FaultProxy proxy(port, "127.0.0.1:7702", {});
//   proxy.SetFlow(Direction::kToServer, {.delay = milliseconds(1)});
//   proxy.SetPartitioned(true);  ...  proxy.Heal();
//
// Faults. Those of a flow hold for all connections, open and new ones, until they are changed:
//   delay       every byte arrives so much later; order stays
//   bandwidth   all connections of the direction together
//   drop        bytes are taken and thrown away. A connection that has lost some is damaged: Heal resets it, as its peers find out at last
//   partition   bytes stay where they are and arrive after the heal, as TCP repeats them; nobody is accepted meanwhile
// and those that happen once, to the connections that are open:
//   Reset       both ends get a RST
//   HalfOpen    one end gets a RST, the other is never told: what it sends is thrown away, until it gives up by itself
// One thread with epoll; all connections' state is its own. At most kMaxQueuedBytes are taken in advance per connection and direction.
// Thread-safety: all methods from any thread; a change is in force when the call returns. Ownership: joins its thread and closes
// everything at its end. Errors: end the test process (no port).
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
  uint64_t bytes_per_second = 0;  // 0 = without limit
};

// What one connection's client has sent.
struct RecordedConnection {
  uint64_t number = 0;  // counts from 1 in the order of acceptance
  bool open = false;    // still
  bool whole = true;    // false: only the first bytes were kept
  std::string to_server;
};

struct FaultProxyOptions {
  // Of each connection so many bytes to the server are kept, of so many connections (the latest).
  uint64_t record_bytes = 0;
  uint32_t record_connections = 16;
};

struct FaultProxyCounters {
  uint64_t accepted = 0;
  uint64_t open = 0;                      // whose client end is open
  uint64_t refused = 0;                   // accepted, but the server could not be reached: they got a RST
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

  // Connections that are accepted from now on go to this port.
  void SetServer(uint16_t server_port);
  void SetFlow(Direction direction, FlowFaults faults);
  void SetPartitioned(bool partitioned);
  // Each answers how many connections it has hit.
  uint64_t Reset();
  uint64_t HalfOpen(End told);
  // No flow has a fault and there is no partition; damaged connections are reset, those that are half open stay so.
  void Heal();

  FaultProxyCounters Counters();
  // The latest connections that were recorded, oldest first.
  std::vector<RecordedConnection> Recorded();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_FAULT_PROXY_H_

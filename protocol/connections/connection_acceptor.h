// ConnectionAcceptor: accepts the connections of a server on threads of its own. It hands them to gRPC within caps
// (connection_table.h) and at the pace of their handshakes (handshake_pace.h).
//
// Caps: a connection beyond a cap is closed at once and counted. At most one such line per second is logged.
// Shortage: it never ends the acceptor. When accept fails because there is no descriptor, the acceptor releases a
// reserved one, accepts the connection, and closes it. So the peer learns of the shortage and the queue moves on. After
// any other failure the acceptor pauses and retries.
// Watching: the acceptor keeps a duplicate of each connection's descriptor, so a connection takes two
// (DescriptorNeeds::per_connection). gRPC shuts a socket down before it closes it. The duplicate reports that, and also
// a reset by the peer; the connection is then no longer counted.
// Priority: the threads give way to those that serve the connections that exist. So a flood of new ones waits in the
// system's queue, and does not take the processors from calls.
// Thread-safety: any thread may call counts and CloseConnections; one thread calls the rest. Ownership: owns sockets,
// duplicates and threads.
#ifndef PROTOCOL_CONNECTIONS_CONNECTION_ACCEPTOR_H_
#define PROTOCOL_CONNECTIONS_CONNECTION_ACCEPTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/descriptor.h"
#include "common/base/status.h"
#include "common/observe/log_pace.h"
#include "common/runtime/runtime.h"
#include "protocol/connections/connection_table.h"
#include "protocol/connections/endpoint.h"
#include "protocol/connections/handshake_pace.h"
#include "protocol/connections/listening_sockets.h"

namespace deut {

struct ConnectionCounts {
  uint64_t accepted = 0;               // handed to gRPC so far
  uint64_t open = 0;                   // open now, including those that wait
  uint64_t waiting = 0;                // wait to be handed to gRPC
  uint64_t refused = 0;                // closed at once because of --max_connections
  uint64_t refused_of_peer = 0;        // closed at once because of --max_connections_per_peer
  uint64_t refused_no_descriptor = 0;  // closed at once because there was no descriptor
  uint64_t silent = 0;                 // shut down because the table was almost full and the peer had sent nothing
  uint64_t errors = 0;                 // failed calls of accept
};

class ConnectionAcceptor {
 public:
  // Takes over a connected, non-blocking socket. The handshake counts as in flight while `slot` exists. Only one thread
  // calls it.
  using HandOver = std::function<void(Descriptor socket, std::shared_ptr<HandshakePace::Slot> slot)>;

  // Listens, but accepts nothing before Start. The errors are those of ListeningSockets.
  static Result<std::unique_ptr<ConnectionAcceptor>> Create(Runtime& runtime, const Address& address,
                                                            const ConnectionLimits& limits);
  ~ConnectionAcceptor();
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  const Address& address() const { return sockets_.address(); }
  void Start(HandOver hand_over);
  // Stops listening. Once it has returned, no more connections are handed over, and those that waited are closed. The
  // others stay open and watched until the object is destroyed.
  void StopAccepting();

  // Shuts down all connections that are open now.
  void CloseConnections() { table_.ShutDownAll(); }

  ConnectionCounts counts() const;

 private:
  ConnectionAcceptor(Runtime& runtime, ListeningSockets sockets, const ConnectionLimits& limits);
  Status Prepare();
  void Accept(int poll);
  void AcceptAll(int listener);
  void Admit(Descriptor socket, const PeerKey& peer);
  void OnFailure(int listener, int error);
  bool RefuseOne(int listener);
  void Pause(Duration pause);
  void HandOverAll();
  void Watch();
  bool stopping() const { return stopping_.load(std::memory_order_seq_cst) != 0; }

  Runtime& runtime_;
  ListeningSockets sockets_;
  ConnectionTable table_;
  const std::shared_ptr<HandshakePace> pace_;
  HandOver hand_over_;
  std::vector<Descriptor> polls_;  // one for each accepting thread
  Descriptor watch_poll_;
  Descriptor stop_accepting_, stop_watching_;  // eventfds
  Mutex reserve_mutex_;
  Descriptor reserve_ DEUT_GUARDED_BY(reserve_mutex_);
  std::atomic<uint32_t> stopping_{0};
  std::atomic<uint64_t> accepted_{0}, refused_{0}, refused_of_peer_{0}, refused_no_descriptor_{0}, silent_{0},
      errors_{0};
  LogPace refusal_pace_{seconds(1)}, error_pace_{seconds(1)};
  std::vector<std::unique_ptr<Thread>> accepting_;
  std::unique_ptr<Thread> handing_over_;
  std::unique_ptr<Thread> watching_;
};

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_CONNECTION_ACCEPTOR_H_

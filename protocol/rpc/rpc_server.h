// RpcServer: a gRPC server as both daemons start it. It applies the address and TLS rules of endpoint.h and tls.h. It
// bounds the resources that peers can take (connections, messages, metadata, streams, memory, threads). It has the
// standard health service (grpc.health.v1).
// The server checks the rights of peers for every call of every service, health included (authorization.h). Refused
// peers are logged at a limited rate. Health answers NOT_SERVING from the start; SetServing changes it.
// Thread-safety: any thread may call any method; Shutdown is called once. Ownership: borrows the services, which
// outlive it.
#ifndef PROTOCOL_RPC_RPC_SERVER_H_
#define PROTOCOL_RPC_RPC_SERVER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "protocol/connections/authorization.h"
#include "protocol/connections/connection_acceptor.h"
#include "protocol/connections/endpoint.h"
#include "protocol/connections/tls_keys.h"
#include "protocol/limits.h"
#include "protocol/rpc/health_service.h"
#include "protocol/rpc/rpc_executor.h"
#include "protocol/rpc/unknown_calls.h"

namespace deut {

// The names in the certificate with which a peer has authenticated itself: its URIs and DNS names. If it has no
// alternative name of any kind: its common name. Empty without TLS.
std::vector<std::string> PeerNames(const grpc::AuthContext& context);

// Returns the memory by which a process bounds connections and messages of its peers: `limit`, which the process may use,
// or twice its budget if that is less. (A budget that nobody has set is half of the limit.) Some of the largest messages
// fit in any case. `budget`: that of --memory; without a value, or 0: it does not count.
constexpr uint64_t MemoryBesideBudget(uint64_t limit, std::optional<uint64_t> budget) {
  if (budget.value_or(0) == 0) return limit;
  return std::min<uint64_t>(limit, std::max<uint64_t>(2 * std::min(*budget, UINT64_MAX / 2), 32 * kMaxMessageBytes));
}

// Returns the most memory for messages and connections of peers in a process that may use `limit` bytes: 256 MiB, or an
// eighth of them. gRPC notices late that it has passed its bound, and the allocator keeps freed pages for a while, so the
// resident memory can reach a multiple.
constexpr size_t PeerMemoryBytes(uint64_t limit) { return std::min<uint64_t>(256 << 20, limit / 8); }

// Returns how many connections a process that may use `limit` bytes serves by default: at most 16,384, and not more than
// an eighth of the bytes holds if all are idle. The buffers of TLS do not count in PeerMemoryBytes. So without this bound
// a client with a certificate could use up the memory with connections alone (integration/hostile/README.md, Figures).
constexpr uint64_t DefaultMaxConnections(uint64_t limit, bool tls) {
  constexpr uint64_t kIdleBytes = 24 << 10;
  constexpr uint64_t kIdleTlsBytes = 192 << 10;
  return std::min<uint64_t>(16'384, limit / 8 / (tls ? kIdleTlsBytes : kIdleBytes));
}

struct RpcServerOptions {
  Address listen;
  std::shared_ptr<TlsKeys> tls = nullptr;                 // null: without TLS
  std::shared_ptr<const AccessControl> access = nullptr;  // with TLS: the rights of peers
  bool insecure = false;
  // The most threads of the executor. If a service has synchronous methods, also the most threads of gRPC: calls beyond
  // them are refused with RESOURCE_EXHAUSTED.
  int max_threads = 1024;
  // The most memory for messages and connections in flight.
  size_t memory_bytes = PeerMemoryBytes(UINT64_MAX);
  ConnectionLimits connections = {};
  // A connection is closed if its TLS handshake and HTTP/2 settings take longer.
  Duration handshake_timeout = seconds(10);
  // A peer that does not take health's answer for this long loses its call.
  Duration stuck_peer = seconds(30);
};

// A service that lets an executor run all or some of its streams.
class ExecutedService {
 public:
  virtual ~ExecutedService() = default;
  // Asks for the first call of each stream. The executor outlives them.
  virtual void Serve(RpcExecutor& executor) = 0;
};

class RpcServer {
 public:
  // The executor runs from now on, and ends with the server. There is no address yet. Events of other streams of this
  // process may use the executor, too.
  RpcServer(Runtime& runtime, const RpcServerOptions& options);
  // Creates and starts a server.
  static Result<std::unique_ptr<RpcServer>> Start(Runtime& runtime, const RpcServerOptions& options,
                                                  const std::vector<grpc::Service*>& services);
  ~RpcServer();  // calls Shutdown with a deadline of now
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Called once. A service that is also an ExecutedService is served as one. INVALID_ARGUMENT by the rule of
  // endpoint.h. Other errors name the address, and say why the server cannot listen there.
  Status Start(const std::vector<grpc::Service*>& services);

  // With the port that the system chose if port 0 was requested. REQUIRES, also of the methods below: Start has
  // returned OK.
  const Address& address() const { return address_; }

  void SetServing(bool serving);

  ConnectionCounts connections() const { return acceptor_->counts(); }

  RpcExecutor* executor() { return executor_.get(); }

  // Ends all present connections, as a failure of the network would. Peers may connect again.
  void CloseConnections() { acceptor_->CloseConnections(); }

  // Takes no new calls. Waits for running ones to end until the deadline, then cancels them and waits until their
  // handlers have returned.
  void Shutdown(Deadline deadline);

 private:
  class NameCheck;

  Runtime& runtime_;
  const RpcServerOptions options_;
  std::unique_ptr<grpc::ServerBuilder> builder_;  // until Start
  Address address_;
  // gRPC reads the in-memory files of TlsKeys again and again. So they must not be closed, and their numbers reused,
  // while the server lives.
  std::shared_ptr<TlsKeys> tls_;
  HealthService health_;
  UnknownCalls unknown_calls_;
  const std::unique_ptr<RpcExecutor> executor_;
  // Declared before the server, so that its watch sees the server close the connections.
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> hand_over_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_SERVER_H_

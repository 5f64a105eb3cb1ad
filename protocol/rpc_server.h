// RpcServer: a gRPC server as both daemons start it: address and TLS rules of endpoint.h and tls.h, bounds on what peers may make it hold
// (connections, messages, metadata, streams, memory, threads), and the standard health service (grpc.health.v1).
// Rights of peers are checked for every call of every service, health included (authorization.h). Refused peers are logged, some at a time.
// Health answers NOT_SERVING from the start; SetServing changes it.
// Thread-safety: all methods from any thread; Shutdown once. Ownership: borrows the services, which outlive it.
#ifndef PROTOCOL_RPC_SERVER_H_
#define PROTOCOL_RPC_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "protocol/authorization.h"
#include "protocol/connection_acceptor.h"
#include "protocol/endpoint.h"
#include "protocol/health_service.h"
#include "protocol/rpc_executor.h"
#include "protocol/tls_keys.h"

namespace deut {

// The names of the certificate with which a peer has authenticated itself: its URIs and DNS names; the common name if it has no alternative name of
// any kind. None without TLS.
std::vector<std::string> PeerNames(const grpc::AuthContext& context);

struct RpcServerOptions {
  Address listen;
  std::shared_ptr<TlsKeys> tls = nullptr;                 // null: without TLS
  std::shared_ptr<const AccessControl> access = nullptr;  // with TLS: what peers may do
  bool insecure = false;
  // Of the executor; and of gRPC, if a service has synchronous methods: calls of those beyond them are refused with RESOURCE_EXHAUSTED.
  int max_threads = 1024;
  // Of messages and connections in flight.
  size_t memory_bytes = 256 << 20;
  ConnectionLimits connections = {};
  // A connection whose TLS handshake and HTTP/2 settings are not complete by then is closed.
  Duration handshake_timeout = seconds(10);
  // A peer that does not take health's answer for this long loses its call.
  Duration stuck_peer = seconds(30);
};

// A service whose streams, or some of them, are run by an executor.
class ExecutedService {
 public:
  virtual ~ExecutedService() = default;
  // Asks for the first call of each. The executor outlives them.
  virtual void Serve(RpcExecutor& executor) = 0;
};

class RpcServer {
 public:
  // Its executor runs from now on, and ends with it; there is no address yet. Events of other streams of this process can go there, too.
  RpcServer(Runtime& runtime, const RpcServerOptions& options);
  // Created and started.
  static Result<std::unique_ptr<RpcServer>> Start(Runtime& runtime, const RpcServerOptions& options,
                                                  const std::vector<grpc::Service*>& services);
  ~RpcServer();  // Shutdown without patience
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Once. A service that is an ExecutedService, too, is served as such.
  // INVALID_ARGUMENT by the rule of endpoint.h; otherwise why the address cannot be had, naming it.
  Status Start(const std::vector<grpc::Service*>& services);

  // With the port that the system chose if 0 was asked for. REQUIRES, also of what follows: Start was OK.
  const Address& address() const { return address_; }

  void SetServing(bool serving);

  ConnectionCounts connections() const { return acceptor_->counts(); }

  RpcExecutor* executor() { return executor_.get(); }

  // Ends all connections of now, as a failure of the network would. Peers may connect again.
  void CloseConnections() { acceptor_->CloseConnections(); }

  // Takes no new calls, waits for running ones to end until the deadline, then cancels them and waits until their handlers have returned.
  void Shutdown(Deadline deadline);

 private:
  class NameCheck;

  Runtime& runtime_;
  const RpcServerOptions options_;
  std::unique_ptr<grpc::ServerBuilder> builder_;  // until Start
  Address address_;
  // gRPC reads its files in memory again and again: they must not be closed, and their numbers given to others, while the server lives.
  std::shared_ptr<TlsKeys> tls_;
  HealthService health_;
  const std::unique_ptr<RpcExecutor> executor_;
  // Declared before the server: its watch sees the server close the connections.
  std::unique_ptr<ConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> hand_over_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_SERVER_H_

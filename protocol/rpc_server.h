// RpcServer: a gRPC server as both daemons start it: address and TLS rules of endpoint.h and tls.h, bounds on what peers may make it hold
// (messages, metadata, streams, memory, threads), and the standard health service (grpc.health.v1).
// Names of peers are checked for every call of every service, health included.
// Health answers NOT_SERVING from the start; SetServing changes it.
// Thread-safety: all methods from any thread; Shutdown once. Ownership: borrows the services, which outlive it.
#ifndef PROTOCOL_RPC_SERVER_H_
#define PROTOCOL_RPC_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server.h"
#include "protocol/endpoint.h"
#include "protocol/health_service.h"
#include "protocol/tls.h"

namespace deut {

struct RpcServerOptions {
  Address listen;
  std::shared_ptr<const TlsIdentity> tls;  // null: without TLS
  bool insecure = false;
  // A stream or call in progress holds a thread; more are refused with RESOURCE_EXHAUSTED.
  int max_threads = 1024;
  // Of messages and connections in flight.
  size_t memory_bytes = 256 << 20;
};

class RpcServer {
 public:
  // INVALID_ARGUMENT by the rule of endpoint.h; otherwise why the address cannot be had, naming it.
  static Result<std::unique_ptr<RpcServer>> Start(Runtime& runtime, const RpcServerOptions& options,
                                                  const std::vector<grpc::Service*>& services);
  ~RpcServer();  // Shutdown without patience
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // With the port that the system chose if 0 was asked for.
  const Address& address() const { return address_; }

  void SetServing(bool serving);

  // How often who waits for new calls has rested (health_service.h).
  uint64_t rests() const { return health_.rests(); }

  // Takes no new calls, waits for running ones to end until the deadline, then cancels them and waits until their handlers have returned.
  void Shutdown(Deadline deadline);

 private:
  class NameCheck;

  RpcServer(Runtime& runtime, Address address) : runtime_(runtime), address_(std::move(address)), health_(runtime) {}

  Runtime& runtime_;
  Address address_;
  HealthService health_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_SERVER_H_

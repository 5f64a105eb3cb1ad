// GrpcTransactionServiceServer: the server side of transaction_service.proto: checks what comes in and forwards it to a
// TransactionService. An executor runs all of it (rpc_executor.h), so a session or call holds a thread only while it works; streams and
// calls are limited by peer (service_options.h).
// A client that does not take its answers for `stuck_peer` loses its session or call (stream_watchdog.h). Messages, streams, threads: rpc_server.h.
// One-shot transactions on a stream of theirs hold up each other wherever the service waits on another Runtime than a TellingRuntime
// (one_shot_workers.h).
// Thread-safety: the executor's threads call it. Ownership: the service outlives it; the server that it is registered with ends before it.
#ifndef PROTOCOL_GRPC_TRANSACTION_SERVICE_SERVER_H_
#define PROTOCOL_GRPC_TRANSACTION_SERVICE_SERVER_H_

#include <memory>

#include "common/runtime/runtime.h"
#include "grpcpp/impl/service_type.h"
#include "protocol/authorization.h"
#include "protocol/service_options.h"
#include "protocol/transaction_service.h"

namespace deut {

class GrpcTransactionServiceServer {
 public:
  // `access`: the rights of clients to tables, by their certificates; null: everybody may everything.
  GrpcTransactionServiceServer(Runtime& runtime, TransactionService& service, const RpcServiceOptions& options = {},
                               std::shared_ptr<const AccessControl> access = nullptr);
  ~GrpcTransactionServiceServer();
  GrpcTransactionServiceServer(const GrpcTransactionServiceServer&) = delete;
  GrpcTransactionServiceServer& operator=(const GrpcTransactionServiceServer&) = delete;

  // For RpcServer::Start.
  grpc::Service* service();

 private:
  class Service;
  const std::unique_ptr<Service> service_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_TRANSACTION_SERVICE_SERVER_H_

// GrpcTransactionServiceServer: the server side of transaction_service.proto. It checks requests and forwards them to a
// TransactionService. An executor runs all of it (rpc_executor.h), so a session or call holds a thread only while it
// works. Each stream of one-shot transactions has a scheduler, which decides the thread and the order of its calls
// (one_shot_scheduler.h).
// Bounds: streams and calls are limited per peer (service_options.h). A client that takes no answers for `stuck_peer`
// loses its session or call (stream_watchdog.h). For messages, streams and threads: rpc_server.h.
// Thread-safety: the executor's threads call it. Ownership: the service outlives it; the server that it is registered
// with ends before it.
#ifndef PROTOCOL_TRANSACTIONS_GRPC_TRANSACTION_SERVICE_SERVER_H_
#define PROTOCOL_TRANSACTIONS_GRPC_TRANSACTION_SERVICE_SERVER_H_

#include <memory>

#include "common/runtime/runtime.h"
#include "grpcpp/impl/service_type.h"
#include "protocol/connections/authorization.h"
#include "protocol/rpc/service_options.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/one_shot_scheduler.h"

namespace deut {

class GrpcTransactionServiceServer {
 public:
  // `one_shots` makes the schedulers of streams.
  // `access`: the rights of clients to tables, by their certificates. Null: every client has all rights.
  GrpcTransactionServiceServer(Runtime& runtime, TransactionService& service, OneShotSchedulerFactory one_shots,
                               const RpcServiceOptions& options = {},
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

#endif  // PROTOCOL_TRANSACTIONS_GRPC_TRANSACTION_SERVICE_SERVER_H_

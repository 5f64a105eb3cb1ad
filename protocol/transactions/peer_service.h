// PeerService: a transaction service restricted to the rights that a client has by its certificate (rights_service.h),
// for one stream or call. Thread-safety: any thread may call For; a PeerService is as thread-safe as its service.
// Ownership: borrows the service; a PeerServices outlives the objects that it makes.
#ifndef PROTOCOL_TRANSACTIONS_PEER_SERVICE_H_
#define PROTOCOL_TRANSACTIONS_PEER_SERVICE_H_

#include <memory>
#include <optional>
#include <utility>

#include "grpcpp/server_context.h"
#include "protocol/connections/authorization.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/rights_service.h"

namespace deut {

class PeerService {
 public:
  PeerService(TransactionService& service, const AccessControl* access, const grpc::ServerContextBase& context)
      : service_(service) {
    if (access != nullptr) limited_.emplace(service, *access, PeerNames(*context.auth_context()));
  }
  TransactionService& get() { return limited_.has_value() ? *limited_ : service_; }
  TransactionService* operator->() { return &get(); }

 private:
  TransactionService& service_;
  std::optional<RightsService> limited_;
};

class PeerServices {
 public:
  // `access`: null means that every client has all rights.
  PeerServices(TransactionService& service, std::shared_ptr<const AccessControl> access)
      : service_(service), access_(std::move(access)) {}

  std::unique_ptr<PeerService> For(const grpc::ServerContextBase& context) {
    return std::make_unique<PeerService>(service_, access_.get(), context);
  }

 private:
  TransactionService& service_;
  const std::shared_ptr<const AccessControl> access_;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_PEER_SERVICE_H_

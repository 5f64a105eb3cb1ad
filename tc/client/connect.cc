#include "tc/client/connect.h"

#include <memory>
#include <string>
#include <utility>

#include "common/io/storage.h"
#include "protocol/connections/endpoint.h"
#include "protocol/connections/tls_keys.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/transactions/grpc_transaction_service.h"

namespace deut {

Result<std::unique_ptr<Client>> Client::Connect(const std::string& target, const ConnectOptions& options) {
  Runtime& runtime = options.client.runtime != nullptr ? *options.client.runtime : RealRuntime();
  DEUT_ASSIGN_OR_RETURN(const Address address, Address::Parse("target", target));
  std::shared_ptr<TlsKeys> tls;
  if (options.tls.any()) {
    DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<Storage> storage, NewSystemStorage(IoKind::kPosix, runtime));
    DEUT_ASSIGN_OR_RETURN(tls, TlsKeys::Load(runtime, options.tls, *storage));
  }
  DEUT_ASSIGN_OR_RETURN(
      std::shared_ptr<const RpcPeer> peer,
      RpcPeer::Create("the transaction component", "target", address, std::move(tls), options.insecure));
  auto service = std::make_unique<GrpcTransactionService>(
      runtime, std::move(peer), GrpcTransactionServiceOptions{.connections = options.connections});
  OneShotChannel* const one_shots = service->one_shots();
  return FromService(std::move(service), one_shots, options.client);
}

}  // namespace deut

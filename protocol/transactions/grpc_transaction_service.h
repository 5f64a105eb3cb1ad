// GrpcTransactionService: a transaction component in another process, for its clients. The contract is that of
// transaction_service.h, with these additional errors:
//   UNAVAILABLE        there is no connection, or it broke. This call committed nothing
//   DEADLINE_EXCEEDED  no answer in time. This call committed nothing
//   OUTCOME_UNKNOWN    as the two above, but the commit (or one-shot) of a transaction that writes was in flight
//   PERMISSION_DENIED  one side refuses the other's certificate
// After one of these the session is closed, and the TC aborts its transaction. Every further call answers UNAVAILABLE,
// and the client needs a new session. The TC knows each call's deadline and answers by it. The client waits
// kAnswerGrace (grpc_session.h) longer. So an answer that is only a little late still arrives, and the session stays
// open.
// A call with more operations than one message can hold is split. A one-shot cannot be split, so it is refused
// (INVALID_ARGUMENT names the limit).
// Thread-safety: as in transaction_service.h. Ownership: sessions must not outlive it.
#ifndef PROTOCOL_TRANSACTIONS_GRPC_TRANSACTION_SERVICE_H_
#define PROTOCOL_TRANSACTIONS_GRPC_TRANSACTION_SERVICE_H_

#include <memory>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/transaction_service.h"
#include "protocol/transactions/one_shot_channel.h"

namespace deut {

struct GrpcTransactionServiceOptions {
  // Sessions are spread over this many connections.
  int connections = 1;
};

class GrpcTransactionService final : public TransactionService {
 public:
  // Connects only when a call needs it.
  GrpcTransactionService(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, GrpcTransactionServiceOptions options);
  ~GrpcTransactionService() override;

  // The channel on which one-shot transactions of many threads share messages. It lives as long as this object.
  OneShotChannel* one_shots();
  Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) override;
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) override;
  Result<TableId> OpenTable(std::string_view name, Deadline deadline) override;
  Result<TableId> CreateTable(std::string_view name, const TableOptions& options, Deadline deadline) override;
  Status DropTable(std::string_view name, Deadline deadline) override;
  Result<std::vector<TableInfo>> ListTables(Deadline deadline) override;
  Result<ServiceStatus> GetStatus(Deadline deadline) override;
  Status DropCaches(Deadline deadline) override;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_GRPC_TRANSACTION_SERVICE_H_

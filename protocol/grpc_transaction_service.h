// GrpcTransactionService: a transaction component in another process, as its clients see it. The contract is that of
// transaction_service.h; what is added is how calls can fail:
//   UNAVAILABLE        no connection, or it broke. Nothing was committed by this call
//   DEADLINE_EXCEEDED  no answer in time. Nothing was committed by this call
//   OUTCOME_UNKNOWN    as the two above, but a commit (or a one-shot) of a transaction that writes was on its way
//   PERMISSION_DENIED  one side refuses the other's certificate
// After one of these the session is closed, and its transaction aborted by the TC: every further call answers UNAVAILABLE; a new
// session is needed. The TC is told each call's deadline and answers by it; the client waits kAnswerGrace (grpc_session.h) longer, so
// that a call which is merely late is answered, and its session stays open.
// Calls with more operations than travel in one message are split; a one-shot cannot be and is refused (INVALID_ARGUMENT names the limit).
// Thread-safety: as transaction_service.h. Ownership: sessions must not outlive it.
#ifndef PROTOCOL_GRPC_TRANSACTION_SERVICE_H_
#define PROTOCOL_GRPC_TRANSACTION_SERVICE_H_

#include <memory>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "protocol/one_shot_channel.h"
#include "protocol/rpc_peer.h"
#include "protocol/transaction_service.h"

namespace deut {

struct GrpcTransactionServiceOptions {
  // Sessions are spread over this many connections.
  int connections = 1;
};

class GrpcTransactionService final : public TransactionService {
 public:
  // Connects when it is needed.
  GrpcTransactionService(Runtime& runtime, std::shared_ptr<const RpcPeer> peer, GrpcTransactionServiceOptions options);
  ~GrpcTransactionService() override;

  // How one-shot transactions of many threads share messages; lives as long as this.
  OneShotChannel* one_shots();
  Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) override;
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) override;
  Result<TableId> OpenTable(std::string_view name, Deadline deadline) override;
  Result<TableId> CreateTable(std::string_view name, Deadline deadline) override;
  Status DropTable(std::string_view name, Deadline deadline) override;
  Result<std::vector<TableInfo>> ListTables(Deadline deadline) override;
  Result<ServiceStatus> GetStatus(Deadline deadline) override;
  Status DropCaches(Deadline deadline) override;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_TRANSACTION_SERVICE_H_

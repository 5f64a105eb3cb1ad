// SeverableService: a TransactionService whose clients can be cut off while the service continues. After
// CutOffClients, clients no longer get its answers. Every answer that a client got was complete before CutOffClients
// returned.
// Thread-safety: as TransactionService; any thread may call CutOffClients. Ownership: the service outlives this object
// and its sessions.
#ifndef INTEGRATION_BUGS_SEVERABLE_SERVICE_H_
#define INTEGRATION_BUGS_SEVERABLE_SERVICE_H_

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "protocol/transaction_service.h"

namespace deut::bugs {

class SeverableService final : public TransactionService {
 public:
  explicit SeverableService(TransactionService& service) : service_(service) {}

  void CutOffClients() { severed_.store(true, std::memory_order_seq_cst); }

  Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) override;
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) override;
  Result<TableId> OpenTable(std::string_view name, Deadline deadline) override;
  Result<TableId> CreateTable(std::string_view name, const TableOptions& options, Deadline deadline) override;
  Status DropTable(std::string_view name, Deadline deadline) override;
  Result<std::vector<TableInfo>> ListTables(Deadline deadline) override;
  Result<ServiceStatus> GetStatus(Deadline deadline) override { return service_.GetStatus(deadline); }
  Status DropCaches(Deadline deadline) override { return service_.DropCaches(deadline); }

 private:
  class Session;

  TransactionService& service_;
  std::atomic<bool> severed_{false};
};

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_SEVERABLE_SERVICE_H_

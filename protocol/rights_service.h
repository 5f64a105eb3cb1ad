// RightsService: a transaction service as one peer may use it: another service, behind the rights of the peer's certificate (authorization.h).
// Every operation is checked before it reaches the service: reads and scans need the right to read its table, all others (a scan that announces
// updates, a declared key) the right to write it. A refusal is PERMISSION_DENIED and names the table, by its id if the peer has
// no right to it at all; nothing was changed. A refused
// operation aborts its transaction. A table that is not there is NOT_FOUND for every peer.
// Rights that are replaced meanwhile hold from the next call on.
// Thread-safety: the service from any thread; a session as any. Ownership: borrows the service and the rights; sessions must not outlive them.
#ifndef PROTOCOL_RIGHTS_SERVICE_H_
#define PROTOCOL_RIGHTS_SERVICE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "protocol/authorization.h"
#include "protocol/transaction_service.h"

namespace deut {

class RightsService final : public TransactionService {
 public:
  // `names` are those of the peer's certificate.
  RightsService(TransactionService& service, const AccessControl& access, std::vector<std::string> names)
      : service_(service), access_(access), names_(std::move(names)) {}

  bool LosesAnswers() const override { return service_.LosesAnswers(); }
  Result<std::unique_ptr<TransactionSession>> NewSession(Deadline deadline) override;
  Result<OutcomeAnswer> AskOutcome(const TransactionName& name, Deadline deadline) override {
    return service_.AskOutcome(name, deadline);
  }
  Result<Lsn> AwaitDurable(Lsn at, Deadline deadline) override { return service_.AwaitDurable(at, deadline); }
  Result<std::string> NameOfTable(TableId table) override { return service_.NameOfTable(table); }
  Result<TableId> OpenTable(std::string_view name, Deadline deadline) override;
  Result<TableId> CreateTable(std::string_view name, Deadline deadline) override;
  Status DropTable(std::string_view name, Deadline deadline) override;
  // Only tables that the peer has a right to.
  Result<std::vector<TableInfo>> ListTables(Deadline deadline) override;
  Result<ServiceStatus> GetStatus(Deadline deadline) override { return service_.GetStatus(deadline); }
  // Needs the right to make all tables, because the caches serve all of them.
  Status DropCaches(Deadline deadline) override;

 private:
  Principal Find() const { return access_.current()->Find(names_); }

  TransactionService& service_;
  const AccessControl& access_;
  const std::vector<std::string> names_;
};

}  // namespace deut

#endif  // PROTOCOL_RIGHTS_SERVICE_H_

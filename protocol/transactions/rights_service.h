// RightsService: a transaction service restricted to the rights of one peer's certificate (authorization.h). It checks
// every operation, then passes it to another service. Reads and scans need the right to read their table. All others,
// such as a scan that announces updates or a declared key, need the right to write it.
// A refusal is PERMISSION_DENIED and changes nothing. It names the table, by its id if the peer has no right to it at
// all. A refused operation aborts its transaction. A missing table is NOT_FOUND for every peer. After rights are
// replaced, the next call uses the new ones.
// Thread-safety: any thread may use the service; a session is like any other. Ownership: borrows the service and the
// rights; sessions must not outlive them.
#ifndef PROTOCOL_TRANSACTIONS_RIGHTS_SERVICE_H_
#define PROTOCOL_TRANSACTIONS_RIGHTS_SERVICE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "protocol/connections/authorization.h"
#include "protocol/transaction_service.h"

namespace deut {

class RightsService final : public TransactionService {
 public:
  // `names` are the names in the peer's certificate.
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
  Result<TableId> CreateTable(std::string_view name, const TableOptions& options, Deadline deadline) override;
  Status DropTable(std::string_view name, Deadline deadline) override;
  // Lists only tables to which the peer has a right.
  Result<std::vector<TableInfo>> ListTables(Deadline deadline) override;
  Result<ServiceStatus> GetStatus(Deadline deadline) override { return service_.GetStatus(deadline); }
  // Needs the right to create all tables, because the caches serve all of them.
  Status DropCaches(Deadline deadline) override;

 private:
  Principal Find() const { return access_.current()->Find(names_); }

  TransactionService& service_;
  const AccessControl& access_;
  const std::vector<std::string> names_;
};

}  // namespace deut

#endif  // PROTOCOL_TRANSACTIONS_RIGHTS_SERVICE_H_

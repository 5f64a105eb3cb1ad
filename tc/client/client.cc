#include "tc/client/client.h"

#include <utility>

#include "tc/client/transaction_state.h"

namespace deut {

Client::Client(std::unique_ptr<TransactionService> owned, TransactionService* service, OneShotChannel* one_shots,
               const ClientOptions& options)
    : owned_(std::move(owned)), core_(service, one_shots, options), tables_mutex_(core_.runtime()) {}

Client::~Client() = default;

std::unique_ptr<Client> Client::FromService(TransactionService* service, const ClientOptions& options) {
  return std::unique_ptr<Client>(new Client(nullptr, service, nullptr, options));
}

std::unique_ptr<Client> Client::FromService(std::unique_ptr<TransactionService> service, const ClientOptions& options) {
  return FromService(std::move(service), nullptr, options);
}

std::unique_ptr<Client> Client::FromService(std::unique_ptr<TransactionService> service, OneShotChannel* one_shots,
                                            const ClientOptions& options) {
  TransactionService* const borrowed = service.get();
  return std::unique_ptr<Client>(new Client(std::move(service), borrowed, one_shots, options));
}

Result<TableId> Client::OpenTable(std::string_view name, const CallOptions& call) {
  {
    const MutexLock lock(tables_mutex_);
    const auto known = tables_.find(name);
    if (known != tables_.end()) return known->second;
  }
  DEUT_ASSIGN_OR_RETURN(const TableId id, core_.service().OpenTable(name, core_.DeadlineFor(call)));
  const MutexLock lock(tables_mutex_);
  tables_.insert_or_assign(std::string(name), id);
  return id;
}

Result<TableId> Client::CreateTable(std::string_view name, const CallOptions& call) {
  return CreateTable(name, TableOptions(), call);
}

Result<TableId> Client::CreateTable(std::string_view name, const TableOptions& options, const CallOptions& call) {
  DEUT_ASSIGN_OR_RETURN(const TableId id, core_.service().CreateTable(name, options, core_.DeadlineFor(call)));
  const MutexLock lock(tables_mutex_);
  tables_.insert_or_assign(std::string(name), id);
  return id;
}

Status Client::DropTable(std::string_view name, const CallOptions& call) {
  // Forgets the table first, so that the next OpenTable asks the store, whatever the outcome.
  ForgetTable(name);
  return core_.service().DropTable(name, core_.DeadlineFor(call));
}

Result<std::vector<TableInfo>> Client::ListTables(const CallOptions& call) {
  return core_.service().ListTables(core_.DeadlineFor(call));
}

void Client::ForgetTable(std::string_view name) {
  const MutexLock lock(tables_mutex_);
  const auto known = tables_.find(name);
  if (known != tables_.end()) tables_.erase(known);
}

Result<Transaction> Client::Begin(const TransactionOptions& options, const CallOptions& call) {
  DEUT_ASSIGN_OR_RETURN(ClientCore::Begun begun, core_.Begin(options, core_.DeadlineFor(call)));
  return Transaction(std::make_unique<TransactionState>(&core_, std::move(begun), kNoDeadline, nullptr));
}

Result<Transaction> Client::BeginUntil(const TransactionOptions& options, Deadline limit, WrittenKeys* written_keys) {
  DEUT_ASSIGN_OR_RETURN(ClientCore::Begun begun, core_.Begin(options, core_.DeadlineFor({}, limit)));
  return Transaction(std::make_unique<TransactionState>(&core_, std::move(begun), limit, written_keys));
}

Result<CommitAnswer> Client::ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                            std::vector<OperationResult>* results, const CallOptions& call) {
  return core_.ExecuteOneShot(options, operations, results, core_.DeadlineFor(call));
}

Result<CommitAnswer> Client::ExecuteOneShotUntil(const TransactionOptions& options,
                                                 absl::Span<const Operation> operations,
                                                 std::vector<OperationResult>* results, Deadline limit) {
  return core_.ExecuteOneShot(options, operations, results, core_.DeadlineFor({}, limit));
}

void Client::ExecuteOneShots(absl::Span<OneShotTransaction> transactions, const CallOptions& call) {
  core_.ExecuteOneShots(transactions, core_.DeadlineFor(call));
}

Result<OutcomeAnswer> Client::AskOutcome(const TransactionName& name, const CallOptions& call) {
  return core_.service().AskOutcome(name, core_.DeadlineFor(call));
}

Result<ServiceStatus> Client::GetStatus(const CallOptions& call) {
  return core_.service().GetStatus(core_.DeadlineFor(call));
}

Status Client::DropCaches(const CallOptions& call) { return core_.service().DropCaches(core_.DeadlineFor(call)); }

}  // namespace deut

#include "protocol/transactions/rights_service.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/concat.h"
#include "protocol/pipelined_call.h"
#include "protocol/prefetch.h"

namespace deut {
namespace {

std::string_view Doing(TableAccess access) {
  switch (access) {
    case TableAccess::kRead:
      return "read";
    case TableAccess::kWrite:
      return "write to";
    case TableAccess::kMake:
      return "make or drop";
  }
  return "use";
}

Status Refuse(const Principal& principal, TableAccess access, const std::string& table) {
  return DEUT_ERROR(kPermissionDenied, "certificate refused: \"", principal.name(), "\" may not ", Doing(access),
                    " the table ", table);
}

// Whether ListTables shows the name.
bool Sees(const Principal& principal, std::string_view table) {
  return principal.May(TableAccess::kRead, table) || principal.May(TableAccess::kWrite, table) ||
         principal.May(TableAccess::kMake, table);
}

// The access that an operation needs. A scan that announces updates keeps others from its range, as a write does.
TableAccess NeededFor(const Operation& operation) {
  if (operation.kind == OperationKind::kGet) return TableAccess::kRead;
  if (operation.kind == OperationKind::kScan && !operation.for_update) return TableAccess::kRead;
  return TableAccess::kWrite;
}

// The rights of one peer to tables by their ids. It looks a name up only once for each id, because a table keeps its
// name and no id is reused (T1).
class TableRights {
 public:
  TableRights(TransactionService& service, const AccessControl& access, std::vector<std::string> names)
      : service_(service), access_(access), names_(std::move(names)) {}

  Status Check(TableId table, TableAccess access) {
    // The generation is read first, so that the next check sees a replacement that comes after this read.
    if (const uint64_t now = access_.generation(); now != generation_) [[unlikely]] {
      generation_ = now;
      principal_ = access_.current()->Find(names_);
      read_everywhere_ = principal_.MayEverywhere(TableAccess::kRead);
      write_everywhere_ = principal_.MayEverywhere(TableAccess::kWrite);
      known_.clear();
    }
    if (access == TableAccess::kRead ? read_everywhere_ : write_everywhere_) return Status::Ok();
    auto found = known_.find(table.value);
    if (found == known_.end()) {
      DEUT_ASSIGN_OR_RETURN(const std::string name, service_.NameOfTable(table));
      const bool read = principal_.May(TableAccess::kRead, name), write = principal_.May(TableAccess::kWrite, name);
      // Ids are easily guessed, so a refusal tells the name only to a peer that may see it.
      std::string shown = Sees(principal_, name) ? Quoted(name) : Concat("with id ", table.value);
      found = known_.emplace(table.value, Known{.shown = std::move(shown), .read = read, .write = write}).first;
    }
    if (access == TableAccess::kRead ? found->second.read : found->second.write) return Status::Ok();
    return Refuse(principal_, access, found->second.shown);
  }

  Status Check(const Operation& operation) { return Check(operation.table, NeededFor(operation)); }
  // *at: the index of the refused operation.
  Status Check(absl::Span<const Operation> operations, size_t* at) {
    for (*at = 0; *at < operations.size(); ++*at) DEUT_RETURN_IF_ERROR(Check(operations[*at]));
    return Status::Ok();
  }
  Status Check(const TransactionOptions& options) {
    for (const DeclaredKey& key : options.declared) DEUT_RETURN_IF_ERROR(Check(key.table, TableAccess::kWrite));
    return Status::Ok();
  }

 private:
  struct Known {
    std::string shown;
    bool read = false, write = false;
  };

  TransactionService& service_;
  const AccessControl& access_;
  const std::vector<std::string> names_;
  uint64_t generation_ = 0;  // of the fields below; no generation has the value 0
  Principal principal_;
  bool read_everywhere_ = false, write_everywhere_ = false;
  absl::flat_hash_map<uint64_t, Known> known_;
};

class RightsSession final : public TransactionSession, PipelinedSteps, PrefetchSteps {
 public:
  RightsSession(std::unique_ptr<TransactionSession> session, TableRights rights)
      : session_(std::move(session)),
        pipelined_steps_(session_->pipelined_steps()),
        prefetch_steps_(session_->prefetch_steps()),
        rights_(std::move(rights)) {}

  Timestamp not_before() const override { return session_->not_before(); }
  Result<Timestamp> Begin(const TransactionOptions& options, Deadline deadline) override {
    DEUT_RETURN_IF_ERROR(rights_.Check(options));
    return session_->Begin(options, deadline);
  }
  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                 Deadline deadline) override {
    if (Status refused = CheckAll(operations, results); !refused.ok()) {
      (void)session_->Abort();  // there may be no transaction
      return refused;
    }
    return session_->Execute(operations, results, deadline);
  }
  PipelinedSteps* pipelined_steps() override { return pipelined_steps_ == nullptr ? nullptr : this; }
  PrefetchSteps* prefetch_steps() override { return prefetch_steps_ == nullptr ? nullptr : this; }
  Result<CommitAnswer> Commit(Deadline deadline) override { return session_->Commit(deadline); }
  Status Abort() override { return session_->Abort(); }
  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                      std::vector<OperationResult>* results, Deadline deadline) override {
    DEUT_RETURN_IF_ERROR(CheckOneShot(options, operations, results));
    return session_->ExecuteOneShot(options, operations, results, deadline);
  }
  Result<ScanBegun> BeginScan(const TransactionOptions& options, const Operation& scan,
                              std::vector<OperationResult>* results, Deadline deadline) override {
    DEUT_RETURN_IF_ERROR(CheckOneShot(options, absl::MakeConstSpan(&scan, 1), results));
    return session_->BeginScan(options, scan, results, deadline);
  }
  Result<CommitAnswer> ExecuteOneShotWithoutWait(const TransactionOptions& options,
                                                 absl::Span<const Operation> operations,
                                                 std::vector<OperationResult>* results, Deadline deadline,
                                                 Lsn* durable_at, std::unique_ptr<BegunOneShot> begun) override {
    *durable_at = Lsn(0);
    DEUT_RETURN_IF_ERROR(CheckOneShot(options, operations, results));
    return session_->ExecuteOneShotWithoutWait(options, operations, results, deadline, durable_at, std::move(begun));
  }

 private:
  bool SendPipelined(PipelinedSteps::Token token, absl::Span<const Operation> operations, Deadline deadline) override {
    size_t at = 0;
    return rights_.Check(operations, &at).ok() && pipelined_steps_->SendPipelined(token, operations, deadline);
  }
  Status AwaitPipelined(PipelinedSteps::Token token, absl::Span<const Operation> operations,
                        std::vector<OperationResult>* results, Deadline deadline) override {
    return pipelined_steps_->AwaitPipelined(token, operations, results, deadline);
  }
  // A prefetch is a hint only. An operation that would be refused when it is run is not prepared.
  bool NotePrefetch(PrefetchSteps::Token token, absl::Span<const Operation> operations) override {
    size_t at = 0;
    return rights_.Check(operations, &at).ok() && prefetch_steps_->NotePrefetch(token, operations);
  }
  std::unique_ptr<BegunOneShot> BeginForPrefetch(PrefetchSteps::Token token, const TransactionOptions& options,
                                                 absl::Span<const Operation> operations) override {
    size_t at = 0;
    if (!rights_.Check(options).ok() || !rights_.Check(operations, &at).ok()) return nullptr;
    return prefetch_steps_->BeginForPrefetch(token, options, operations);
  }
  bool StartPrefetch(PrefetchSteps::Token token) override { return prefetch_steps_->StartPrefetch(token); }
  bool AwaitPrefetch(PrefetchSteps::Token token, Deadline deadline) override {
    return prefetch_steps_->AwaitPrefetch(token, deadline);
  }

  Status CheckOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                      std::vector<OperationResult>* results) {
    if (Status refused = rights_.Check(options); !refused.ok()) {
      results->clear();
      return refused;
    }
    return CheckAll(operations, results);
  }

  // Runs before any operation. If one is refused, the results say which one and why.
  Status CheckAll(absl::Span<const Operation> operations, std::vector<OperationResult>* results) {
    size_t at = 0;
    Status refused = rights_.Check(operations, &at);
    if (refused.ok()) return refused;
    results->assign(operations.size(), OperationResult());
    for (size_t i = 0; i < operations.size(); ++i) {
      (*results)[i].status =
          i == at ? refused : DEUT_ERROR(kWrongState, "not run: another operation of its message was refused");
    }
    return refused;
  }

  const std::unique_ptr<TransactionSession> session_;
  PipelinedSteps* const pipelined_steps_;  // of the session; may be null
  PrefetchSteps* const prefetch_steps_;    // of the session; may be null
  TableRights rights_;
};

}  // namespace

Result<std::unique_ptr<TransactionSession>> RightsService::NewSession(Deadline deadline) {
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<TransactionSession> session, service_.NewSession(deadline));
  return std::unique_ptr<TransactionSession>(
      std::make_unique<RightsSession>(std::move(session), TableRights(service_, access_, names_)));
}

Result<TableId> RightsService::OpenTable(std::string_view name, Deadline deadline) {
  const Principal principal = Find();
  for (const TableAccess access : {TableAccess::kRead, TableAccess::kWrite, TableAccess::kMake}) {
    if (principal.May(access, name)) return service_.OpenTable(name, deadline);
  }
  return Refuse(principal, TableAccess::kRead, Quoted(name));
}

Result<TableId> RightsService::CreateTable(std::string_view name, const TableOptions& options, Deadline deadline) {
  const Principal principal = Find();
  if (!principal.May(TableAccess::kMake, name)) return Refuse(principal, TableAccess::kMake, Quoted(name));
  return service_.CreateTable(name, options, deadline);
}

Status RightsService::DropTable(std::string_view name, Deadline deadline) {
  const Principal principal = Find();
  if (!principal.May(TableAccess::kMake, name)) return Refuse(principal, TableAccess::kMake, Quoted(name));
  return service_.DropTable(name, deadline);
}

Result<std::vector<TableInfo>> RightsService::ListTables(Deadline deadline) {
  DEUT_ASSIGN_OR_RETURN(std::vector<TableInfo> tables, service_.ListTables(deadline));
  const Principal principal = Find();
  std::erase_if(tables, [&](const TableInfo& table) { return !Sees(principal, table.name); });
  return tables;
}

Status RightsService::DropCaches(Deadline deadline) {
  const Principal principal = Find();
  if (!principal.MayEverywhere(TableAccess::kMake)) {
    return DEUT_ERROR(kPermissionDenied, "certificate refused: \"", principal.name(),
                      "\" may not empty the caches of everybody: its role admin is limited to some tables");
  }
  return service_.DropCaches(deadline);
}

}  // namespace deut

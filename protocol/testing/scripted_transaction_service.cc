#include "protocol/testing/scripted_transaction_service.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "protocol/prefetch.h"

namespace deut::testing {

// Keeps writes apart until the commit.
class ScriptedTransactionService::Session final : public TransactionSession, PrefetchSteps {
 public:
  explicit Session(ScriptedTransactionService& owner) : owner_(owner) {
    MutexLock lock(owner_.mutex_);
    ++owner_.sessions_;
  }
  ~Session() override {
    End(/*aborted=*/true);
    MutexLock lock(owner_.mutex_);
    --owner_.sessions_;
  }

  Timestamp not_before() const override {
    MutexLock lock(owner_.mutex_);
    return Timestamp(owner_.clock_ + 1);
  }
  Result<Timestamp> Begin(const TransactionOptions& options, Deadline deadline) override {
    DEUT_RETURN_IF_ERROR(owner_.before("begin", deadline));
    if (open_) return Status(ErrorCode::kWrongState, "a transaction is open");
    MutexLock lock(owner_.mutex_);
    open_ = true;
    timestamp_ = Timestamp(++owner_.clock_);
    owner_.last_options_ = options;
    ++owner_.transactions_;
    return timestamp_;
  }

  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                 Deadline deadline) override {
    results->clear();
    DEUT_RETURN_IF_ERROR(owner_.before("execute", deadline));
    if (!open_) return Status(ErrorCode::kWrongState, "no transaction is open");
    Status ended;
    for (const Operation& operation : operations) {
      OperationResult& result = results->emplace_back();
      result.status = ended.ok() ? Run(operation, &result, deadline) : Status(ErrorCode::kWrongState, "not run");
      const ErrorCode code = result.status.code();
      const bool stays_open = result.status.ok() || code == ErrorCode::kAlreadyExists || code == ErrorCode::kNotFound ||
                              code == ErrorCode::kConditionFailed;
      if (ended.ok() && !stays_open) {
        ended = result.status;
        End(/*aborted=*/true);
      }
    }
    return ended;
  }

  Result<CommitAnswer> Commit(Deadline deadline) override {
    DEUT_RETURN_IF_ERROR(owner_.before("commit", deadline));
    if (!open_) return Status(ErrorCode::kWrongState, "no transaction is open");
    const CommitAnswer answer{.timestamp = timestamp_,
                              .commit_lsn = Lsn(written_.empty() ? 0 : timestamp_.value * 100)};
    End(/*aborted=*/false);
    return answer;
  }

  Status Abort() override {
    DEUT_RETURN_IF_ERROR(owner_.before("abort", kNoDeadline));
    if (!open_) return Status(ErrorCode::kWrongState, "no transaction is open");
    End(/*aborted=*/true);
    return Status::Ok();
  }

  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                      std::vector<OperationResult>* results, Deadline deadline) override {
    DEUT_RETURN_IF_ERROR(owner_.before("one_shot", deadline));
    DEUT_RETURN_IF_ERROR(Begin(options, deadline).status());
    DEUT_RETURN_IF_ERROR(Execute(operations, results, deadline));
    for (OperationResult& result : *results) {
      if (result.status.ok()) continue;
      result.failed_precondition_at = timestamp_;
      End(/*aborted=*/true);
      return result.status;
    }
    return Commit(deadline);
  }

  Result<CommitAnswer> ExecuteOneShotWithoutWait(const TransactionOptions& options,
                                                 absl::Span<const Operation> operations,
                                                 std::vector<OperationResult>* results, Deadline deadline,
                                                 Lsn* durable_at, std::unique_ptr<BegunOneShot> begun) override {
    if (begun != nullptr) {
      DEUT_RETURN_IF_ERROR(owner_.before("take_begun", deadline));
      const std::string& low = static_cast<const Begun&>(*begun).low;
      if (operations.empty() || operations.front().low != low) {
        return DEUT_ERROR(kInternal, "the scan begun from ", low, " came with another call");
      }
    }
    begun.reset();
    Result<CommitAnswer> answer = ExecuteOneShot(options, operations, results, deadline);
    *durable_at = answer.ok() && owner_.withholds ? answer->commit_lsn : Lsn(0);
    return answer;
  }

  PrefetchSteps* prefetch_steps() override { return this; }

 private:
  struct Begun final : BegunOneShot {
    Begun(ScriptedTransactionService& service, std::string_view from) : owner(service), low(from) {
      owner.begun_.fetch_add(1);
    }
    ~Begun() override { owner.begun_.fetch_sub(1); }
    ScriptedTransactionService& owner;
    const std::string low;  // where its scan begins
  };

  bool NotePrefetch(PrefetchSteps::Token, absl::Span<const Operation> operations) override {
    if (owner_.reads_ahead.empty()) return false;
    for (const Operation& operation : operations) {
      if (operation.kind != OperationKind::kGet || !operation.key.starts_with(owner_.reads_ahead)) continue;
      prefetch_noted_ = true;
      return true;
    }
    return false;
  }
  std::unique_ptr<BegunOneShot> BeginForPrefetch(PrefetchSteps::Token, const TransactionOptions&,
                                                 absl::Span<const Operation> operations) override {
    if (owner_.reads_ahead.empty() || !operations.front().low.starts_with(owner_.reads_ahead)) return nullptr;
    prefetch_noted_ = true;
    return std::make_unique<Begun>(owner_, operations.front().low);
  }
  bool StartPrefetch(PrefetchSteps::Token) override {
    return std::exchange(prefetch_noted_, false) && owner_.before("start_prefetch", kNoDeadline).ok();
  }
  bool AwaitPrefetch(PrefetchSteps::Token, Deadline deadline) override {
    return owner_.before("await_prefetch", deadline).ok();
  }

  Status Run(const Operation& operation, OperationResult* result, Deadline deadline) {
    DEUT_RETURN_IF_ERROR(owner_.before("operation", deadline));
    const Key key(operation.table, std::string(operation.key));
    MutexLock lock(owner_.mutex_);
    const auto found = owner_.records_.find(key);
    const bool there = written_.count(key) != 0 || found != owner_.records_.end();
    switch (operation.kind) {
      case OperationKind::kGet:
        if (written_.count(key) != 0) {
          result->records.Append(key.second, written_[key], Version{timestamp_, 1});
        } else if (there) {
          result->records.Append(key.second, found->second, Version{Timestamp(1), 1});
        }
        return Status::Ok();
      case OperationKind::kInsert:
        if (there) return Status(ErrorCode::kAlreadyExists, "the key is there");
        break;
      case OperationKind::kUpdate:
        if (!there) return Status(ErrorCode::kNotFound, "the key is not there");
        break;
      case OperationKind::kPut:
        break;
      case OperationKind::kAdd:
      case OperationKind::kMin:
      case OperationKind::kMax:
        result->records.Append(key.second, operation.value, Version{timestamp_, 1});
        break;
      case OperationKind::kCompareAndSet:
        if (!there) break;
        result->records.Append(key.second, "found", Version{timestamp_, 1});
        return Status(ErrorCode::kConditionFailed, "the key has another value");
      case OperationKind::kRemoveRange:
        result->complete = true;
        result->removed = 3;
        return Status::Ok();
      case OperationKind::kRemove:
        return Status::Ok();
      case OperationKind::kScan:
        result->complete = true;
        for (const auto& [at, value] : owner_.records_) {
          if (at.first != operation.table || at.second < operation.low ||
              (!operation.high.empty() && at.second >= operation.high)) {
            continue;
          }
          if (result->records.bytes().size() >= operation.limit_bytes) {
            result->complete = false;
            result->resume = at.second;
            break;
          }
          result->records.Append(at.second, value, Version{Timestamp(1), 1});
        }
        return Status::Ok();
    }
    written_[key] = operation.value;
    return Status::Ok();
  }

  void End(bool aborted) {
    if (!open_) return;
    open_ = false;
    MutexLock lock(owner_.mutex_);
    --owner_.transactions_;
    ++(aborted ? owner_.aborts_ : owner_.commits_);
    if (!aborted) {
      for (auto& [key, value] : written_) owner_.records_[key] = std::move(value);
    }
    written_.clear();
  }

  ScriptedTransactionService& owner_;
  bool prefetch_noted_ = false;
  bool open_ = false;
  Timestamp timestamp_;
  std::map<Key, std::string> written_;
};

size_t ScriptedTransactionService::sessions() {
  MutexLock lock(mutex_);
  return sessions_;
}

size_t ScriptedTransactionService::transactions() {
  MutexLock lock(mutex_);
  return transactions_;
}

size_t ScriptedTransactionService::aborts() {
  MutexLock lock(mutex_);
  return aborts_;
}

size_t ScriptedTransactionService::commits() {
  MutexLock lock(mutex_);
  return commits_;
}

TransactionOptions ScriptedTransactionService::last_options() {
  MutexLock lock(mutex_);
  return last_options_;
}

std::string ScriptedTransactionService::Value(TableId table, const std::string& key) {
  MutexLock lock(mutex_);
  return records_[{table, key}];
}

Result<std::unique_ptr<TransactionSession>> ScriptedTransactionService::NewSession(Deadline deadline) {
  DEUT_RETURN_IF_ERROR(before("new_session", deadline));
  return std::unique_ptr<TransactionSession>(new Session(*this));
}

Result<Lsn> ScriptedTransactionService::AwaitDurable(Lsn at, Deadline deadline) {
  Lsn end = at;
  {
    MutexLock lock(mutex_);
    end = std::max(end, Lsn(clock_ * 100));
  }
  DEUT_RETURN_IF_ERROR(before("await_durable", deadline));
  return Lsn(end.value + 1);
}

// Knows no outcome; tests script the one that they need.
Result<OutcomeAnswer> ScriptedTransactionService::AskOutcome(const TransactionName& name, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(before("ask_outcome", deadline));
  MutexLock lock(mutex_);
  last_asked_ = name;
  return outcome_;
}

void ScriptedTransactionService::set_outcome(const OutcomeAnswer& outcome) {
  MutexLock lock(mutex_);
  outcome_ = outcome;
}

TransactionName ScriptedTransactionService::last_asked() {
  MutexLock lock(mutex_);
  return last_asked_;
}

Result<TableId> ScriptedTransactionService::OpenTable(std::string_view name, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(before("open_table", deadline));
  MutexLock lock(mutex_);
  const auto found = tables_.find(name);
  if (found == tables_.end()) return Status(ErrorCode::kNotFound, "no such table");
  return found->second;
}

TableOptions ScriptedTransactionService::last_table_options() {
  MutexLock lock(mutex_);
  return last_table_options_;
}

Result<TableId> ScriptedTransactionService::CreateTable(std::string_view name, const TableOptions& options,
                                                        Deadline deadline) {
  DEUT_RETURN_IF_ERROR(before("create_table", deadline));
  MutexLock lock(mutex_);
  const TableId id(static_cast<uint32_t>(tables_.size() + 1));
  if (!tables_.emplace(std::string(name), id).second) return Status(ErrorCode::kAlreadyExists, "the table is there");
  last_table_options_ = options;
  return id;
}

Status ScriptedTransactionService::DropTable(std::string_view name, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(before("drop_table", deadline));
  MutexLock lock(mutex_);
  const auto found = tables_.find(name);
  if (found == tables_.end()) return Status(ErrorCode::kNotFound, "no such table");
  tables_.erase(found);
  return Status::Ok();
}

Result<std::vector<TableInfo>> ScriptedTransactionService::ListTables(Deadline deadline) {
  DEUT_RETURN_IF_ERROR(before("list_tables", deadline));
  MutexLock lock(mutex_);
  std::vector<TableInfo> tables;
  for (const auto& [name, id] : tables_) tables.push_back(TableInfo{.id = id, .name = name});
  return tables;
}

Result<ServiceStatus> ScriptedTransactionService::GetStatus(Deadline deadline) {
  DEUT_RETURN_IF_ERROR(before("get_status", deadline));
  return ServiceStatus{.tc = {CounterValue{"a", 1}}, .dc = {CounterValue{"b", 2}}};
}

Status ScriptedTransactionService::DropCaches(Deadline deadline) { return before("drop_caches", deadline); }

}  // namespace deut::testing

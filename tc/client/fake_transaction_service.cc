#include "tc/client/fake_transaction_service.h"

#include <algorithm>
#include <iterator>

#include "protocol/number.h"
#include "protocol/pipelined_call.h"

namespace deut::testing {

// Runs one transaction at a time. It keeps writes aside and remembers reads, and Commit checks that the reads still
// hold.
class FakeSession final : public TransactionSession, PipelinedSteps {
 public:
  explicit FakeSession(FakeTransactionService* service) : service_(service) { ++service_->sessions_open_; }
  ~FakeSession() override {
    Close();
    --service_->sessions_open_;
  }

  Timestamp not_before() const override {
    const MutexLock lock(service_->mutex_);
    return Timestamp(service_->last_timestamp_ + 1);
  }
  Result<Timestamp> Begin(const TransactionOptions& options, Deadline deadline) override;
  Status Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                 Deadline deadline) override;
  PipelinedSteps* pipelined_steps() override { return this; }
  Result<CommitAnswer> Commit(Deadline deadline) override;
  Status Abort() override;
  Result<CommitAnswer> ExecuteOneShot(const TransactionOptions& options, absl::Span<const Operation> operations,
                                      std::vector<OperationResult>* results, Deadline deadline) override;

 private:
  using Key = std::pair<uint32_t, std::string>;
  using Service = FakeTransactionService;

  bool SendPipelined(PipelinedSteps::Token, absl::Span<const Operation> operations, Deadline deadline) override {
    if (!service_->sends_ahead) return false;
    ++service_->sent_ahead;
    ahead_status_ = Execute(operations, &ahead_, deadline);
    return true;
  }
  Status AwaitPipelined(PipelinedSteps::Token, absl::Span<const Operation>, std::vector<OperationResult>* results,
                        Deadline deadline) override {
    service_->await_pipelined_deadline = deadline;
    if (service_->loses_ahead) return DEUT_ERROR(kDeadlineExceeded, "no answer has come");
    *results = std::move(ahead_);
    return ahead_status_;
  }

  void Open() {
    open_ = true;
    ++service_->transactions_open_;
  }
  void Close() {
    if (!open_) return;
    open_ = false;
    --service_->transactions_open_;
    writes_.clear();
    reads_.clear();
    scanned_.clear();
  }
  OperationResult Run(const Operation& operation) DEUT_REQUIRES(service_->mutex_);
  void Scan(const Operation& operation, Service::Table& table, OperationResult* result) DEUT_REQUIRES(service_->mutex_);
  // Runs kAdd, kMin or kMax.
  void Calculate(const Operation& operation, Service::Table& table, OperationResult* result)
      DEUT_REQUIRES(service_->mutex_);
  // Returns the value as this transaction sees it, and its version.
  Service::Record See(uint32_t table_id, Service::Table& table, const std::string& key) DEUT_REQUIRES(service_->mutex_);
  Result<CommitAnswer> Apply() DEUT_REQUIRES(service_->mutex_);

  Service* const service_;
  bool open_ = false;
  Status ahead_status_;
  std::vector<OperationResult> ahead_;
  TransactionId id_;
  std::map<Key, std::optional<std::string>> writes_;
  std::map<Key, Version> reads_;
  std::map<uint32_t, Timestamp> scanned_;
};

Result<Timestamp> FakeSession::Begin(const TransactionOptions& options, Deadline deadline) {
  if (service_->on_begin) service_->on_begin(options);
  FakeFault fault = service_->Fault(FakeCall::kBegin, deadline);
  if (!fault.status.ok()) return fault.status;
  if (open_) return DEUT_ERROR(kWrongState, "a transaction is open on this session");
  Open();
  id_ = options.name.id;
  const MutexLock lock(service_->mutex_);
  return Timestamp(service_->last_timestamp_ + 1);
}

FakeTransactionService::Record FakeSession::See(uint32_t table_id, Service::Table& table, const std::string& key) {
  const auto own = writes_.find({table_id, key});
  if (own != writes_.end()) return {own->second, Version{}};
  const auto found = table.records.find(key);
  Service::Record record = found == table.records.end() ? Service::Record{} : found->second;
  reads_.try_emplace({table_id, key}, record.version);
  return record;
}

void FakeSession::Scan(const Operation& operation, Service::Table& table, OperationResult* result) {
  const uint32_t id = operation.table.value;
  scanned_.try_emplace(id, table.last_change);
  // Own writes of this table within the range. The loops below walk both maps side by side.
  std::map<std::string_view, const std::optional<std::string>*> own;
  for (const auto& [key, value] : writes_) {
    if (key.first == id) own[key.second] = &value;
  }
  const auto beyond = [&](std::string_view key) {
    return operation.direction == Direction::kAscending ? !operation.high.empty() && key >= operation.high
                                                        : key < operation.low;
  };
  uint64_t limit = service_->max_batch_records;
  if (operation.limit_records != 0) limit = std::min<uint64_t>(limit, operation.limit_records);
  uint64_t bytes = 0;
  result->complete = true;
  // Returns true to go on.
  const auto show = [&](const std::string& key, const std::optional<std::string>& value, Version version) {
    if (beyond(key)) return false;
    if (!value.has_value()) return true;
    if (result->records.size() >= limit || (bytes >= operation.limit_bytes && !result->records.empty())) {
      result->complete = false;
      result->resume = operation.direction == Direction::kAscending ? key : Concat(key, std::string(1, '\0'));
      return false;
    }
    result->records.Append(key, *value, version);
    bytes += key.size() + value->size();
    return true;
  };
  const auto walk = [&](auto stored, auto stored_end, auto mine, auto mine_end, auto before) {
    while (stored != stored_end || mine != mine_end) {
      if (mine == mine_end || (stored != stored_end && before(std::string_view(stored->first), mine->first))) {
        if (!show(stored->first, stored->second.value, stored->second.version)) return;
        ++stored;
        continue;
      }
      if (stored != stored_end && stored->first == mine->first) ++stored;  // hidden by the own write
      if (!show(std::string(mine->first), *mine->second, Version{})) return;
      ++mine;
    }
  };
  if (operation.direction == Direction::kAscending) {
    walk(table.records.lower_bound(std::string(operation.low)), table.records.end(), own.lower_bound(operation.low),
         own.end(), std::less<>());
  } else {
    const auto last =
        operation.high.empty() ? table.records.end() : table.records.lower_bound(std::string(operation.high));
    const auto own_last = operation.high.empty() ? own.end() : own.lower_bound(operation.high);
    walk(std::make_reverse_iterator(last), table.records.rend(), std::make_reverse_iterator(own_last), own.rend(),
         std::greater<>());
  }
}

void FakeSession::Calculate(const Operation& operation, Service::Table& table, OperationResult* result) {
  const std::string key(operation.key);
  const Key place{operation.table.value, key};
  const std::optional<std::string> before = See(place.first, table, key).value;
  const std::optional<int64_t> number = before.has_value() ? DecodeNumber(*before) : 0;
  const int64_t by = *DecodeNumber(operation.value);
  if (!number.has_value()) {
    result->status = DEUT_ERROR(kInvalidArgument, "the key's value is no number");
    return;
  }
  int64_t after = by;
  if (operation.kind == OperationKind::kAdd) after += *number;
  if (before.has_value() && operation.kind == OperationKind::kMin) after = std::min(by, *number);
  if (before.has_value() && operation.kind == OperationKind::kMax) after = std::max(by, *number);
  writes_[place] = EncodeNumber(after);
  result->records.Append(key, *writes_[place], Version{});
}

OperationResult FakeSession::Run(const Operation& operation) {
  OperationResult result;
  Service::Table* const table = service_->FindTable(operation.table);
  if (table == nullptr) {
    result.status = DEUT_ERROR(kInvalidArgument, "no table has the id ", operation.table.value);
    return result;
  }
  if (operation.kind == OperationKind::kScan || operation.kind == OperationKind::kRemoveRange) {
    Scan(operation, *table, &result);
    if (operation.kind == OperationKind::kScan) return result;
    for (RecordBatch::Iterator it(result.records); it.Valid(); it.Next()) {
      writes_[{operation.table.value, std::string(it.record().key)}] = std::nullopt;
      ++result.removed;
    }
    result.records = RecordBatch();
    return result;
  }
  if (operation.key.empty() || operation.key.size() > kMaxKeyBytes) {
    result.status = DEUT_ERROR(kInvalidArgument, "a key has 1 to ", kMaxKeyBytes, " bytes, not ", operation.key.size());
    return result;
  }
  const std::string key(operation.key);
  const Key place{operation.table.value, key};
  switch (operation.kind) {
    case OperationKind::kGet: {
      ++service_->reads_;
      const Service::Record record = See(place.first, *table, key);
      if (record.value.has_value()) result.records.Append(key, *record.value, record.version);
      break;
    }
    case OperationKind::kInsert:
      if (See(place.first, *table, key).value.has_value()) {
        result.status = DEUT_ERROR(kAlreadyExists, "the key exists");
        return result;
      }
      writes_[place] = std::string(operation.value);
      break;
    case OperationKind::kUpdate:
      if (!See(place.first, *table, key).value.has_value()) {
        result.status = DEUT_ERROR(kNotFound, "no such key");
        return result;
      }
      writes_[place] = std::string(operation.value);
      break;
    case OperationKind::kPut:
      writes_[place] = std::string(operation.value);
      break;
    case OperationKind::kRemove:
      writes_[place] = std::nullopt;
      break;
    case OperationKind::kAdd:
    case OperationKind::kMin:
    case OperationKind::kMax:
      Calculate(operation, *table, &result);
      break;
    case OperationKind::kCompareAndSet: {
      const std::optional<std::string> before = See(place.first, *table, key).value;
      if (operation.expect_absent ? before.has_value() : before != operation.expected) {
        result.status = DEUT_ERROR(kConditionFailed, "the key has another value");
        if (before.has_value()) result.records.Append(key, *before, Version{});
        return result;
      }
      writes_[place] = std::string(operation.value);
      break;
    }
    case OperationKind::kScan:
    case OperationKind::kRemoveRange:
      break;
  }
  return result;
}

Status FakeSession::Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                            Deadline deadline) {
  results->clear();
  FakeFault fault = service_->Fault(FakeCall::kExecute, deadline);
  if (!fault.status.ok() && open_ && operations.size() == 1 && operations[0].prefetch) {
    results->emplace_back().status = fault.status;
    return Status();
  }
  if (!fault.status.ok()) {
    Close();
    return fault.status;
  }
  if (!open_) return DEUT_ERROR(kWrongState, "no transaction is open on this session");
  const MutexLock lock(service_->mutex_);
  for (const Operation& operation : operations) results->push_back(Run(operation));
  return Status();
}

Result<CommitAnswer> FakeSession::Apply() {
  for (const auto& [place, version] : reads_) {
    Service::Table* const table = service_->FindTable(TableId(place.first));
    if (table == nullptr) continue;
    const auto now = table->records.find(place.second);
    if ((now == table->records.end() ? Version{} : now->second.version) != version) {
      return Status::Aborted({.reason = AbortReason::kWriteLater, .table = place.first, .key = place.second},
                             "read meanwhile overwritten");
    }
  }
  for (const auto& [id, change] : scanned_) {
    Service::Table* const table = service_->FindTable(TableId(id));
    if (table != nullptr && table->last_change != change) {
      return Status::Aborted({.reason = AbortReason::kRangeWriter, .table = id, .key = {}},
                             "table changed since it was scanned");
    }
  }
  if (service_->outcomes_.count(id_) != 0) {
    return Status::Aborted({.reason = AbortReason::kRequested}, "its outcome has been asked for");
  }
  const Timestamp timestamp(++service_->last_timestamp_);
  uint32_t sequence = 0;
  for (auto& [place, value] : writes_) {
    Service::Table* const table = service_->FindTable(TableId(place.first));
    if (table == nullptr) continue;
    table->records[place.second] = {std::move(value), Version{timestamp, ++sequence}};
    table->last_change = timestamp;
  }
  const CommitAnswer answer{.timestamp = timestamp, .commit_lsn = Lsn(sequence == 0 ? 0 : timestamp.value)};
  if (sequence != 0 && id_.given()) service_->outcomes_[id_] = {TransactionOutcome::kCommitted, answer};
  return answer;
}

Result<CommitAnswer> FakeSession::Commit(Deadline deadline) {
  FakeFault fault = service_->Fault(FakeCall::kCommit, deadline);
  if (!open_ && fault.status.ok()) return DEUT_ERROR(kWrongState, "no transaction is open on this session");
  Result<CommitAnswer> answer = CommitAnswer{};
  if (fault.status.ok() || fault.applied) {
    const MutexLock lock(service_->mutex_);
    answer = Apply();
  }
  Close();
  if (!fault.status.ok()) return fault.status;
  return answer;
}

Status FakeSession::Abort() {
  Close();
  return service_->Fault(FakeCall::kAbort, kNoDeadline).status;
}

Result<CommitAnswer> FakeSession::ExecuteOneShot(const TransactionOptions& options,
                                                 absl::Span<const Operation> operations,
                                                 std::vector<OperationResult>* results, Deadline deadline) {
  if (service_->on_begin) service_->on_begin(options);
  results->clear();
  FakeFault fault = service_->Fault(FakeCall::kOneShot, deadline);
  if (!fault.status.ok() && !fault.applied) return fault.status;
  const MutexLock lock(service_->mutex_);
  Open();
  id_ = options.name.id;
  for (const Operation& operation : operations) {
    results->push_back(Run(operation));
    if (results->back().status.ok()) continue;
    results->back().failed_precondition_at = Timestamp(service_->last_timestamp_ + 1);
    Close();
    return results->back().status;
  }
  Result<CommitAnswer> answer = Apply();
  Close();
  if (!fault.status.ok()) return fault.status;
  return answer;
}

FakeTransactionService::Table* FakeTransactionService::FindTable(TableId id) {
  const auto found = tables_.find(id.value);
  return found == tables_.end() || found->second.dropped ? nullptr : &found->second;
}

Result<std::unique_ptr<TransactionSession>> FakeTransactionService::NewSession(Deadline deadline) {
  FakeFault fault = Fault(FakeCall::kNewSession, deadline);
  if (!fault.status.ok()) return fault.status;
  ++sessions_opened_;
  return std::unique_ptr<TransactionSession>(std::make_unique<FakeSession>(this));
}

Result<OutcomeAnswer> FakeTransactionService::AskOutcome(const TransactionName& name, Deadline deadline) {
  ++outcomes_asked_;
  FakeFault fault = Fault(FakeCall::kAskOutcome, deadline);
  if (!fault.status.ok()) return fault.status;
  if (forgets_outcomes) return OutcomeAnswer{.outcome = TransactionOutcome::kTooOld};
  const MutexLock lock(mutex_);
  return outcomes_.try_emplace(name.id, OutcomeAnswer{.outcome = TransactionOutcome::kNotCommitted}).first->second;
}

Result<TableId> FakeTransactionService::OpenTable(std::string_view name, Deadline deadline) {
  FakeFault fault = Fault(FakeCall::kOpenTable, deadline);
  if (!fault.status.ok()) return fault.status;
  ++tables_opened_;
  const MutexLock lock(mutex_);
  for (const auto& [id, table] : tables_) {
    if (table.name == name && !table.dropped) return TableId(id);
  }
  return DEUT_ERROR(kNotFound, "no table is named ", std::string(name));
}

Result<TableId> FakeTransactionService::CreateTable(std::string_view name, const TableOptions& /*options*/, Deadline) {
  const MutexLock lock(mutex_);
  for (const auto& [id, table] : tables_) {
    if (table.name == name && !table.dropped)
      return DEUT_ERROR(kAlreadyExists, "there is a table named ", std::string(name));
  }
  const uint32_t id = static_cast<uint32_t>(tables_.size()) + 1;
  tables_[id].name = std::string(name);
  return TableId(id);
}

Status FakeTransactionService::DropTable(std::string_view name, Deadline) {
  const MutexLock lock(mutex_);
  for (auto& [id, table] : tables_) {
    if (table.name != name || table.dropped) continue;
    table.dropped = true;
    return Status();
  }
  return DEUT_ERROR(kNotFound, "no table is named ", std::string(name));
}

Result<std::vector<TableInfo>> FakeTransactionService::ListTables(Deadline) {
  const MutexLock lock(mutex_);
  std::vector<TableInfo> infos;
  for (const auto& [id, table] : tables_) {
    if (!table.dropped) infos.push_back({.id = TableId(id), .name = table.name, .records = table.records.size()});
  }
  return infos;
}

Result<ServiceStatus> FakeTransactionService::GetStatus(Deadline deadline) {
  FakeFault fault = Fault(FakeCall::kStatus, deadline);
  if (!fault.status.ok()) return fault.status;
  const MutexLock lock(mutex_);
  ServiceStatus status{.tc = {{"last_timestamp", last_timestamp_}}, .dc = {{"reads_served", reads_}}};
  if (on_status) on_status(&status);
  return status;
}

Status FakeTransactionService::DropCaches(Deadline deadline) { return Fault(FakeCall::kDropCaches, deadline).status; }

std::optional<std::string> FakeTransactionService::Peek(TableId table, const std::string& key) {
  const MutexLock lock(mutex_);
  Table* const found = FindTable(table);
  if (found == nullptr) return std::nullopt;
  const auto record = found->records.find(key);
  return record == found->records.end() ? std::nullopt : record->second.value;
}

void FakeTransactionService::Poke(TableId table, const std::string& key, std::optional<std::string> value) {
  const MutexLock lock(mutex_);
  const Timestamp timestamp(++last_timestamp_);
  Table* const found = FindTable(table);
  found->records[key] = {std::move(value), Version{timestamp, 1}};
  found->last_change = timestamp;
}

size_t FakeTransactionService::Records(TableId table) {
  const MutexLock lock(mutex_);
  size_t live = 0;
  for (const auto& [key, record] : FindTable(table)->records) live += record.value.has_value() ? 1 : 0;
  return live;
}

}  // namespace deut::testing

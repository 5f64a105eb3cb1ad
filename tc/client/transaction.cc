#include "tc/client/transaction.h"

#include <algorithm>
#include <utility>

#include "protocol/limits.h"
#include "tc/client/transaction_state.h"

namespace deut {
namespace {

// Keys of one call of MultiGet, so that their message stays far below kMaxMessageBytes.
constexpr size_t kMaxKeyBytesPerCall = 1 << 20;

std::optional<std::string> FirstValue(const RecordBatch& records) {
  const RecordBatch::Iterator it(records);
  if (!it.Valid()) return std::nullopt;
  return std::string(it.record().value);
}

}  // namespace

Transaction::Transaction(std::unique_ptr<TransactionState> state) : state_(std::move(state)) {}
Transaction::Transaction(Transaction&&) noexcept = default;
Transaction& Transaction::operator=(Transaction&&) noexcept = default;
Transaction::~Transaction() = default;

Timestamp Transaction::timestamp() const { return state_->timestamp(); }
bool Transaction::open() const { return state_ != nullptr && state_->open(); }
const Status& Transaction::status() const { return state_->status(); }

Status Transaction::Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                            const CallOptions& call) {
  return state_->Execute(operations, results, call);
}

Status Transaction::ExecuteOne(const Operation& operation, const CallOptions& call) {
  DEUT_RETURN_IF_ERROR(state_->Execute(absl::MakeConstSpan(&operation, 1), &state_->results, call));
  return state_->results[0].status;
}

Result<std::optional<std::string>> Transaction::Get(TableId table, std::string_view key, const CallOptions& call) {
  DEUT_RETURN_IF_ERROR(ExecuteOne({.kind = OperationKind::kGet, .table = table, .key = key}, call));
  return FirstValue(state_->results[0].records);
}

Status Transaction::MultiGet(TableId table, absl::Span<const std::string_view> keys,
                             std::vector<std::optional<std::string>>* values, const CallOptions& call) {
  values->clear();
  values->reserve(keys.size());
  for (size_t next = 0; next < keys.size();) {
    state_->operations.clear();
    size_t key_bytes = 0;
    for (; next < keys.size() && state_->operations.size() < kMaxOperationsPerCall && key_bytes < kMaxKeyBytesPerCall;
         ++next) {
      state_->operations.push_back({.kind = OperationKind::kGet, .table = table, .key = keys[next]});
      key_bytes += keys[next].size();
    }
    DEUT_RETURN_IF_ERROR(state_->Execute(state_->operations, &state_->results, call));
    for (const OperationResult& result : state_->results) {
      DEUT_RETURN_IF_ERROR(result.status);
      values->push_back(FirstValue(result.records));
    }
  }
  return Status();
}

Status Transaction::Put(TableId table, std::string_view key, std::string_view value, const CallOptions& call) {
  return ExecuteOne({.kind = OperationKind::kPut, .table = table, .key = key, .value = value}, call);
}

Status Transaction::Insert(TableId table, std::string_view key, std::string_view value, const CallOptions& call) {
  return ExecuteOne({.kind = OperationKind::kInsert, .table = table, .key = key, .value = value}, call);
}

Status Transaction::Update(TableId table, std::string_view key, std::string_view value, const CallOptions& call) {
  return ExecuteOne({.kind = OperationKind::kUpdate, .table = table, .key = key, .value = value}, call);
}

Status Transaction::Remove(TableId table, std::string_view key, const CallOptions& call) {
  return ExecuteOne({.kind = OperationKind::kRemove, .table = table, .key = key}, call);
}

Result<ScanResult> Transaction::Scan(TableId table, const ScanOptions& options, const CallOptions& call) {
  ScanOptions limited = options;
  if (limited.limit_bytes == 0) limited.limit_bytes = kDefaultScanBytes;
  Scanner scanner(state_.get(), table, std::move(limited), call);
  return scanner.ReadAll();
}

Scanner Transaction::OpenScanner(TableId table, ScanOptions options, const CallOptions& call) {
  return Scanner(state_.get(), table, std::move(options), call);
}

Result<CommitAnswer> Transaction::Commit(const CallOptions& call) { return state_->Commit(call); }
Status Transaction::Abort() { return state_->Abort(); }

}  // namespace deut

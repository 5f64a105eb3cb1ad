#include "tc/client/transaction.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "protocol/limits.h"
#include "protocol/number.h"
#include "tc/client/transaction_state.h"

namespace deut {
namespace {

// The most bytes of keys in one message of MultiGet. So the message stays far below kMaxMessageBytes.
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
const TransactionName& Transaction::name() const { return state_->name(); }
bool Transaction::open() const { return state_ != nullptr && state_->open(); }
const Status& Transaction::status() const { return state_->status(); }

Status Transaction::Execute(absl::Span<const Operation> operations, std::vector<OperationResult>* results,
                            const CallOptions& call) {
  return state_->Execute(operations, results, call);
}

Status Transaction::ExecuteOne(const Operation& operation, const CallOptions& call) {
  Status status = state_->Execute(absl::MakeConstSpan(&operation, 1), &state_->results, call);
  if (!status.ok()) {
    // What an earlier call returned must not look like this call's result.
    state_->results.clear();
    return status;
  }
  DEUT_DCHECK(state_->results.size() == 1);  // TransactionState has refused all other answers
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
    DEUT_DCHECK(values->size() == next);
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

Result<int64_t> Transaction::ChangeNumber(OperationKind kind, TableId table, std::string_view key, int64_t operand,
                                          const CallOptions& call) {
  const std::string bytes = EncodeNumber(operand);
  DEUT_RETURN_IF_ERROR(ExecuteOne({.kind = kind, .table = table, .key = key, .value = bytes}, call));
  const std::optional<std::string> value = FirstValue(state_->results[0].records);
  const std::optional<int64_t> number = value.has_value() ? DecodeNumber(*value) : std::nullopt;
  if (!number.has_value()) return DEUT_ERROR(kInternal, "the answer to an atomic operation holds no number");
  return *number;
}

Result<int64_t> Transaction::Add(TableId table, std::string_view key, int64_t by, const CallOptions& call) {
  return ChangeNumber(OperationKind::kAdd, table, key, by, call);
}

Result<int64_t> Transaction::Min(TableId table, std::string_view key, int64_t with, const CallOptions& call) {
  return ChangeNumber(OperationKind::kMin, table, key, with, call);
}

Result<int64_t> Transaction::Max(TableId table, std::string_view key, int64_t with, const CallOptions& call) {
  return ChangeNumber(OperationKind::kMax, table, key, with, call);
}

Status Transaction::CompareAndSet(TableId table, std::string_view key, std::optional<std::string_view> expected,
                                  std::string_view value, std::optional<std::string>* found, const CallOptions& call) {
  Status status = ExecuteOne({.kind = OperationKind::kCompareAndSet,
                              .table = table,
                              .key = key,
                              .value = value,
                              .expected = expected.value_or(std::string_view()),
                              .expect_absent = !expected.has_value()},
                             call);
  // A peer that says so of the whole call gives no result.
  if (status == ErrorCode::kConditionFailed && found != nullptr && !state_->results.empty()) {
    *found = FirstValue(state_->results[0].records);
  }
  return status;
}

Result<std::string> Transaction::PutStampedKey(TableId table, std::string_view key, uint32_t offset,
                                               std::string_view value, const CallOptions& call) {
  DEUT_RETURN_IF_ERROR(ExecuteOne({.kind = OperationKind::kPut,
                                   .table = table,
                                   .key = key,
                                   .value = value,
                                   .stamp = Stamp::kKey,
                                   .stamp_offset = offset},
                                  call));
  const RecordBatch::Iterator it(state_->results[0].records);
  if (!it.Valid()) return DEUT_ERROR(kInternal, "the answer to a stamped put names no key");
  return std::string(it.record().key);
}

Status Transaction::PutStampedValue(TableId table, std::string_view key, std::string_view value, uint32_t offset,
                                    const CallOptions& call) {
  return ExecuteOne({.kind = OperationKind::kPut,
                     .table = table,
                     .key = key,
                     .value = value,
                     .stamp = Stamp::kValue,
                     .stamp_offset = offset},
                    call);
}

Result<uint64_t> Transaction::RemoveRange(TableId table, std::string_view low, std::string_view high,
                                          const CallOptions& call) {
  uint64_t removed = 0;
  std::string from(low);
  for (;;) {
    DEUT_RETURN_IF_ERROR(
        ExecuteOne({.kind = OperationKind::kRemoveRange, .table = table, .low = from, .high = high}, call));
    OperationResult& batch = state_->results[0];
    removed += batch.removed;
    if (batch.complete) return removed;
    from = std::move(batch.resume);
  }
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

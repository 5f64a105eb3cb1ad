#include "tc/record_manager/record_manager.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "protocol/number.h"
#include "tc/record_manager/commit_path.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/read_path.h"
#include "tc/record_manager/scan_path.h"
#include "tc/record_manager/write_path.h"
#include "tc/scan/resumable_scan.h"

namespace deut::tc {
namespace {

// About the number of cache misses that a processor has in flight at a time.
constexpr size_t kFetchedAhead = 8;

Status CheckOpen(const Transaction& txn) {
  if (txn.state() == Transaction::State::kOpen) [[likely]]
    return Status::Ok();
  return DEUT_ERROR(kWrongState, "the transaction has ended already");
}

}  // namespace

void RecordManager::EndScans(Transaction& txn) {
  txn.scans_.clear();
  txn.prefetched_scan_.reset();
}

Transaction::Transaction() = default;
Transaction::~Transaction() = default;

void Transaction::Reset() {
  // Sets what CommitPath::Begin does not set. The rest was given back when the transaction ended.
  DEUT_DCHECK(state_ != State::kOpen || slot_.index == SlotId().index);
  DEUT_DCHECK(record_ == nullptr && declared_.empty() && many_posted_.empty());
  state_ = State::kOpen;
  depends_on_ = commit_lsn_ = Lsn();
  writer_ = false;
  next_sequence_ = 1;
  written_bytes_ = 0;
  counted_list_bytes_ = 0;
  scans_.clear();
}

Result<std::unique_ptr<Transaction>> RecordManager::Begin(const TransactionOptions& options, Deadline deadline,
                                                          std::unique_ptr<Transaction> ended) {
  std::unique_ptr<Transaction> txn = std::move(ended);
  if (txn == nullptr) {
    txn = std::make_unique<Transaction>();
  } else {
    txn->Reset();
  }
  CommitPath commits(engine_);
  DEUT_RETURN_IF_ERROR(commits.Begin(*txn, options, deadline));
  if (options.declared.empty()) return txn;
  WritePath writes(engine_, *txn);
  for (const DeclaredKey& declared : options.declared) {
    Status status = txn->snapshot() ? DEUT_ERROR(kInvalidArgument, "a snapshot transaction declares no writes")
                                    : writes.Declare(declared.table, declared.key);
    // The table was dropped since an earlier attempt wrote there. A declaration is a hint; an operation on the table
    // will report it.
    if (status == ErrorCode::kNotFound) continue;
    if (!status.ok()) {
      commits.Abort(*txn, status.abort() != nullptr ? status.abort()->reason : AbortReason::kFailedOperation);
      return status;
    }
  }
  return txn;
}

Status RecordManager::BeginUndeclared(Transaction& ended, const TransactionOptions& options, Deadline deadline) {
  DEUT_DCHECK(options.declared.empty());
  ended.Reset();
  Status begun = CommitPath(engine_).Begin(ended, options, deadline);
  if (!begun.ok()) [[unlikely]]
    ended.state_ = Transaction::State::kAborted;
  return begun;
}

Result<CommitAnswer> RecordManager::ReadAlone(Transaction& txn, const Operation& get, OperationResult* result,
                                              Deadline deadline, Lsn* durable_at) {
  CommitPath commits(engine_);
  result->status = ReadPath(engine_, txn).Get(get.table, get.key, &result->records, deadline);
  const ErrorCode code = result->status.code();
  if (code != ErrorCode::kOk && code != ErrorCode::kNotFound && code != ErrorCode::kInvalidArgument) [[unlikely]] {
    commits.Abort(txn,
                  result->status.abort() != nullptr ? result->status.abort()->reason : AbortReason::kFailedOperation);
    return result->status;
  }
  Result<CommitAnswer> answer = commits.Commit(txn, deadline, durable_at);
  DEUT_DCHECK(txn.state_ != Transaction::State::kOpen);
  // An answer about the table is provisional until the transaction has committed (D1), like any other answer.
  if (answer.ok() && code != ErrorCode::kOk) [[unlikely]]
    return result->status;
  return answer;
}

void RecordManager::FetchAhead(absl::Span<const Operation> operations) const {
  for (const Operation& operation : operations.first(std::min(operations.size(), kFetchedAhead))) {
    if (!operation.key.empty()) engine_.records.Prefetch(RecordTable::Hash(operation.table, operation.key));
  }
}

Status RecordManager::Get(Transaction& txn, TableId table, std::string_view key, RecordBatch* result,
                          Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  return ReadPath(engine_, txn).Get(table, key, result, deadline);
}

Status RecordManager::MultiGet(Transaction& txn, absl::Span<const Operation* const> gets,
                               absl::Span<OperationResult* const> results, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  return ReadPath(engine_, txn).MultiGet(gets, results, deadline);
}

Status RecordManager::Put(Transaction& txn, TableId table, std::string_view key, std::string_view value) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  return WritePath(engine_, txn).Write(table, key, false, value, {}, kNoDeadline);
}

Status RecordManager::Remove(Transaction& txn, TableId table, std::string_view key) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  return WritePath(engine_, txn).Write(table, key, true, {}, {}, kNoDeadline);
}

Status RecordManager::Insert(Transaction& txn, TableId table, std::string_view key, std::string_view value,
                             Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  return WritePath(engine_, txn)
      .Write(table, key, false, value, {.precondition = WritePath::Precondition::kAbsent}, deadline);
}

Status RecordManager::Update(Transaction& txn, TableId table, std::string_view key, std::string_view value,
                             Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  return WritePath(engine_, txn)
      .Write(table, key, false, value, {.precondition = WritePath::Precondition::kPresent}, deadline);
}

Status RecordManager::Change(Transaction& txn, const Operation& operation, RecordBatch* result, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  WritePath::Condition condition{
      .precondition = WritePath::Precondition::kNumber, .number_kind = operation.kind, .result = result};
  if (operation.kind == OperationKind::kCompareAndSet) {
    condition.expected = operation.expected;
    condition.precondition =
        operation.expect_absent ? WritePath::Precondition::kAbsent : WritePath::Precondition::kEquals;
  } else if (operation.value.size() != kNumberBytes) {
    return DEUT_ERROR(kInvalidArgument, "value: a number has ", kNumberBytes, " bytes, not ", operation.value.size());
  }
  return WritePath(engine_, txn).Write(operation.table, operation.key, false, operation.value, condition, deadline);
}

Status RecordManager::PutStamped(Transaction& txn, const Operation& operation, RecordBatch* result, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  if (operation.kind != OperationKind::kPut && operation.kind != OperationKind::kInsert)
    return DEUT_ERROR(kInvalidArgument, "stamp: only a put or an insert writes a timestamp");
  std::string key(operation.key), value(operation.value);
  std::string& stamped = operation.stamp == Stamp::kKey ? key : value;
  if (uint64_t{operation.stamp_offset} + kStampBytes > stamped.size()) {
    return DEUT_ERROR(kInvalidArgument, "stamp_offset: ", operation.stamp_offset, " and ", kStampBytes,
                      " bytes go beyond the ", stamped.size(), " bytes to be stamped");
  }
  for (uint32_t i = 0; i < kStampBytes; ++i) {
    stamped[operation.stamp_offset + i] =
        static_cast<char>(txn.timestamp().value >> (8 * (kStampBytes - 1 - i)));  // most significant first
  }
  WritePath::Condition condition;
  if (operation.kind == OperationKind::kInsert) condition.precondition = WritePath::Precondition::kAbsent;
  DEUT_RETURN_IF_ERROR(WritePath(engine_, txn).Write(operation.table, key, false, value, condition, deadline));
  result->Append(key, {}, Version{.timestamp = txn.timestamp()});
  return Status::Ok();
}

Status RecordManager::RemoveRange(Transaction& txn, const Operation& operation, OperationResult* result,
                                  Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  DEUT_RETURN_IF_ERROR(CheckRangeControl(engine_));
  Operation scan = operation;
  scan.kind = OperationKind::kScan;
  scan.for_update = true;
  scan.scan_sequence = 0;
  OperationResult found;
  // The next batch opens a scan of its own, which sees the tombstones of this one. So a kept state would not be
  // continued.
  DEUT_RETURN_IF_ERROR(ScanPath(engine_, txn, scan, &found, deadline).Run(/*keep_state=*/false));
  WritePath writes(engine_, txn);
  for (RecordBatch::Iterator it(found.records); it.Valid(); it.Next()) {
    DEUT_RETURN_IF_ERROR(writes.Write(operation.table, it.record().key, true, {}, {}, deadline));
    ++result->removed;
  }
  result->complete = found.complete;
  result->resume = std::move(found.resume);
  result->scan_sequence = found.scan_sequence;
  return Status::Ok();
}

Status RecordManager::Scan(Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  DEUT_RETURN_IF_ERROR(CheckRangeControl(engine_));
  return ScanPath(engine_, txn, scan, result, deadline).Run();
}

bool RecordManager::HasResumableScans(const Transaction& txn) { return !txn.scans_.empty(); }

void RecordManager::EndIdleStreams(Transaction& txn, MonotonicTime used_before) {
  for (const std::unique_ptr<ResumableScan>& scan : txn.scans_) {
    if (scan->bulk.stream != nullptr && scan->bulk.last_used < used_before) scan->EndStream();
  }
}

Result<CommitAnswer> RecordManager::Commit(Transaction& txn, Deadline deadline, Lsn* durable_at) {
  EndScans(txn);
  if (durable_at != nullptr) *durable_at = Lsn(0);  // Commit leaves it alone if there is nothing to wait for
  return CommitPath(engine_).Commit(txn, deadline, durable_at);
}

void RecordManager::Abort(Transaction& txn, AbortReason reason) {
  EndScans(txn);
  CommitPath(engine_).Abort(txn, reason);
}

Status RecordManager::AbortAcknowledged(Transaction& txn, Deadline deadline, Lsn* durable_at) {
  EndScans(txn);
  if (durable_at != nullptr) *durable_at = Lsn(0);
  return CommitPath(engine_).AbortAcknowledged(txn, deadline, durable_at);
}

}  // namespace deut::tc

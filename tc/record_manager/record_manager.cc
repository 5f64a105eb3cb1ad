#include "tc/record_manager/record_manager.h"

#include <utility>

#include "common/base/concat.h"
#include "tc/record_manager/commit_path.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/read_path.h"
#include "tc/record_manager/scan_path.h"
#include "tc/record_manager/write_path.h"

namespace deut::tc {
namespace {

Status CheckOpen(const Transaction& txn) {
  if (txn.state() == Transaction::State::kOpen) [[likely]]
    return Status::Ok();
  return DEUT_ERROR(kWrongState, "the transaction has ended already");
}

}  // namespace

Result<std::unique_ptr<Transaction>> RecordManager::Begin(const TransactionOptions& options, Deadline deadline) {
  CommitPath commits(engine_);
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<Transaction> txn, commits.Begin(options, deadline));
  if (options.declared.empty()) return txn;
  WritePath writes(engine_, *txn);
  for (const DeclaredKey& declared : options.declared) {
    Status status = txn->snapshot() ? DEUT_ERROR(kInvalidArgument, "a snapshot transaction declares no writes")
                                    : writes.Declare(declared.table, declared.key);
    // Dropped since an earlier attempt wrote there: declaring is a hint, and who uses the table will be told.
    if (status == ErrorCode::kNotFound) continue;
    if (!status.ok()) {
      commits.Abort(*txn, status.abort() != nullptr ? status.abort()->reason : AbortReason::kFailedOperation);
      return status;
    }
  }
  return txn;
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
  return WritePath(engine_, txn).Write(table, key, false, value, WritePath::Precondition::kNone, kNoDeadline);
}

Status RecordManager::Remove(Transaction& txn, TableId table, std::string_view key) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  return WritePath(engine_, txn).Write(table, key, true, {}, WritePath::Precondition::kNone, kNoDeadline);
}

Status RecordManager::Insert(Transaction& txn, TableId table, std::string_view key, std::string_view value,
                             Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  return WritePath(engine_, txn).Write(table, key, false, value, WritePath::Precondition::kAbsent, deadline);
}

Status RecordManager::Update(Transaction& txn, TableId table, std::string_view key, std::string_view value,
                             Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  return WritePath(engine_, txn).Write(table, key, false, value, WritePath::Precondition::kPresent, deadline);
}

Status RecordManager::Scan(Transaction& txn, const Operation& scan, OperationResult* result, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckOpen(txn));
  return ScanPath(engine_, txn, scan, result, deadline).Run();
}

Result<CommitAnswer> RecordManager::Commit(Transaction& txn, Deadline deadline) {
  return CommitPath(engine_).Commit(txn, deadline);
}

void RecordManager::Abort(Transaction& txn, AbortReason reason) { CommitPath(engine_).Abort(txn, reason); }

Status RecordManager::AbortAcknowledged(Transaction& txn, Deadline deadline) {
  return CommitPath(engine_).AbortAcknowledged(txn, deadline);
}

}  // namespace deut::tc

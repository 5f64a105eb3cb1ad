// Creating and dropping tables (rule T1): transactions of their own whose one update is logged and shipped in its place.
#include "common/base/concat.h"
#include "common/testing/test_points.h"
#include "tc/record_manager/commit_path.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/record_manager.h"

namespace deut::tc {
namespace {

TransactionOptions TableChange() { return TransactionOptions{}; }

// Closed to new look-ups, last_read raised, then every range's postings: an earlier writer that is not decided is a conflict. A writer that
// publishes after this look finds the table closed and aborts.
Status ExcludeWriters(Engine& engine, TableState& table, Timestamp self) {
  table.set_open(false);
  if (!DEUT_OMITTED("T1.raise_table")) table.RaiseLastRead(self);
  ReclamationDomain::Guard guard(engine.domain);
  const RangeMap& map = table.map();
  Status conflict;
  for (size_t i = 0; i < map.size() && conflict.ok(); ++i) {
    map.at(i).RaiseLastRead(self);
    map.at(i).ForEachPosting([&](const TransactionRecord& record) {
      const TransactionStatus status = record.status();
      if (status == TransactionStatus::kActive || status == TransactionStatus::kCommitting) {
        conflict = Conflict(engine, AbortReason::kTableWriter, self, table.id(), {}, record.timestamp());
      }
      return conflict.ok();
    });
  }
  return conflict;
}

}  // namespace

Result<TableId> RecordManager::CreateTable(std::string_view name, Deadline deadline) {
  DEUT_ASSIGN_OR_RETURN(const TableId id, engine_.catalogue.ReserveId(name));
  CommitPath commits(engine_);
  Result<std::unique_ptr<Transaction>> txn = commits.Begin(TableChange(), deadline);
  if (!txn.ok()) {
    engine_.catalogue.CancelReservation(name);
    return txn.status();
  }
  const tc::Update create{.kind = LogEntryKind::kCreateTable, .sequence = 1, .table = id, .key = name, .value = {}};
  Result<CommitAnswer> committed = commits.CommitUpdates(**txn, {&create, 1}, deadline);
  if (!committed.ok() && !(committed.status() == ErrorCode::kOutcomeUnknown)) {
    engine_.catalogue.CancelReservation(name);
    return committed.status();
  }
  if (!committed.ok()) {
    // Ordered in the log, not acknowledged: this process goes on with the table; a restart may not know it.
    engine_.catalogue.Add(id, name, Position{engine_.log.tail(), 0});
    return committed.status();
  }
  engine_.catalogue.Add(id, name, Position{committed->commit_lsn, create.sequence});
  return id;
}

Status RecordManager::DropTable(std::string_view name, Deadline deadline) {
  DEUT_ASSIGN_OR_RETURN(TableState* const table, engine_.catalogue.FindByName(name));
  CommitPath commits(engine_);
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<Transaction> txn, commits.Begin(TableChange(), deadline));
  if (Status excluded = ExcludeWriters(engine_, *table, txn->timestamp()); !excluded.ok()) {
    commits.Abort(*txn, excluded.abort() != nullptr ? excluded.abort()->reason : AbortReason::kFailedOperation);
    table->set_open(true);
    return excluded;
  }
  const tc::Update drop{
      .kind = LogEntryKind::kDropTable, .sequence = 1, .table = table->id(), .key = table->name(), .value = {}};
  Result<CommitAnswer> committed = commits.CommitUpdates(*txn, {&drop, 1}, deadline);
  if (!committed.ok() && !(committed.status() == ErrorCode::kOutcomeUnknown)) {
    table->set_open(true);
    return committed.status();
  }
  engine_.catalogue.Forget(table);
  return committed.status();
}

}  // namespace deut::tc

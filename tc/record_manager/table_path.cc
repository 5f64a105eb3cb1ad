// Creating and dropping tables (rule T1): each is a transaction of its own, whose one update is logged and shipped at
// its place in the order.
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/testing/test_points.h"
#include "tc/record_manager/commit_path.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/find_table.h"
#include "tc/record_manager/record_manager.h"

namespace deut::tc {
namespace {

TransactionOptions TableChange() { return TransactionOptions{}; }

// SIX over the table, which is closed already: raises its last_read, then looks at every range's postings. A writer
// that is not decided is a conflict. So is everything later than the drop: a committed write, or a read of a range. A
// writer that publishes after this look finds the table's word changed. There are no later readers: a transaction
// that has found the table open is earlier than the drop, whose timestamp was drawn after the table was closed.
Status ExcludeWriters(Engine& engine, TableState& table, Timestamp self) {
  table.RaiseLastRead(self);
  DEUT_CHECK(table.last_read() >= self);
  ReclamationDomain::Guard guard(engine.domain);
  const RangeMap& map = table.map();
  Status conflict;
  for (size_t i = 0; i < map.size() && conflict.ok(); ++i) {
    if (const Timestamp read = map.at(i).last_read(); read > self) {
      conflict = Conflict(engine, AbortReason::kRangeReadLater, self, table.id(), map.at(i).low(), read);
    }
    map.at(i).ForEachPosting([&](const TransactionRecord& record) {
      const TransactionStatus status = record.status();
      const bool undecided = status == TransactionStatus::kActive || status == TransactionStatus::kCommitting;
      const bool later = status == TransactionStatus::kCommitted && record.timestamp() > self;
      if ((undecided || later) && DEUT_STEP("T1.look")) {
        conflict = Conflict(engine, AbortReason::kTableWriter, self, table.id(), {}, record.timestamp());
      }
      return conflict.ok();
    });
  }
  // Committed writers whose keys are in runs. They come after the postings, as in a gather (S8).
  if (const Timestamp latest = table.runs().latest(); conflict.ok() && latest > self) {
    conflict = Conflict(engine, AbortReason::kTableWriter, self, table.id(), {}, latest);
  }
  return conflict;
}

void Reopen(Engine& engine, TableState& table) {
  ReclamationDomain::Guard guard(engine.domain);
  table.Reopen(engine.domain);
}

}  // namespace

Result<TableState*> FindTable(Engine& engine, Transaction& txn, TableId id, bool for_write) {
  TableState* const table = engine.catalogue.FindAlsoDropped(id);
  if (table == nullptr) return Catalogue::NotFound(id);
  if (table->open()) [[likely]]
    return table;
  if (DEUT_OMITTED("T1.drop_decides")) return Catalogue::NotFound(id);
  ReclamationDomain::Guard guard(engine.domain);
  const TransactionRecord* const dropper = table->dropper();
  if (dropper != nullptr && dropper->status() == TransactionStatus::kCommitted &&
      dropper->timestamp() < txn.timestamp_) {
    txn.DependOn(dropper->commit_lsn());
    return Catalogue::NotFound(id);
  }
  if (txn.snapshot()) return table;
  const bool earlier = dropper != nullptr && txn.timestamp_ < dropper->timestamp();
  if (earlier && !for_write) return table;
  // If nothing is known of the drop but that it has begun, it may be earlier or later.
  return Conflict(engine, earlier ? AbortReason::kTableReadLater : AbortReason::kTableWriter, txn.timestamp_, id, {},
                  dropper == nullptr ? Timestamp{} : dropper->timestamp());
}

Result<TableId> RecordManager::CreateTable(std::string_view name, const TableOptions& options, Deadline deadline) {
  // An earlier DC would refuse the log from the creation on.
  if (options != TableOptions() && !engine_.dc.KnowsTableOptions()) {
    return DEUT_ERROR(kVersionMismatch,
                      "the data component is of an earlier version, which knows no options of tables;",
                      " create the table without them, or replace the data component");
  }
  DEUT_ASSIGN_OR_RETURN(const TableId id, engine_.catalogue.ReserveId(name));
  CommitPath commits(engine_);
  Transaction txn;
  if (Status begun = commits.Begin(txn, TableChange(), deadline, /*writes=*/true); !begun.ok()) {
    engine_.catalogue.CancelReservation(name);
    return begun;
  }
  const std::string value = EncodeTableOptions(options);
  const tc::Update create{.kind = LogEntryKind::kCreateTable, .sequence = 1, .table = id, .key = name, .value = value};
  Result<CommitAnswer> committed = commits.CommitUpdates(txn, {&create, 1}, deadline);
  if (!committed.ok() && !(committed.status() == ErrorCode::kOutcomeUnknown)) {
    engine_.catalogue.CancelReservation(name);
    return committed.status();
  }
  // The creation is ordered in the log, but perhaps not acknowledged. This process goes on with the table; a restart
  // may not know it.
  DEUT_CHECK(txn.commit_lsn() != Lsn{0});
  engine_.catalogue.AddCreated(id, name, Position{txn.commit_lsn(), create.sequence});
  if (!committed.ok()) return committed.status();
  return id;
}

Status RecordManager::DropTable(std::string_view name, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckRangeControl(engine_));
  DEUT_ASSIGN_OR_RETURN(const Catalogue::TablePointer table, engine_.catalogue.FindByName(name));
  // One drop at a time. From here on no other thread finds the table, unless the drop fails and opens it again.
  if (DEUT_STEP("T1.close") && !table->TryClose()) return Catalogue::NotFound(table->id());
  CommitPath commits(engine_);
  Transaction txn;
  if (Status begun = commits.Begin(txn, TableChange(), deadline, /*writes=*/true); !begun.ok()) {
    Reopen(engine_, *table);
    return begun;
  }
  DEUT_CHECK(!table->open());
  table->SetDropper(&txn.Record());
  if (Status excluded = ExcludeWriters(engine_, *table, txn.timestamp()); !excluded.ok()) {
    commits.Abort(txn, excluded.abort() != nullptr ? excluded.abort()->reason : AbortReason::kFailedOperation);
    Reopen(engine_, *table);
    return excluded;
  }
  const tc::Update drop{
      .kind = LogEntryKind::kDropTable, .sequence = 1, .table = table->id(), .key = table->name(), .value = {}};
  Result<CommitAnswer> committed = commits.CommitUpdates(txn, {&drop, 1}, deadline);
  if (!committed.ok() && !(committed.status() == ErrorCode::kOutcomeUnknown)) {
    Reopen(engine_, *table);
    return committed.status();
  }
  // The creation precedes the drop in the log, hence at the DC (T1).
  DEUT_CHECK(txn.commit_lsn() > table->created_at().commit);
  engine_.catalogue.MarkDropped(table, Position{txn.commit_lsn(), drop.sequence});
  engine_.collector.FreeTables();
  return committed.status();
}

}  // namespace deut::tc

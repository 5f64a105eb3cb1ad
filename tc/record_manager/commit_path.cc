#include "tc/record_manager/commit_path.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/record_version.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/pinned.h"

namespace deut::tc {
namespace {

bool HasPut(absl::Span<const Update> updates) {
  return std::ranges::any_of(updates, [](const Update& update) { return update.kind == LogEntryKind::kPut; });
}

Status EndedAlready() { return DEUT_ERROR(kWrongState, "commit: the transaction has ended already"); }

}  // namespace

Status CommitPath::Begin(Transaction& txn, const TransactionOptions& options, Deadline deadline, bool writes) {
  txn.name_ = options.name;
  txn.durability_ = options.durability;
  txn.snapshot_ = options.isolation == Isolation::kSnapshot;
  DEUT_ASSIGN_OR_RETURN(const ActiveTransactions::Begun begun,
                        txn.snapshot_ ? engine_.active.BeginSnapshot(options.min_timestamp, deadline)
                                      : engine_.active.Begin(deadline, writes));
  txn.writer_ = writes;
  txn.slot_ = begun.slot;
  txn.timestamp_ = begun.timestamp;
  DEUT_DCHECK(engine_.active.low_water() <= begun.timestamp);  // L1, until the transaction ends
  engine_.counters.begun.Add(1);
  return Status::Ok();
}

CommitPath::Writes CommitPath::WritesOf(const Transaction& txn) {
  Writes writes;
  if (txn.record_ == nullptr) return writes;
  txn.record_->ForEachWrite([&](const WriteItem& item) {
    if (item.version != nullptr) writes.items.push_back(&item);
  });
  // Only the last version of a key is logged (S10), so a key written twice is logged at its last sequence.
  if (writes.items.size() > 1) {
    std::ranges::sort(writes.items, {}, [](const WriteItem* item) { return item->version->sequence; });
  }
  writes.updates.reserve(writes.items.size());
  for (const WriteItem* const item : writes.items) {
    DEUT_DCHECK(item->version->transaction == txn.record_ && !item->version->logged);
    DEUT_DCHECK(writes.updates.empty() || writes.updates.back().sequence < item->version->sequence);
    DEUT_DCHECK(item->version->sequence < txn.next_sequence_);
    writes.updates.push_back(Update{.kind = item->version->tombstone ? LogEntryKind::kDelete : LogEntryKind::kPut,
                                    .sequence = item->version->sequence,
                                    .table = item->table,
                                    .key = item->key,
                                    .value = item->version->value()});
  }
  writes.places.resize(writes.items.size());
  return writes;
}

Result<CommitAnswer> CommitPath::Commit(Transaction& txn, Deadline deadline, Lsn* durable_at) {
  if (txn.record_ == nullptr) return CommitNothing(txn, deadline, durable_at);
  return CommitWrites(txn, WritesOf(txn), deadline, durable_at);
}

Result<CommitAnswer> CommitPath::CommitUpdates(Transaction& txn, absl::Span<const Update> updates, Deadline deadline) {
  return CommitWrites(txn, Writes{.updates = {updates.begin(), updates.end()}, .items = {}, .places = {}}, deadline,
                      nullptr);
}

Result<CommitAnswer> CommitPath::CommitNothing(Transaction& txn, Deadline deadline, Lsn* durable_at) {
  if (txn.state_ != Transaction::State::kOpen) return EndedAlready();
  if (txn.record_ != nullptr && !txn.record_->TryStartCommit()) {
    Abort(txn, AbortReason::kIdle);
    return Conflict(engine_, AbortReason::kIdle, txn.timestamp_, TableId{}, {}, Timestamp{});
  }
  if (txn.record_ != nullptr) FinishCommit(*txn.record_, Lsn{0});
  const CommitAnswer answer{.timestamp = txn.timestamp_, .commit_lsn = Lsn{0}};
  Finish(txn, Transaction::State::kCommitted);
  engine_.counters.committed.Add(1);
  // Nothing was written, so if the wait fails the outcome is not unknown: the transaction is only not acknowledged.
  if (txn.durability_ == Durability::kDurable)
    DEUT_RETURN_IF_ERROR(WaitAcknowledged(txn, Lsn{0}, deadline, durable_at));
  return answer;
}

Result<CommitAnswer> CommitPath::CommitWrites(Transaction& txn, Writes writes, Deadline deadline, Lsn* durable_at) {
  if (writes.updates.empty()) return CommitNothing(txn, deadline, durable_at);
  if (txn.state_ != Transaction::State::kOpen) return EndedAlready();
  DEUT_ASSIGN_OR_RETURN(const CommitAnswer answer, Append(txn, writes, deadline));
  if (txn.durability_ == Durability::kDurable) {
    if (Status durable = WaitAcknowledged(txn, answer.commit_lsn, deadline, durable_at); !durable.ok()) {
      return DEUT_ERROR(kOutcomeUnknown, "transaction ", txn.timestamp_.value, " is ordered at log position ",
                        answer.commit_lsn.value, " but not known to be durable: ", durable.message());
    }
  }
  return answer;
}

Result<CommitAnswer> CommitPath::Append(Transaction& txn, Writes& writes, Deadline deadline) {
  const absl::Span<const Update> updates = writes.updates;
  const TransactionId id = engine_.outcomes != nullptr ? txn.name_.id : TransactionId{};
  Result<SpaceClaim> space = engine_.log.ReserveSpace(updates, id, deadline);  // D5
  if (!space.ok()) {
    Abort(txn, AbortReason::kFailedOperation);
    return space.status();
  }
  // X7: this look comes after the claim, which every later look by any thread counts. So if two commits together need
  // too much, at least one is refused.
  if (!engine_.dc.HasSpace(0) && HasPut(updates) && DEUT_STEP("X7.at_commit")) [[unlikely]] {
    Abort(txn, AbortReason::kFailedOperation);
    return NoSpaceAtDc();
  }
  OutcomeTable::Entry* outcome = nullptr;
  if (id.given()) {
    Result<OutcomeTable::Entry*> begun = engine_.outcomes->BeginCommit(txn.name_, txn.timestamp_);
    if (!begun.ok()) {
      Abort(txn, begun.status() == ErrorCode::kAborted ? AbortReason::kRequested : AbortReason::kFailedOperation);
      return begun.status();
    }
    outcome = *begun;
  }
  TransactionRecord& record = txn.Record();
  if (!record.TryStartCommit()) {
    if (outcome != nullptr) engine_.outcomes->Drop(outcome);
    Abort(txn, AbortReason::kIdle);
    return Conflict(engine_, AbortReason::kIdle, txn.timestamp_, TableId{}, {}, Timestamp{});
  }
  engine_.active.PublishFirstRecord(txn.slot_);  // S2
  DEUT_POINT("commit.before_append");
  if (DEUT_OMITTED("D4.append_first")) record.FinishCommit(Lsn{1});
  DEUT_POINT("commit.appending");
  const AppendResult appended =
      engine_.log.AppendCommit(txn.timestamp_, updates, {}, id, absl::MakeSpan(writes.places), &*space);
  for (size_t i = 0; i < writes.items.size(); ++i) writes.items[i]->version->SetPlace(writes.places[i]);  // S9
  txn.commit_lsn_ = appended.lsn;
  // D1: everything that the transaction has shown or read is in the log before it. So a DC that applies the log in order
  // never has a commit without those on which it rests.
  DEUT_DCHECK(appended.lsn > txn.depends_on_);
  DEUT_DCHECK(engine_.log.tail() > appended.lsn);
  DEUT_POINT("commit.appended");
  // An LSN of 0 stands for "wrote nothing". The log begins with records of its own, so no commit has it.
  FinishCommit(record, appended.lsn);
  if (outcome != nullptr) engine_.outcomes->Finish(outcome, appended.lsn);
  DEUT_POINT("commit.committed");
  const CommitAnswer answer{.timestamp = txn.timestamp_, .commit_lsn = appended.lsn};
  Finish(txn, Transaction::State::kCommitted);
  engine_.counters.committed.Add(1);
  return answer;
}

Status CommitPath::WaitAcknowledged(const Transaction& txn, Lsn own_commit, Deadline deadline, Lsn* durable_at) {
  if (DEUT_OMITTED("D1.wait_dependencies") && own_commit == Lsn{0}) return Status::Ok();
  if (DEUT_OMITTED("D1.wait_own")) return Status::Ok();
  const Lsn last = std::max(own_commit, txn.depends_on_);
  if (last == Lsn{0}) return Status::Ok();
  if (durable_at != nullptr) {
    if (engine_.log.durable() <= last) *durable_at = last;
    return Status::Ok();
  }
  return engine_.log.WaitDurable(last, deadline);
}

void CommitPath::FinishCommit(TransactionRecord& record, Lsn lsn) {
  // R9: the status is stored before the look at `awaited`. A waiter marks it before it looks at the status again, so one
  // of the two sees the other.
  record.FinishCommit(lsn);
  if (record.awaited() && DEUT_STEP("R9.wake")) engine_.runtime.WakeAll(record.status_word());
}

void CommitPath::Abort(Transaction& txn, AbortReason reason) {
  if (txn.state_ != Transaction::State::kOpen) return;
  if (txn.record_ != nullptr && DEUT_STEP("R7.abort")) txn.record_->TryAbort();
  if (reason == AbortReason::kIdle || reason == AbortReason::kRequested || reason == AbortReason::kShutdown ||
      reason == AbortReason::kOverBudget || reason == AbortReason::kFailedOperation) {
    engine_.counters.aborts[static_cast<size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
  Finish(txn, Transaction::State::kAborted);
}

Status CommitPath::AbortAcknowledged(Transaction& txn, Deadline deadline, Lsn* durable_at) {
  Abort(txn, AbortReason::kFailedOperation);
  if (txn.durability_ != Durability::kDurable) return Status::Ok();
  return WaitAcknowledged(txn, Lsn{0}, deadline, durable_at);
}

void CommitPath::Finish(Transaction& txn, Transaction::State state) {
  DEUT_DCHECK(txn.state_ == Transaction::State::kOpen && state != Transaction::State::kOpen);
  // L1: low-water waits for the slot. A transaction that ends below low-water may be missed by the DC and by snapshots.
  DEUT_DCHECK(engine_.active.low_water() <= txn.timestamp_);
  txn.state_ = state;
  if (txn.record_ != nullptr) {
    TransactionRecord* const record = txn.record_;
    txn.record_ = nullptr;
    txn.FreeKeys();
    const bool in_log = record->status() == TransactionStatus::kCommitted && record->commit_lsn() != Lsn{0};
    if (record->nothing_published() && !in_log) {
      // There is nothing to collect and no waiter to wake. A table that the transaction was about to drop may still
      // lead others to the record, so it is freed through the reclamation domain.
      ReclamationDomain::Guard guard(engine_.domain);
      record->DropReference(engine_.domain);
    } else {
      // The collector gets the record before the slot is cleared. From here on this transaction must not touch it.
      engine_.collector.Finish(record);
    }
  }
  engine_.active.End(txn.slot_);
}

}  // namespace deut::tc

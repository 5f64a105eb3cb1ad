#include "tc/record_manager/write_path.h"

#include <optional>
#include <utility>

#include "common/testing/test_points.h"
#include "tc/mvcc/range_table.h"
#include "tc/mvcc/version_chain.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/find_table.h"

namespace deut::tc {

WritePath::WritePath(Engine& engine, Transaction& txn) : engine_(engine), txn_(txn), wait_(engine, txn.timestamp_) {}

void WritePath::PostIntent(Range& range) {
  if (txn_.HasPosted(&range)) return;
  if (!DEUT_OMITTED("R1.post")) range.Post(txn_.record_);
  txn_.record_->posted.push_back(&range);
}

Status WritePath::CheckReads(const TableState& table, std::string_view key, uint64_t hash, bool check_range) {
  const Timestamp self = txn_.timestamp_;
  if (const Timestamp floor = engine_.records.Floor(hash); floor > self && !DEUT_OMITTED("R6.check_floor")) {
    return Conflict(engine_, AbortReason::kBucketFloor, self, table.id(), key, floor);
  }
  if (check_range && !DEUT_OMITTED("R1.check_range")) {
    const RangeMap& map = table.map();
    const Timestamp range_read = map.at(map.IndexOf(key)).last_read();
    if (range_read > self) return Conflict(engine_, AbortReason::kRangeReadLater, self, table.id(), key, range_read);
  }
  if (DEUT_OMITTED("T1.check_table")) return Status::Ok();
  if (const Timestamp table_read = table.last_read(); table_read > self || !table.open()) {
    return Conflict(engine_, AbortReason::kTableReadLater, self, table.id(), key, table_read);
  }
  return Status::Ok();
}

Status WritePath::Declare(TableId table_id, std::string_view key) {
  DEUT_RETURN_IF_ERROR(CheckKey(key));
  DEUT_ASSIGN_OR_RETURN(const TableState* const table, FindTable(engine_, txn_, table_id, true));
  if (DEUT_OMITTED("R11.declare")) return Status::Ok();
  const uint64_t hash = RecordTable::Hash(table_id, key);
  ReclamationDomain::Guard guard(engine_.domain);
  const RangeMap& map = table->map();
  PostIntent(map.at(map.IndexOf(key)));
  WriteItem* const item = txn_.record_->write_set().Publish(table_id, key, hash);
  if (!txn_.declared_.emplace(std::pair(table_id.value, std::string(key)), item).second) return Status::Ok();
  const RangeMap& now = table->map();
  const Timestamp range_read = now.at(now.IndexOf(key)).last_read();
  if (range_read > txn_.timestamp_) {
    return Conflict(engine_, AbortReason::kRangeReadLater, txn_.timestamp_, table_id, key, range_read);
  }
  return Status::Ok();
}

Status WritePath::ExamineHead(const RecordVersion& live, TableId table, std::string_view key, bool* wait) {
  const TransactionStatus status = live.transaction->status();
  if (status == TransactionStatus::kAborted) return Status::Ok();
  const Timestamp other = live.transaction->timestamp();
  if (status != TransactionStatus::kCommitted && !DEUT_OMITTED("R1.head_uncommitted")) {
    *wait = wait_.MayWaitFor(*live.transaction);
    if (*wait) return Status::Ok();
    return Conflict(engine_, AbortReason::kWriteUncommitted, txn_.timestamp_, table, key, other);
  }
  if (other > txn_.timestamp_ && !DEUT_OMITTED("R1.head_later")) {
    return Conflict(engine_, AbortReason::kWriteLater, txn_.timestamp_, table, key, other);
  }
  return Status::Ok();
}

Status WritePath::Install(TableState& table, std::string_view key, uint64_t hash, bool tombstone,
                          std::string_view value, Precondition precondition, Installed* installed) {
  TransactionRecord* const self = txn_.record_;
  const Timestamp timestamp = txn_.timestamp_;
  std::optional<ReclamationDomain::Guard> guard(std::in_place, engine_.domain);
  Range& range = table.map().at(table.map().IndexOf(key));
  // Step 5 follows each publication, also when the intent is there: a scan between passes this writer if the key is not yet published (R8).
  bool check_range = !DEUT_OMITTED("R1.check_each") || !txn_.HasPosted(&range);
  if (!DEUT_OMITTED("R1.post_first")) PostIntent(range);  // step 1
  DEUT_POINT("write.posted");

  WriteItem* item = nullptr;
  if (!txn_.declared_.empty()) {
    if (const auto it = txn_.declared_.find(std::pair(table.id().value, std::string(key)));
        it != txn_.declared_.end()) {
      item = it->second;
      check_range = DEUT_OMITTED("R11.check_once");  // done at the declaration
    }
  }
  RecordVersion* version = nullptr;
  RecordVersion* live = nullptr;
  const auto refuse = [&](Status status) {
    if (version != nullptr) RecordVersion::Destroy(version, engine_.domain);
    return status;
  };
  for (bool done = false; !done;) {
    RecordEntry* const entry = engine_.records.FindOrCreate(hash, table.id(), key);
    HeadWord::Value seen = entry->word.Load();
    while (!seen.dead()) {
      live = LiveHead(seen.head);
      const bool own = live != nullptr && live->transaction == self;
      if (own) {
        item = live->item;
        if (precondition != Precondition::kNone) {
          if (Status judged = Judge(precondition, key, !live->tombstone); !judged.ok())
            return refuse(std::move(judged));
        }
      } else if (item == nullptr) {
        item = self->write_set().Publish(table.id(), key, hash);  // step 2
        DEUT_POINT("write.published");
        seen = entry->word.Load();
        continue;
      }
      if (live != nullptr && !own) {  // step 3
        bool wait = false;
        if (Status examined = ExamineHead(*live, table.id(), key, &wait); !examined.ok())
          return refuse(std::move(examined));
        if (wait) {
          guard.reset();
          wait_.Wait();
          guard.emplace(engine_.domain);
          break;  // from the head that the entry has now
        }
        if (live->dead()) continue;
      }
      // The record's half of step 5: in the same 16-byte compare-and-swap as the install.
      if (!own && seen.last_read() > timestamp && !DEUT_OMITTED("R1.check_record")) {
        return refuse(Conflict(engine_, AbortReason::kRecordReadLater, timestamp, table.id(), key, seen.last_read()));
      }
      if (version == nullptr) version = RecordVersion::Create(self, txn_.next_sequence_, tombstone, value);
      version->item = item;
      version->older.store(live, std::memory_order_relaxed);
      const bool reads = precondition != Precondition::kNone && !DEUT_OMITTED("S10.insert_reads");
      const Timestamp raise_to = reads ? timestamp : Timestamp{0};
      if (InstallVersion(*entry, seen, version, raise_to, engine_.domain)) {
        done = true;
        break;
      }
    }
  }
  DEUT_POINT("write.installed");
  ++txn_.next_sequence_;
  const uint64_t bytes = version->bytes() + key.size() + sizeof(RecordEntry);
  self->version_bytes += bytes;
  engine_.counters.version_bytes.fetch_add(bytes, std::memory_order_relaxed);
  const bool own_before = live != nullptr && live->transaction == self;
  RecordVersion* const replaced = item->version;
  item->version = version;
  installed->version = version;
  if (live != nullptr) {
    installed->answered = true;
    installed->present = !live->tombstone;
    if (!own_before) txn_.DependOn(live->transaction->commit_lsn());
  }
  // A key that is an own write already was checked then; who reads it since meets the own version.
  if (replaced != nullptr || own_before) return Status::Ok();
  Status checked = CheckReads(table, key, hash, check_range);  // steps 4 and 5
  DEUT_POINT("write.checked");
  if (DEUT_OMITTED("R1.post_first")) PostIntent(range);
  return checked;
}

Status WritePath::AskWhetherPresent(const TableState& table, std::string_view key, Deadline deadline, bool* present) {
  *present = false;
  if (!DcKnows(engine_, table)) return Status::Ok();
  DataRequest request;
  request.table = table.id();
  request.key = key;
  DataRequest* const requests[] = {&request};
  engine_.counters.dc_reads.fetch_add(1, std::memory_order_relaxed);
  DEUT_RETURN_IF_ERROR(engine_.dc.Read(requests, deadline));
  DEUT_RETURN_IF_ERROR(request.status);
  for (RecordBatch::Iterator it(request.answer); it.Valid(); it.Next()) {
    DEUT_RETURN_IF_ERROR(CheckVisible(it.record(), txn_.timestamp_));
    *present = true;
  }
  return Status::Ok();
}

Status WritePath::Judge(Precondition precondition, std::string_view key, bool present) {
  if (precondition == Precondition::kAbsent && present) {
    return DEUT_ERROR(kAlreadyExists, "insert: the key ", Quoted(key), " exists");
  }
  if (precondition == Precondition::kPresent && !present) {
    return DEUT_ERROR(kNotFound, "update: there is no key ", Quoted(key));
  }
  return Status::Ok();
}

void WritePath::Withdraw(RecordVersion* version) {
  WriteItem* const item = version->item;
  ReclamationDomain::Guard guard(engine_.domain);
  item->version = nullptr;
  version->withdrawn.store(true, std::memory_order_seq_cst);
}

Status WritePath::Write(TableId table_id, std::string_view key, bool tombstone, std::string_view value,
                        Precondition precondition, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckKey(key));
  DEUT_RETURN_IF_ERROR(CheckValue(value));
  if (txn_.snapshot()) return DEUT_ERROR(kWrongState, "a snapshot transaction is read-only");
  DEUT_ASSIGN_OR_RETURN(TableState* const table, FindTable(engine_, txn_, table_id, true));
  DEUT_POINT("write.table_found");
  if (!tombstone && !engine_.dc.HasSpace(key.size() + value.size())) {
    return DEUT_ERROR(kResourceExhausted,
                      "the data component is short of disk space: puts are refused, deletes and reads go on")
        .WithRetryAfter(1000);
  }
  if (engine_.counters.version_bytes.load(std::memory_order_relaxed) > engine_.version_budget_bytes) {
    return DEUT_ERROR(kResourceExhausted, "versions that the data component has yet to apply take ",
                      engine_.counters.version_bytes.load(std::memory_order_relaxed), " bytes of a budget of ",
                      engine_.version_budget_bytes, " (--version_budget); the oldest open transaction is ",
                      engine_.active.oldest().value)
        .WithRetryAfter(100);
  }
  Installed installed;
  DEUT_RETURN_IF_ERROR(
      Install(*table, key, RecordTable::Hash(table_id, key), tombstone, value, precondition, &installed));
  if (precondition == Precondition::kNone) return Status::Ok();
  if (!installed.answered) {
    if (Status asked = AskWhetherPresent(*table, key, deadline, &installed.present); !asked.ok()) {
      Withdraw(installed.version);
      return asked;
    }
  }
  Status judged = Judge(precondition, key, installed.present);
  if (!judged.ok()) Withdraw(installed.version);
  return judged;
}

}  // namespace deut::tc

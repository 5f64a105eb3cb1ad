#include "tc/record_manager/write_path.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "protocol/number.h"
#include "tc/mvcc/range_table.h"
#include "tc/mvcc/version_chain.h"
#include "tc/record_manager/become_writer.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/find_table.h"
#include "tc/record_manager/logged_value.h"
#include "tc/record_manager/pinned.h"
#include "tc/record_manager/spilled_value.h"

namespace deut::tc {

WritePath::WritePath(Engine& engine, Transaction& txn) : engine_(engine), txn_(txn), wait_(engine, txn.timestamp_) {}

Range& WritePath::PostIntent(const TableState& table, std::string_view key) {
  for (;;) {
    const RangeMap& map = table.map();
    Range& range = map.at(map.IndexOf(key));
    if (txn_.Post(range, DEUT_OMITTED("R1.post"))) return range;
    table.FinishRangeChange();  // P: then the map has changed
  }
}

// One key on its way through R1's steps.
struct WritePath::KeyWrite {
  bool over_own() const { return live != nullptr && live->transaction == self; }

  TransactionRecord* const self;
  TableState& table;
  const std::string_view key;
  const uint64_t hash;
  const Range* posted = nullptr;  // step 1; null: ranges take no part
  bool check_range = true;        // step 5 includes the range
  WriteItem* item = nullptr;      // step 2; null: the key is not published yet
  RecordEntry* entry = nullptr;
  HeadWord::Value seen = {};         // the word that step 3 examines and step 4 replaces
  RecordVersion* live = nullptr;     // the newest live version below that word
  RecordVersion* version = nullptr;  // step 4; no other thread sees it before it is installed
};

void WritePath::PostFirst(KeyWrite& write) {
  const size_t posted_before = write.self->posted.size();
  if (engine_.conflicts.range_control != RangeControl::kNone) {
    if (DEUT_STEP("R1.post_first")) {
      write.posted = &PostIntent(write.table, write.key);
    } else {
      const RangeMap& map = write.table.map();
      write.posted = &map.at(map.IndexOf(write.key));
    }
  }
  DEUT_DCHECK(write.posted == nullptr || write.posted->Contains(write.key));
  // Step 5 follows each publication, even if the intent was posted before. A scan in between has passed this writer
  // if the key was not published yet (R8).
  write.check_range = DEUT_STEP("R1.check_each") || write.self->posted.size() > posted_before;
  DEUT_POINT("write.posted");
  if (txn_.declared_.empty()) return;
  const auto declared = txn_.declared_.find(std::pair(write.table.id().value, std::string(write.key)));
  if (declared == txn_.declared_.end()) return;
  write.item = declared->second;
  write.check_range = DEUT_OMITTED("R11.check_once");  // checked at the declaration
}

bool WritePath::PublishKey(KeyWrite& write) {
  write.live = LiveHead(write.seen.head);
  if (write.over_own()) write.item = write.live->item;
  if (write.item != nullptr) return false;
  write.item = write.self->MakeWriteSet().Publish(write.table.id(), write.key, write.hash, &engine_.domain);
  DEUT_POINT("write.published");
  // The word is loaded after the publication, so that all traces of this writer precede its look at last_read.
  write.seen = write.entry->word.Load();
  return true;
}

Timestamp WritePath::RangeRead(const TableState& table, const Range& posted, std::string_view key) {
  if (DEUT_OMITTED("P.reload_map")) return posted.last_read();
  // A range is sealed before the map is swung. So a range found unsealed after the publication is in the map of that
  // moment, and no search is needed to find it.
  if (const std::optional<Timestamp> read = posted.last_read_unless_sealed()) return *read;
  const RangeMap& map = table.map();
  const Range& present = map.at(map.IndexOf(key));
  DEUT_DCHECK(present.Contains(key));
  return present.last_read();
}

void WritePath::CountPinned(uint64_t version_bytes) {
  TransactionRecord& self = *txn_.record_;
  // S9: the growth since the last count, apart from versions.
  const size_t posted = self.posted.size();
  const size_t own = std::min<size_t>(posted, 1);  // the first is part of the record
  const uint64_t lists = self.bytes() + posted * sizeof(Range*) + (posted - own) * sizeof(Posting);
  DEUT_DCHECK(lists >= txn_.counted_list_bytes_);  // until the transaction has ended its lists only grow
  const uint64_t bytes = version_bytes + lists - std::exchange(txn_.counted_list_bytes_, lists);
  self.pinned_bytes += bytes;
  engine_.counters.pinned_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

Status WritePath::CheckReads(const TableState& table, const Range* posted, std::string_view key, uint64_t hash) {
  const Timestamp self = txn_.timestamp_;
  if (const Timestamp floor = engine_.records.Floor(hash, self); floor > self && DEUT_STEP("R6.check_floor")) {
    return Conflict(engine_, AbortReason::kBucketFloor, self, table.id(), key, floor);
  }
  if (posted != nullptr && DEUT_STEP("R1.check_range")) {
    const Timestamp range_read = RangeRead(table, *posted, key);
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
  DEUT_RETURN_IF_ERROR(BecomeWriter(engine_, txn_, table_id, key));
  const uint64_t hash = RecordTable::Hash(table_id, key);
  const auto [declared, is_new] = txn_.declared_.try_emplace(std::pair(table_id.value, std::string(key)), nullptr);
  if (!is_new) return Status::Ok();
  ReclamationDomain::Guard guard(engine_.domain);
  const Range* const posted =
      engine_.conflicts.range_control == RangeControl::kNone ? nullptr : &PostIntent(*table, key);
  declared->second = txn_.Record().MakeWriteSet().Publish(table_id, key, hash, &engine_.domain);
  if (posted != nullptr) {
    const Timestamp range_read = RangeRead(*table, *posted, key);
    if (range_read > txn_.timestamp_) {
      return Conflict(engine_, AbortReason::kRangeReadLater, txn_.timestamp_, table_id, key, range_read);
    }
  }
  CountPinned(0);
  return Status::Ok();
}

Status WritePath::ExamineHead(const KeyWrite& write, const Condition& condition, Installed* installed, Next* next) {
  if (write.over_own()) return JudgeOwn(*write.live, write.key, condition, installed);
  const Timestamp self = txn_.timestamp_;
  if (write.live != nullptr) {
    DEUT_POINT("write.head_seen");
    const TransactionStatus status = write.live->transaction->status();
    const Timestamp other = write.live->transaction->timestamp();
    const bool uncommitted = status == TransactionStatus::kActive || status == TransactionStatus::kCommitting;
    if (uncommitted && DEUT_STEP("R1.head_uncommitted")) {
      if (wait_.MayWaitFor(*write.live->transaction)) {
        *next = Next::kWait;
        return Status::Ok();
      }
      return Conflict(engine_, AbortReason::kWriteUncommitted, self, write.table.id(), write.key, other);
    }
    if (status != TransactionStatus::kAborted && other > self && DEUT_STEP("R1.head_later")) {
      return Conflict(engine_, AbortReason::kWriteLater, self, write.table.id(), write.key, other);
    }
    // R4: the transaction found decided may have withdrawn this version before that, after the chain was looked at.
    if (write.live->dead() && DEUT_STEP("R4.live_again")) {
      *next = Next::kExamineAgain;
      return Status::Ok();
    }
  }
  // The record's half of step 5. The install is a compare-and-swap of the same 16 bytes, so no read comes in between
  // unseen.
  if (const Timestamp read = write.seen.last_read(); read > self && DEUT_STEP("R1.check_record")) {
    return Conflict(engine_, AbortReason::kRecordReadLater, self, write.table.id(), write.key, read);
  }
  return Status::Ok();
}

Status WritePath::JudgeOwn(const RecordVersion& own, std::string_view key, const Condition& condition,
                           Installed* installed) const {
  if (condition.precondition == Precondition::kNone) return Status::Ok();
  installed->present = !own.tombstone;
  if (condition.reads_value()) installed->value = own.value();
  Status judged = CheckCondition(condition, key, *installed);
  if (!judged.ok()) ShowFound(condition, key, judged, *installed);
  return judged;
}

bool WritePath::SwapHead(KeyWrite& write, const Condition& condition) {
  RecordVersion* const live = write.live;
  DEUT_DCHECK(write.version->sequence == txn_.next_sequence_);
  // R4: a chain is in descending order of versions. (A copy stands for the record of the DC, which is older than all.)
  DEUT_DCHECK(live == nullptr || live->of_dc() || live->version() < write.version->version());
  write.version->item = write.item;
  const bool over_copy = live != nullptr && live->of_dc();  // S7: the copy goes
  write.version->older.store(over_copy ? nullptr : live, std::memory_order_relaxed);
  const bool reads = condition.precondition != Precondition::kNone && DEUT_STEP("S10.insert_reads");
  const Timestamp raise_to = reads ? txn_.timestamp_ : Timestamp{0};
  if (!InstallVersion(*write.entry, write.seen, write.version, raise_to, engine_.domain)) return false;
  if (over_copy) engine_.read_cache->Replaced(*live);
  return true;
}

bool WritePath::NoteInstalled(const KeyWrite& write, const Condition& condition, Installed* installed) {
  DEUT_DCHECK(write.item->table == write.table.id() && write.item->key == write.key);
  ++txn_.next_sequence_;
  CountPinned(write.version->bytes() + sizeof(RecordEntry) + write.key.size());
  const RecordVersion* const live = write.live;
  const RecordVersion* const replaced = std::exchange(write.item->version, write.version);
  write.item->entry = write.entry;
  installed->version = write.version;
  if (live != nullptr) {
    installed->answered = true;
    installed->present = !live->tombstone;
    if (condition.reads_value() && live->paged_out) {
      installed->in_log = LoggedAs(*live, write.table.id(), write.key);
    } else if (condition.reads_value()) {
      installed->value = live->value();
    }
    if (!write.over_own()) txn_.DependOn(live->transaction->commit_lsn());
  }
  return replaced == nullptr && !write.over_own();
}

Status WritePath::Install(TableState& table, std::string_view key, uint64_t hash, bool tombstone,
                          std::string_view value, const Condition& condition, Installed* installed) {
  KeyWrite write{.self = &txn_.Record(), .table = table, .key = key, .hash = hash};
  std::optional<ReclamationDomain::Guard> guard(std::in_place, engine_.domain);
  PostFirst(write);  // step 1
  for (bool done = false; !done;) {
    write.entry = engine_.records.FindOrCreate(hash, table.id(), key);
    write.seen = write.entry->word.Load();
    // The word of a sealed entry is dead. The next look at the table finds or makes another entry (R5).
    while (!done && !write.seen.dead()) {
      if (PublishKey(write)) continue;  // step 2
      Next next = Next::kInstall;
      if (Status lost = ExamineHead(write, condition, installed, &next); !lost.ok()) {  // step 3
        if (write.version != nullptr) RecordVersion::Destroy(write.version, engine_.domain);
        return lost;
      }
      if (next == Next::kExamineAgain) continue;
      if (next == Next::kWait) {
        guard.reset();
        wait_.Wait();
        guard.emplace(engine_.domain);
        break;  // starts again from the head that the entry has now
      }
      if (write.version == nullptr) {
        write.version = RecordVersion::Create(write.self, txn_.next_sequence_, tombstone, value);
      }
      done = SwapHead(write, condition);  // step 4
    }
  }
  DEUT_POINT("write.installed");
  txn_.written_bytes_ += RedoLog::UpdateBytes(key, value);
  // A key that was an own write already was checked then. A read of it since then meets the own version.
  if (!NoteInstalled(write, condition, installed)) return Status::Ok();
  Status checked = CheckReads(table, write.check_range ? write.posted : nullptr, key, hash);  // step 5
  DEUT_POINT("write.checked");
  if (DEUT_OMITTED("R1.post_first")) PostIntent(table, key);
  return checked;
}

Status WritePath::AskWhetherPresent(const TableState& table, std::string_view key, const Condition& condition,
                                    Deadline deadline, Installed* installed) {
  installed->present = false;
  if (!DcKnows(engine_, table)) return Status::Ok();
  DataRequest request;
  request.table = table.id();
  request.key = key;
  DataRequest* const requests[] = {&request};
  engine_.counters.dc_reads.Add(1);
  DEUT_RETURN_IF_ERROR(engine_.dc.Read(requests, deadline));
  DEUT_RETURN_IF_ERROR(request.status);
  for (RecordBatch::Iterator it(request.answer); it.Valid(); it.Next()) {
    DEUT_RETURN_IF_ERROR(CheckVisible(it.record(), txn_.timestamp_));
    installed->present = true;
    if (condition.reads_value()) installed->value = it.record().value;
  }
  return Status::Ok();
}

Status WritePath::LookInSpilled(const TableState& table, std::string_view key, const Condition& condition,
                                Installed* installed, bool* found) {
  if (NothingSpilled(engine_)) return Status::Ok();
  SpillReader runs = LookAtSpilled(engine_);
  if (runs.empty()) return Status::Ok();
  DEUT_ASSIGN_OR_RETURN(const std::optional<SpilledVersion> version, runs.Find(table.id(), key, txn_.timestamp_));
  if (!version) return Status::Ok();
  engine_.counters.spilled_reads.fetch_add(1, std::memory_order_relaxed);
  if (!version->tombstone && condition.reads_value()) {
    const Status read = ReadLogged(engine_, LoggedAs(*version), &installed->value);
    if (read == ErrorCode::kNotFound) return Status::Ok();  // S2: the DC has it
    DEUT_RETURN_IF_ERROR(read);
  }
  installed->present = !version->tombstone;
  *found = true;
  return Status::Ok();
}

Status WritePath::Complete(const TableState& table, std::string_view key, const Condition& condition, Deadline deadline,
                           Installed* installed) {
  if (installed->answered && !installed->in_log) return Status::Ok();
  if (installed->in_log) {
    const Status read = ReadLogged(engine_, *installed->in_log, &installed->value);
    if (read != ErrorCode::kNotFound) return read;  // else (S2) the DC has it
  }
  if (!installed->answered) {
    bool found = false;
    DEUT_RETURN_IF_ERROR(LookInSpilled(table, key, condition, installed, &found));
    if (found) return Status::Ok();
  }
  return AskWhetherPresent(table, key, condition, deadline, installed);
}

Status WritePath::CheckCondition(const Condition& condition, std::string_view key, const Installed& found) {
  switch (condition.precondition) {
    case Precondition::kNone:
      return Status::Ok();
    case Precondition::kAbsent:
      if (!found.present) return Status::Ok();
      if (condition.result == nullptr) return DEUT_ERROR(kAlreadyExists, "insert: the key ", Quoted(key), " exists");
      break;
    case Precondition::kPresent:
      if (found.present) return Status::Ok();
      return DEUT_ERROR(kNotFound, "update: there is no key ", Quoted(key));
    case Precondition::kEquals:
      if (found.present && found.value == condition.expected) return Status::Ok();
      break;
    case Precondition::kNumber:
      if (!found.present || found.value.size() == kNumberBytes) return Status::Ok();
      return DEUT_ERROR(kInvalidArgument, "the key ", Quoted(key), " has a value of ", found.value.size(),
                        " bytes, which is no number of ", kNumberBytes);
  }
  return DEUT_ERROR(kConditionFailed, "compare and set: the key ", Quoted(key),
                    found.present ? " has another value" : " is absent");
}

void WritePath::ShowFound(const Condition& condition, std::string_view key, const Status& judged,
                          const Installed& found) const {
  if (judged != ErrorCode::kConditionFailed || !found.present) return;
  condition.result->Append(key, found.value, Version{.timestamp = txn_.timestamp_});
}

std::string WritePath::NumberAfter(OperationKind kind, std::string_view operand, const Installed& found) {
  DEUT_DCHECK(operand.size() == kNumberBytes);
  if (!found.present && kind != OperationKind::kAdd) return std::string(operand);
  DEUT_DCHECK(!found.present || found.value.size() == kNumberBytes);
  const int64_t before = found.present ? *DecodeNumber(found.value) : 0;
  const int64_t by = *DecodeNumber(operand);
  if (kind == OperationKind::kMin) return EncodeNumber(std::min(before, by));
  if (kind == OperationKind::kMax) return EncodeNumber(std::max(before, by));
  return EncodeNumber(static_cast<int64_t>(static_cast<uint64_t>(before) + static_cast<uint64_t>(by)));  // wraps
}

void WritePath::Withdraw(RecordVersion* version) {
  WriteItem* const item = version->item;
  DEUT_DCHECK(item->version == version);
  DEUT_DCHECK(version->transaction == txn_.record_);
  ReclamationDomain::Guard guard(engine_.domain);
  item->version = nullptr;
  version->withdrawn.store(true, std::memory_order_seq_cst);
}

Status WritePath::Write(TableId table_id, std::string_view key, bool tombstone, std::string_view value,
                        const Condition& condition, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckKey(key));
  DEUT_RETURN_IF_ERROR(CheckValue(value));
  const uint64_t hash = RecordTable::Hash(table_id, key);
  engine_.records.Prefetch(hash);
  if (txn_.snapshot()) return DEUT_ERROR(kWrongState, "a snapshot transaction is read-only");
  DEUT_ASSIGN_OR_RETURN(TableState* const table, FindTable(engine_, txn_, table_id, true));
  DEUT_POINT("write.table_found");
  const uint64_t logged_bytes = RedoLog::UpdateBytes(key, value);
  const uint64_t with_this = txn_.written_bytes_ + logged_bytes;
  if (with_this > engine_.max_transaction_bytes)
    return OverTransactionLimit(engine_, txn_.written_bytes_, logged_bytes);
  if (!tombstone && !engine_.dc.HasSpace(with_this)) {
    return NoSpaceAtDc();
  }
  if (!MayPin(engine_, txn_.record_)) return OverBudget(engine_);
  DEUT_RETURN_IF_ERROR(BecomeWriter(engine_, txn_, table_id, key));
  Installed installed;
  DEUT_RETURN_IF_ERROR(Install(*table, key, hash, tombstone, value, condition, &installed));
  if (condition.precondition == Precondition::kNone) return Status::Ok();
  if (Status completed = Complete(*table, key, condition, deadline, &installed); !completed.ok()) {
    Withdraw(installed.version);
    return completed;
  }
  RecordVersion* const version = installed.version;
  Status judged = CheckCondition(condition, key, installed);
  if (!judged.ok()) {
    ShowFound(condition, key, judged, installed);
    Withdraw(version);
  } else if (condition.precondition == Precondition::kNumber) {
    version->Fill(NumberAfter(condition.number_kind, value, installed));
    condition.result->Append(key, version->value(), version->version());
  }
  return judged;
}

}  // namespace deut::tc

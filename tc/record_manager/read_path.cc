#include "tc/record_manager/read_path.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/version_chain.h"
#include "tc/record_manager/conflict.h"
#include "tc/record_manager/find_table.h"
#include "tc/record_manager/logged_value.h"
#include "tc/record_manager/remember_read.h"
#include "tc/record_manager/spilled_value.h"

namespace deut::tc {

ReadPath::ReadPath(Engine& engine, Transaction& txn)
    : engine_(engine),
      txn_(txn),
      wait_(engine, txn.timestamp_),
      spills_(engine.spilled == nullptr ? 0 : engine.spilled->spills().load(std::memory_order_seq_cst)) {}

ReadPath::Found ReadPath::LookInChain(TableId table, std::string_view key, RecordBatch* result, Status* failed) {
  std::optional<InLog> in_log;
  for (;;) {
    if (const std::optional<Found> found = Look(table, key, result, failed, &in_log)) {
      return *found == Found::kAsk ? LookInSpilled(table, key, result, failed) : *found;
    }
    if (in_log) return ReadFromLog(in_log->put, in_log->version, result, failed);
    wait_.Wait();
  }
}

ReadPath::Found ReadPath::LookInSpilled(TableId table, std::string_view key, RecordBatch* result, Status* failed) {
  if (NothingSpilled(engine_)) return Found::kAsk;
  SpillReader runs = LookAtSpilled(engine_);
  if (runs.empty()) return Found::kAsk;
  found_runs_ = true;
  const Result<std::optional<SpilledVersion>> found = runs.Find(table, key, txn_.timestamp_);
  if (!found.ok()) {
    *failed = found.status();
    return Found::kFailed;
  }
  if (!*found) return Found::kAsk;
  engine_.counters.spilled_reads.fetch_add(1, std::memory_order_relaxed);
  const SpilledVersion& version = **found;
  if (version.tombstone) return Found::kAnswered;
  return ReadFromLog(LoggedAs(version), version.version(), result, failed);
}

ReadPath::Found ReadPath::ReadFromLog(const LoggedPut& put, Version version, RecordBatch* result, Status* failed) {
  std::string value;
  const Status read = ReadLogged(engine_, put, &value);
  if (read == ErrorCode::kNotFound && DEUT_STEP("S2.trimmed_is_at_the_dc")) return Found::kAsk;
  if (!read.ok()) {
    *failed = read;
    return Found::kFailed;
  }
  result->Append(put.key, value, version);
  return Found::kAnswered;
}

std::optional<ReadPath::Found> ReadPath::Look(TableId table, std::string_view key, RecordBatch* result, Status* failed,
                                              std::optional<InLog>* in_log) {
  const uint64_t hash = RecordTable::Hash(table, key);
  const ReaderView view{.timestamp = txn_.timestamp_, .self = txn_.record_};
  ReclamationDomain::Guard guard(engine_.domain);
  Visible visible;
  for (;;) {
    RecordTable::MissedLookup absence;
    RecordEntry* entry = engine_.records.Find(hash, table, key, &absence);
    if (entry == nullptr && !txn_.snapshot()) {
      // R6: remember the read, then look for the entry once more, then ask the DC.
      DEUT_POINT("read.absent");
      entry = RememberRead(engine_, absence, hash, table, key, txn_.timestamp_, DEUT_OMITTED("R6.raise_floor"));
    }
    if (entry == nullptr) return Found::kAsk;
    const HeadWord::Value word = txn_.snapshot() || DEUT_OMITTED("R2.record_raise")
                                     ? entry->word.Load()
                                     : RecordTable::RaiseLastRead(*entry, txn_.timestamp_);
    if (word.dead()) continue;
    DEUT_POINT("read.head_loaded");
    visible = FindVisible(word.head, view);
    // A transaction that has committed since the head was loaded may have written the key once more before it did.
    // The version that it has itself replaced must not be seen. The version that it had installed last is reachable
    // from the head that is loaded now, so the loop looks again.
    const bool others = visible.kind == Visible::Kind::kVersion && visible.version->transaction != txn_.record_;
    if (!others || entry->word.Load().head == word.head || DEUT_OMITTED("R2.last_version")) break;
  }
  switch (visible.kind) {
    case Visible::Kind::kNothing:
      return Found::kAsk;
    case Visible::Kind::kConflict:
      if (wait_.MayWaitFor(*visible.version->transaction)) return std::nullopt;
      *failed = Conflict(engine_, AbortReason::kReadUncommitted, txn_.timestamp_, table, key,
                         visible.version->transaction->timestamp());
      return Found::kFailed;
    case Visible::Kind::kVersion:
      break;
  }
  if (visible.version->transaction != txn_.record_) {
    DEUT_DCHECK(visible.version->version().timestamp < txn_.timestamp_);
    txn_.DependOn(visible.version->transaction->commit_lsn());
  }
  if (visible.version->paged_out) {
    *in_log = InLog{.put = LoggedAs(*visible.version, table, key), .version = visible.version->version()};
    return std::nullopt;
  }
  if (!visible.version->tombstone) result->Append(key, visible.version->value(), visible.version->version());
  if (visible.version->of_dc()) {
    ReadCache::Use(*visible.version);
    engine_.counters.cache_reads.Add(1);
  } else {
    engine_.counters.reads_from_versions.Add(1);
  }
  return Found::kAnswered;
}

void ReadPath::KeepAnswer(TableId table, std::string_view key, const RecordBatch& answer) {
  if (engine_.read_cache == nullptr || (found_runs_ && DEUT_STEP("S7.not_over_spilled"))) return;
  // S7: the reader counts in the low-water until its answer is kept. So nothing newer than the answer is collected.
  DEUT_DCHECK(engine_.active.low_water() <= txn_.timestamp_);
  if (DEUT_OMITTED("S7.in_low_water")) engine_.active.End(txn_.slot_);
  DEUT_POINT("read.before_fill");
  const SpillWatch spilled =
      engine_.spilled == nullptr ? SpillWatch{} : SpillWatch{&engine_.spilled->spills(), spills_};
  RecordBatch::Iterator it(answer);
  const std::optional<std::string_view> value = it.Valid() ? std::optional(it.record().value) : std::nullopt;
  if (engine_.read_cache->Fill(RecordTable::Hash(table, key), table, key, value, spilled)) engine_.collector.MakeRoom();
  if (DEUT_OMITTED("S7.in_low_water")) txn_.slot_ = engine_.active.Begin(kNoDeadline)->slot;
}

Status ReadPath::Get(TableId table, std::string_view key, RecordBatch* result, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(CheckKey(key));
  DEUT_ASSIGN_OR_RETURN(const TableState* const state, FindTable(engine_, txn_, table, false));
  Status failed;
  switch (LookInChain(table, key, result, &failed)) {
    case Found::kAnswered:
      return Status::Ok();
    case Found::kFailed:
      return failed;
    case Found::kAsk:
      break;
  }
  if (!DcKnows(engine_, *state)) return Status::Ok();
  DataRequest request;
  request.kind = DataRequest::Kind::kRead;
  request.table = table;
  request.key = key;
  if (result->empty()) request.answer = std::exchange(*result, RecordBatch());  // reuses its memory
  DataRequest* const requests[] = {&request};
  engine_.counters.dc_reads.Add(1);
  DEUT_RETURN_IF_ERROR(engine_.dc.Read(requests, deadline));
  DEUT_RETURN_IF_ERROR(request.status);
  DEUT_RETURN_IF_ERROR(CheckAllVisible(request.answer, txn_.timestamp_));
  KeepAnswer(table, key, request.answer);
  *result = std::move(request.answer);
  return Status::Ok();
}

Status ReadPath::MultiGet(absl::Span<const Operation* const> gets, absl::Span<OperationResult* const> results,
                          Deadline deadline) {
  std::vector<DataRequest> asks(gets.size());
  std::vector<DataRequest*> asked;
  std::vector<OperationResult*> asked_results;
  for (size_t i = 0; i < gets.size(); ++i) {
    const Operation& get = *gets[i];
    results[i]->status = CheckKey(get.key);
    if (!results[i]->status.ok()) continue;
    const Result<TableState*> table = FindTable(engine_, txn_, get.table, false);
    if (!table.ok()) {
      results[i]->status = table.status();
      if (table.status() == ErrorCode::kNotFound) continue;
      return table.status();
    }
    Status failed;
    const Found found = LookInChain(get.table, get.key, &results[i]->records, &failed);
    if (found == Found::kFailed) return results[i]->status = failed;
    if (found == Found::kAnswered || !DcKnows(engine_, **table)) continue;
    DataRequest& request = asks[i];
    request.table = get.table;
    request.key = get.key;
    asked.push_back(&request);
    asked_results.push_back(results[i]);
  }
  if (asked.empty()) return Status::Ok();
  engine_.counters.dc_reads.Add(asked.size());
  DEUT_RETURN_IF_ERROR(engine_.dc.Read(absl::MakeSpan(asked), deadline));
  for (size_t i = 0; i < asked.size(); ++i) {
    DEUT_RETURN_IF_ERROR(asked[i]->status);
    DEUT_RETURN_IF_ERROR(CheckAllVisible(asked[i]->answer, txn_.timestamp_));
    KeepAnswer(asked[i]->table, asked[i]->key, asked[i]->answer);
    asked_results[i]->records = std::move(asked[i]->answer);
  }
  return Status::Ok();
}

}  // namespace deut::tc

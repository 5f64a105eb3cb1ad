#include "integration/history/recorder.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/runtime/random.h"
#include "integration/history/history_text.h"
#include "integration/history/stored_scan.h"

namespace deut::history {
namespace {

int64_t Nanos(Runtime& runtime) { return runtime.Now().time_since_epoch().count(); }

// The table under which the ends of tables are recorded. No table of the store has this id.
constexpr uint32_t kEnds = 0;

std::string EndOf(TableId table) { return Concat("end", table.value); }

// NOT_FOUND has two causes, a missing key and a missing table. True for a missing table.
bool IsNoTable(const Status& status) {
  return status == ErrorCode::kNotFound && status.message().starts_with("there is no table");
}

}  // namespace

history::Scan RequestedScan(const ScanOptions& options) {
  return {.low = options.low,
          .high = options.high,
          .descending = options.direction == Direction::kDescending,
          .limit = options.limit_records,
          .reached_low = options.low,
          .reached_high = options.high,
          .results = {}};
}

void SetReached(history::Scan* scan, std::string resume) {
  (scan->descending ? scan->reached_low : scan->reached_high) = std::move(resume);
}

std::vector<StoredRecord> AddBatchToScan(const RecordBatch& batch, history::Scan* scan) {
  std::vector<StoredRecord> records;
  for (RecordBatch::Iterator it(batch); it.Valid(); it.Next()) {
    records.push_back({.key = std::string(it.record().key), .value = ParseStored(it.record().value)});
    scan->results.emplace_back(records.back().key, records.back().value.value);
  }
  return records;
}

std::string StoredText(const Value& value, std::string_view payload, size_t longest_padding) {
  std::string text = ToText(value);
  if (!payload.empty()) ConcatTo(&text, " ", payload);
  if (longest_padding > 0) {
    text.push_back(' ');
    text.append(Mix64(value.id.writer * 64 + value.id.sequence) % longest_padding, '.');
  }
  return text;
}

StoredValue ParseStored(std::string_view text) {
  StoredValue stored;
  if (!ConsumeValue(&text, &stored.value) || (!text.empty() && !text.starts_with(' '))) return {};
  if (!text.empty()) stored.payload = text.substr(1);
  return stored;
}

OperationRecord RecordedTransaction::Begin(OperationKind kind, TableId table, std::string_view key) {
  OperationRecord operation;
  operation.kind = kind;
  operation.table = table.value;
  operation.key = key;
  operation.invoke = Nanos(runtime_);
  return operation;
}

void RecordedTransaction::End(OperationRecord operation) {
  operation.complete = Nanos(runtime_);
  record_->operations.push_back(std::move(operation));
}

Result<std::optional<StoredValue>> RecordedTransaction::Get(TableId table, std::string_view key) {
  OperationRecord operation = Begin(OperationKind::kRead, table, key);
  const Result<std::optional<std::string>> text = transaction_->Get(table, key);
  DEUT_RETURN_IF_ERROR(NoteTableStatus(table, text.status()));
  std::optional<StoredValue> stored;
  if (*text) {
    stored = ParseStored(**text);
    operation.value = stored->value;
  }
  End(std::move(operation));
  return stored;
}

Status RecordedTransaction::Write(OperationKind kind, TableId table, std::string_view key, std::string_view payload) {
  OperationRecord operation = Begin(kind, table, key);
  operation.value = NextValue();
  const std::string text = StoredText(*operation.value, payload, padding_);
  const Status status = kind == OperationKind::kInsert   ? transaction_->Insert(table, key, text)
                        : kind == OperationKind::kUpdate ? transaction_->Update(table, key, text)
                                                         : transaction_->Put(table, key, text);
  if (IsNoTable(NoteTableStatus(table, status))) return status;
  if (status.ok()) {
    ++sequence_;
    End(std::move(operation));
  } else if (status == ErrorCode::kAlreadyExists || status == ErrorCode::kNotFound) {
    operation.value.reset();
    operation.kind = status == ErrorCode::kNotFound ? OperationKind::kRead : OperationKind::kPresent;
    End(std::move(operation));
  }
  return status;
}

Status RecordedTransaction::Put(TableId table, std::string_view key, std::string_view payload) {
  return Write(OperationKind::kWrite, table, key, payload);
}

Status RecordedTransaction::Insert(TableId table, std::string_view key, std::string_view payload) {
  return Write(OperationKind::kInsert, table, key, payload);
}

Status RecordedTransaction::Update(TableId table, std::string_view key, std::string_view payload) {
  return Write(OperationKind::kUpdate, table, key, payload);
}

Status RecordedTransaction::Append(TableId table, std::string_view key) {
  DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> list, Get(table, key));
  OperationRecord operation = Begin(OperationKind::kAppend, table, key);
  operation.value = NextValue();
  Value longer = *operation.value;
  if (list) {
    longer.before = list->value.before;
    longer.before.push_back(list->value.id);
  }
  DEUT_RETURN_IF_ERROR(NoteTableStatus(table, transaction_->Put(table, key, StoredText(longer, "", padding_))));
  ++sequence_;
  End(std::move(operation));
  return Status();
}

Status RecordedTransaction::Remove(TableId table, std::string_view key) {
  OperationRecord operation = Begin(OperationKind::kDelete, table, key);
  DEUT_RETURN_IF_ERROR(NoteTableStatus(table, transaction_->Remove(table, key)));
  End(std::move(operation));
  return Status();
}

Status RecordedTransaction::CompareAndSet(TableId table, std::string_view key, std::string_view payload) {
  OperationRecord operation = Begin(OperationKind::kInsert, table, key);
  operation.value = NextValue();
  const std::string text = StoredText(*operation.value, payload, padding_);
  std::optional<std::string> found;
  Status status = NoteTableStatus(table, transaction_->CompareAndSet(table, key, std::nullopt, text, &found));
  if (status == ErrorCode::kConditionFailed && found.has_value()) {
    OperationRecord read = Begin(OperationKind::kRead, table, key);
    read.value = ParseStored(*found).value;
    End(std::move(read));
    operation = Begin(OperationKind::kUpdate, table, key);
    operation.value = NextValue();
    status = NoteTableStatus(table, transaction_->CompareAndSet(table, key, *found, text));
    if (status == ErrorCode::kConditionFailed)
      status = DEUT_ERROR(kCorruption, "a key has two values in one transaction");
  }
  DEUT_RETURN_IF_ERROR(status);
  ++sequence_;
  End(std::move(operation));
  return status;
}

Status RecordedTransaction::RemoveRange(TableId table, const std::string& low, const std::string& high) {
  ScanOptions options;
  options.low = low;
  options.high = high;
  DEUT_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, Scan(table, options));
  std::vector<OperationRecord> deletes;
  for (const StoredRecord& record : records) deletes.push_back(Begin(OperationKind::kDelete, table, record.key));
  const Result<uint64_t> removed = transaction_->RemoveRange(table, low, high);
  DEUT_RETURN_IF_ERROR(NoteTableStatus(table, removed.status()));
  if (*removed != records.size()) {
    return DEUT_ERROR(kCorruption, *removed, " keys were removed where a scan had seen ", records.size());
  }
  for (OperationRecord& each : deletes) End(std::move(each));
  return Status();
}

Result<std::vector<StoredRecord>> RecordedTransaction::Scan(TableId table, const ScanOptions& options) {
  OperationRecord operation = Begin(OperationKind::kScan, table, "");
  const Result<ScanResult> result = transaction_->Scan(table, options);
  DEUT_RETURN_IF_ERROR(NoteTableStatus(table, result.status()));
  history::Scan scan = RequestedScan(options);
  if (!result->complete) SetReached(&scan, result->resume);
  std::vector<StoredRecord> records = AddBatchToScan(result->records, &scan);
  operation.scan = static_cast<uint32_t>(record_->scans.size());
  record_->scans.push_back(std::move(scan));
  End(std::move(operation));
  return records;
}

Result<std::vector<StoredRecord>> RecordedTransaction::ScanSlowly(TableId table, const ScanOptions& options,
                                                                  absl::FunctionRef<Status()> between) {
  // The scan is recorded at the place where it began, in front of the operations of `between`.
  const size_t place = record_->operations.size();
  record_->operations.push_back(Begin(OperationKind::kScan, table, ""));
  history::Scan scan = RequestedScan(options);
  std::vector<StoredRecord> records;
  Scanner scanner = transaction_->OpenScanner(table, options);
  Status status;
  while (status.ok() && scanner.Next()) {
    records.push_back({.key = std::string(scanner.key()), .value = ParseStored(scanner.value())});
    scan.results.emplace_back(records.back().key, records.back().value.value);
    status = between();
  }
  if (status.ok()) status = scanner.status();
  if (!status.ok()) {
    record_->operations.erase(record_->operations.begin() + static_cast<std::ptrdiff_t>(place));
    return NoteTableStatus(table, std::move(status));
  }
  DEUT_RETURN_IF_ERROR(NoteTableStatus(table, Status()));
  if (!scanner.complete()) SetReached(&scan, scanner.resume());
  OperationRecord& operation = record_->operations[place];
  operation.scan = static_cast<uint32_t>(record_->scans.size());
  record_->scans.push_back(std::move(scan));
  operation.complete = Nanos(runtime_);
  return records;
}

Status RecordedTransaction::NoteTableStatus(TableId table, Status status) {
  if (!watches_tables_) return status;
  const bool gone = IsNoTable(status);
  const bool there = status.ok() || status == ErrorCode::kAlreadyExists || (status == ErrorCode::kNotFound && !gone);
  if (!gone && !there) return status;
  const auto [seen, first] = seen_there_.try_emplace(table.value, there);
  if (!first && seen->second == there) return status;
  seen->second = there;
  OperationRecord end = Begin(OperationKind::kRead, TableId(kEnds), EndOf(table));
  if (gone) end.value = Value();  // Take fills in which drop it was
  End(std::move(end));
  return status;
}

Status RecordedClient::DropTable(std::string_view name, TableId table, Duration timeout) {
  Runtime& runtime = client_.runtime();
  TransactionRecord record = NewRecord({}, Nanos(runtime));
  record.untimed = true;
  OperationRecord drop;
  drop.kind = OperationKind::kWrite;
  drop.table = kEnds;
  drop.key = EndOf(table);
  drop.value = Value{.id = {.writer = record.id, .sequence = 1}, .before = {}};
  Status status = client_.DropTable(name, {.timeout = timeout});
  record.complete = Nanos(runtime);
  record.outcome = status.ok()                            ? Outcome::kCommitted
                   : status == ErrorCode::kOutcomeUnknown ? Outcome::kUnknown
                                                          : Outcome::kAborted;
  record.operations.push_back(std::move(drop));
  records_.push_back(std::move(record));
  return status;
}

TransactionRecord RecordedClient::NewRecord(const RetryOptions& options, int64_t invoke) {
  TransactionRecord record;
  record.id = ++transactions_ * Recorder::kMaxClients + number_;
  record.client = number_;
  record.invoke = invoke;
  record.snapshot = options.transaction.isolation == Isolation::kSnapshot;
  record.min_timestamp = options.transaction.min_timestamp.value;
  return record;
}

Status RecordedClient::Run(const RetryOptions& options, absl::FunctionRef<Status(RecordedTransaction&)> body,
                           RetryReport* report) {
  Runtime& runtime = client_.runtime();
  // Read before RunTransaction begins an attempt: the recorded interval must contain the drawing of the timestamp.
  int64_t invoke = Nanos(runtime);
  CommitAnswer answer;
  const Status done = RunTransaction(
      client_, options,
      [&](Transaction& transaction) {
        TransactionRecord record = NewRecord(options, invoke);
        record.timestamp = transaction.timestamp().value;
        RecordedTransaction recorded(runtime, &transaction, &record, watches_tables_, padding_);
        Status status = body(recorded);
        record.outcome = Outcome::kAborted;
        if (status.ok()) {
          Result<CommitAnswer> committed = transaction.Commit();
          record.complete = Nanos(runtime);
          if (committed.ok()) {
            record.outcome = Outcome::kCommitted;
            if (committed->timestamp.value != record.timestamp && !record.snapshot)
              record.timestamp = committed->timestamp.value;
            answer = *committed;
          } else {
            status = committed.status();
            if (status == ErrorCode::kOutcomeUnknown) record.outcome = Outcome::kUnknown;
          }
        } else {
          record.complete = Nanos(runtime);
        }
        records_.push_back(std::move(record));
        invoke = Nanos(runtime);
        return status;
      },
      report);
  if (done.ok() && report != nullptr) report->commit = answer;
  return done;
}

namespace {

// An operation that found a table dropped has read the drop that succeeded. If none is known to have succeeded, it
// read one of unknown outcome, otherwise one that failed.
void NameDrops(History* history) {
  std::map<std::string_view, const TransactionRecord*> drops;
  const auto rank = [](const TransactionRecord& drop) {
    return drop.outcome == Outcome::kCommitted ? 2 : drop.outcome == Outcome::kUnknown ? 1 : 0;
  };
  for (const TransactionRecord& t : history->transactions) {
    if (!t.untimed) continue;
    const TransactionRecord*& drop = drops[t.operations.front().key];
    if (drop == nullptr || rank(*drop) < rank(t)) drop = &t;
  }
  for (TransactionRecord& t : history->transactions) {
    for (OperationRecord& operation : t.operations) {
      const bool found_dropped = operation.table == kEnds && operation.kind == OperationKind::kRead && operation.value;
      if (!found_dropped) continue;
      const auto drop = drops.find(operation.key);
      if (drop != drops.end()) operation.value = drop->second->operations.front().value;
    }
  }
}

}  // namespace

RecordedClient* Recorder::NewClient(Client& client) {
  const MutexLock lock(mutex_);
  DEUT_CHECK(clients_.size() < kMaxClients);
  clients_.push_back(std::make_unique<RecordedClient>(client, static_cast<uint32_t>(clients_.size()), padding_));
  return clients_.back().get();
}

void Recorder::SetPadding(size_t longest) {
  const MutexLock lock(mutex_);
  padding_ = longest;
}

History Recorder::Take() {
  const MutexLock lock(mutex_);
  History history;
  for (const std::unique_ptr<RecordedClient>& client : clients_) {
    for (TransactionRecord& record : client->records_) history.transactions.push_back(std::move(record));
    client->records_.clear();
  }
  NameDrops(&history);
  return history;
}

}  // namespace deut::history

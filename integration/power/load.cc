#include "integration/power/load.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/sync/mutex.h"

namespace deut::power {
namespace {

using history::RecordedTransaction;

constexpr const char* kJournal = "journal";
constexpr const char* kData = "data";
constexpr uint64_t kKeys = 24;
constexpr uint64_t kManyKeys = 40;
constexpr Duration kSpaceComes = seconds(5);
constexpr uint32_t kReader = 1000;  // the client that reads everything

int64_t Nanos() { return RealRuntime().Now().time_since_epoch().count(); }

std::string Key(uint64_t number) { return Concat("k", number / 10, number % 10); }

Acknowledgement AcknowledgementOf(const Status& status, Durability durability) {
  if (status.ok()) return durability == Durability::kDurable ? Acknowledgement::kDurable : Acknowledgement::kBuffered;
  return status == ErrorCode::kOutcomeUnknown ? Acknowledgement::kUnknown : Acknowledgement::kRefused;
}

Result<TableId> CreateTable(PoweredStore& store, Oracle& oracle, const std::string& name) {
  TableChange change{.name = name, .created = true, .invoke = Nanos()};
  const Result<TableId> table = store.client().CreateTable(name);
  change.told = AcknowledgementOf(table.status(), Durability::kDurable);
  change.complete = Nanos();
  oracle.TableChanged(change);
  return table;
}

void DropTable(PoweredStore& store, Oracle& oracle, const std::string& name) {
  TableChange change{.name = name, .invoke = Nanos()};
  change.told = AcknowledgementOf(store.client().DropTable(name), Durability::kDurable);
  change.complete = Nanos();
  oracle.TableChanged(change);
}

Result<TableId> OpenOrCreate(PoweredStore& store, Oracle& oracle, const std::string& name) {
  const Deadline end = RealRuntime().Now() + kSpaceComes;
  for (;;) {
    Result<TableId> table = store.client().OpenTable(name);
    if (table.ok() || !(table.status() == ErrorCode::kNotFound)) return table;
    table = CreateTable(store, oracle, name);
    // The log may be waiting for a segment; then the creation is retried.
    const bool again = !table.ok() && table.status() == ErrorCode::kResourceExhausted && store.failure().ok();
    if (!again || RealRuntime().Now() >= end) return table;
    RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(1));
  }
}

class Worker {
 public:
  Worker(PoweredStore& store, Oracle& oracle, TableId journal, TableId data, uint32_t number, uint64_t seed)
      : store_(store), oracle_(oracle), journal_(journal), data_(data), number_(number), random_(seed) {}

  // Returns "", or the error.
  std::string Step() {
    if (random_.OneIn(10)) {
      ChangeTables();
      return "";
    }
    switch (random_.Below(10)) {
      case 0:
        return Transact(false, [this](RecordedTransaction& t) { return Look(t); });
      case 1:
        return Transact(true, [this](RecordedTransaction& t) { return Look(t); });
      case 2:
        return Transact(false, [this](RecordedTransaction& t) { return RemoveRange(t); });
      case 3:
        return Transact(false, [this](RecordedTransaction& t) { return WriteMany(t); });
      case 4:
      case 5:
        return Transact(false, [this](RecordedTransaction& t) { return ReadAndWrite(t); });
      default:
        return Transact(false, [this](RecordedTransaction& t) { return WriteFew(t); });
    }
  }

 private:
  std::string Transact(bool snapshot, const std::function<Status(RecordedTransaction&)>& body) {
    TransactionOptions options;
    options.isolation = snapshot ? Isolation::kSnapshot : Isolation::kSerializable;
    options.durability = random_.OneIn(2) ? Durability::kDurable : Durability::kBuffered;
    Attempt attempt;
    attempt.record.id = id_ = oracle_.NextId();
    writes_ = 0;
    attempt.record.client = number_;
    attempt.record.snapshot = snapshot;
    attempt.record.invoke = Nanos();
    Result<Transaction> transaction = store_.client().Begin(options);
    if (!transaction.ok()) return "";
    attempt.record.timestamp = transaction->timestamp().value;
    std::string wrong = snapshot ? "" : oracle_.NoteTimestamp(transaction->timestamp());
    RecordedTransaction recorded(RealRuntime(), &*transaction, &attempt.record);
    Status status = body(recorded);
    if (status.ok()) {
      const Result<CommitAnswer> committed = transaction->Commit();
      status = committed.status();
      attempt.told = AcknowledgementOf(status, options.durability);
      if (committed.ok()) attempt.lsn = committed->commit_lsn;
    }
    attempt.record.complete = Nanos();
    oracle_.Ended(std::move(attempt));
    return wrong;
  }

  Status Put(RecordedTransaction& t, TableId table, const std::string& key) {
    DEUT_RETURN_IF_ERROR(t.Put(table, key, PayloadOf({id_, writes_ + 1})));
    ++writes_;
    return Status::Ok();
  }
  Status Journal(RecordedTransaction& t) { return Put(t, journal_, JournalKey(id_)); }
  TableId AnyTable() { return own_ && random_.OneIn(3) ? *own_ : data_; }

  Status WriteFew(RecordedTransaction& t) {
    // The transaction writes its journal key sometimes before the other keys, sometimes after them.
    const bool first = random_.OneIn(2);
    if (first) DEUT_RETURN_IF_ERROR(Journal(t));
    for (uint64_t i = 1 + random_.Below(4); i > 0; --i)
      DEUT_RETURN_IF_ERROR(Put(t, AnyTable(), Key(random_.Below(kKeys))));
    if (random_.OneIn(4)) DEUT_RETURN_IF_ERROR(t.Remove(AnyTable(), Key(random_.Below(kKeys))));
    return first ? Status::Ok() : Journal(t);
  }
  Status WriteMany(RecordedTransaction& t) {
    const TableId table = AnyTable();
    for (uint64_t i = 0; i < kManyKeys; ++i) DEUT_RETURN_IF_ERROR(Put(t, table, Key(kKeys + i)));
    return Journal(t);
  }
  Status ReadAndWrite(RecordedTransaction& t) {
    DEUT_RETURN_IF_ERROR(t.Get(data_, Key(random_.Below(kKeys))).status());
    DEUT_RETURN_IF_ERROR(t.Get(data_, Key(random_.Below(kKeys))).status());
    DEUT_RETURN_IF_ERROR(Put(t, data_, Key(random_.Below(kKeys))));
    return Journal(t);
  }
  Status Look(RecordedTransaction& t) {
    DEUT_RETURN_IF_ERROR(t.Get(AnyTable(), Key(random_.Below(kKeys))).status());
    ScanOptions scan;
    const bool journal = random_.OneIn(3);
    scan.low = journal ? JournalKey(random_.Below(id_)) : Key(random_.Below(kKeys));
    scan.limit_records = random_.Below(8);
    scan.direction = random_.OneIn(2) ? Direction::kAscending : Direction::kDescending;
    if (scan.direction == Direction::kDescending) std::swap(scan.low, scan.high);
    return t.Scan(journal ? journal_ : data_, scan).status();
  }
  Status RemoveRange(RecordedTransaction& t) {
    ScanOptions scan;
    const uint64_t low = random_.Below(kKeys);
    scan.low = Key(low);
    scan.high = Key(low + 1 + random_.Below(40));
    scan.for_update = true;
    DEUT_ASSIGN_OR_RETURN(const auto records, t.Scan(data_, scan));
    for (const auto& record : records) DEUT_RETURN_IF_ERROR(t.Remove(data_, record.key));
    return Journal(t);
  }

  void ChangeTables() {
    if (!own_) {
      own_name_ = Concat("own_", oracle_.NextId());
      const Result<TableId> table = CreateTable(store_, oracle_, own_name_);
      if (table.ok()) own_ = *table;
      return;
    }
    DropTable(store_, oracle_, own_name_);
    own_.reset();
  }

  PoweredStore& store_;
  Oracle& oracle_;
  const TableId journal_, data_;
  const uint32_t number_;
  Random random_;
  uint64_t id_ = 0;  // of the transaction in progress
  uint32_t writes_ = 0;
  std::optional<TableId> own_;
  std::string own_name_;
};

}  // namespace

std::string RunLoad(PoweredStore& store, Oracle& oracle, const LoadOptions& options) {
  const Result<TableId> journal = OpenOrCreate(store, oracle, kJournal);
  if (!journal.ok()) return "";
  const Result<TableId> data = OpenOrCreate(store, oracle, kData);
  if (!data.ok()) return "";
  Mutex mutex(RealRuntime());
  std::string wrong;
  const auto work = [&](uint32_t number) {
    Worker worker(store, oracle, *journal, *data, number, options.seed * 100 + number);
    for (uint32_t step = 0; step < options.steps / options.threads && store.failure().ok(); ++step) {
      const std::string mine = worker.Step();
      if (mine.empty()) continue;
      const MutexLock lock(mutex);
      wrong = mine;
    }
  };
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint32_t number = 2; number <= options.threads; ++number)
    threads.push_back(RealRuntime().StartThread("client", [&work, number] { work(number); }));
  work(1);
  threads.clear();
  return wrong;
}

Result<Found> ReadAll(PoweredStore& store, Oracle& oracle) {
  Found found;
  DEUT_ASSIGN_OR_RETURN(const std::vector<TableInfo> tables, store.client().ListTables());
  found.reader.id = oracle.NextId();
  found.reader.client = kReader;
  found.reader.invoke = Nanos();
  DEUT_ASSIGN_OR_RETURN(Transaction transaction, store.client().Begin());
  found.reader.timestamp = transaction.timestamp().value;
  if (const std::string wrong = oracle.NoteTimestamp(transaction.timestamp()); !wrong.empty())
    return DEUT_ERROR(kCorruption, wrong);
  RecordedTransaction recorded(RealRuntime(), &transaction, &found.reader);
  for (const TableInfo& table : tables) {
    if (table.dropped) continue;
    found.tables.push_back(table.name);
    if (table.name == kJournal) found.journal = table.id.value;
    DEUT_ASSIGN_OR_RETURN(const auto records, recorded.Scan(table.id, {}));
    auto& held = found.records[table.id.value];
    for (const auto& record : records) held[record.key] = history::StoredText(record.value.value, record.value.payload);
  }
  DEUT_RETURN_IF_ERROR(transaction.Commit().status());
  found.reader.complete = Nanos();
  found.reader.outcome = history::Outcome::kCommitted;
  return found;
}

}  // namespace deut::power

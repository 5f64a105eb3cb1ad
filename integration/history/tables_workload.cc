#include "integration/history/tables_workload.h"

#include <utility>
#include <vector>

#include "common/base/concat.h"

namespace deut::history {
namespace {

constexpr uint64_t kKeys = 8;

std::string Key(uint64_t number) { return Concat("key", number); }

// Neither a refused precondition nor a dropped table ends a transaction.
Status IgnoreRefusals(const Status& status) {
  return status == ErrorCode::kAlreadyExists || status == ErrorCode::kNotFound ? Status() : status;
}

}  // namespace

TablesWorkload::TablesWorkload(TableId table, Durability durability, Duration patience)
    : first_(table), durability_(durability), patience_(patience), mutex_(RealRuntime()) {
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < kNames; ++i) {
    // The names contain the table's id, because several histories may share a store.
    names_[i].name = Concat("of_", table.value, "_", i);
    names_[i].previous = table;
  }
}

Status TablesWorkload::Load(RecordedClient& client) {
  Runtime& runtime = client.client().runtime();
  const Deadline limit = runtime.Now() + patience_;
  for (size_t i = 0; i < kNames; ++i) {
    Status made = Make(client, i);
    for (; made == ErrorCode::kResourceExhausted && runtime.Now() < limit; made = Make(client, i)) {
      runtime.SleepUntil(runtime.Now() + milliseconds(5));
    }
    DEUT_RETURN_IF_ERROR(made);
  }
  return Status();
}

Status TablesWorkload::Step(RecordedClient& client, Random& random) {
  client.WatchTables();
  const size_t which = random.Below(kNames);
  bool missing;
  {
    const MutexLock lock(mutex_);
    Named& named = names_[which];
    missing = !named.there && !named.making && named.droppers == 0;
    if (missing) named.making = true;
  }
  if (missing) return Make(client, which);
  return random.OneIn(10) ? Drop(client, random, which) : Use(client, random);
}

Status TablesWorkload::Use(RecordedClient& client, Random& random) {
  std::vector<TableId> tables;
  {
    const MutexLock lock(mutex_);
    for (uint64_t i = 1 + random.Below(2); i > 0; --i) {
      const Named& named = names_[random.Below(kNames)];
      tables.push_back(random.OneIn(8) || named.table == TableId() ? named.previous : named.table);
    }
  }
  if (random.OneIn(4)) tables.push_back(first_);
  const bool snapshot = random.OneIn(8);
  RetryOptions retry;
  retry.transaction.isolation = snapshot ? Isolation::kSnapshot : Isolation::kSerializable;
  retry.transaction.durability = durability_;
  retry.timeout = patience_;
  Runtime& runtime = client.client().runtime();
  return client.Run(retry, [&](RecordedTransaction& t) -> Status {
    for (uint64_t i = 1 + random.Below(4); i > 0; --i) {
      const TableId table = tables[random.Below(tables.size())];
      if (snapshot) {
        DEUT_RETURN_IF_ERROR(IgnoreRefusals(random.OneIn(2) ? t.Get(table, Key(random.Below(kKeys))).status()
                                                            : t.Scan(table, {}).status()));
      } else {
        DEUT_RETURN_IF_ERROR(Operate(t, table, random));
      }
      if (random.OneIn(8)) runtime.SleepUntil(runtime.Now() + microseconds(random.Below(100 << random.Below(6))));
    }
    return Status();
  });
}

Status TablesWorkload::Operate(RecordedTransaction& t, TableId table, Random& random) const {
  const std::string key = Key(random.Below(kKeys));
  ScanOptions scan;
  if (random.OneIn(2)) scan.direction = Direction::kDescending;
  scan.for_update = random.OneIn(4);
  switch (random.Below(8)) {
    case 0:
    case 1:
      return IgnoreRefusals(t.Put(table, key));
    case 2:
      return IgnoreRefusals(t.Insert(table, key));
    case 3:
      return IgnoreRefusals(t.Update(table, key));
    case 4:
      return IgnoreRefusals(t.Remove(table, key));
    case 5:
      return IgnoreRefusals(t.Scan(table, scan).status());
    default:
      return IgnoreRefusals(t.Get(table, key).status());
  }
}

// A drop loses against any open writer of the table, so it is retried.
Status TablesWorkload::Drop(RecordedClient& client, Random& random, size_t which) {
  Status status;
  for (uint64_t tries = 1 + random.Below(20); tries > 0; --tries) {
    status = DropOnce(client, which);
    if (status != ErrorCode::kAborted) break;
  }
  return status;
}

Status TablesWorkload::DropOnce(RecordedClient& client, size_t which) {
  std::string name;
  TableId table;
  uint64_t drop;
  bool alone;
  {
    const MutexLock lock(mutex_);
    Named& named = names_[which];
    if (!named.there) return Status();
    alone = named.droppers++ == 0;
    drop = ++named.drops_begun;
    name = named.name;
    table = named.table;
  }
  const Status status = client.DropTable(name, table, patience_);
  Status wrong;
  {
    const MutexLock lock(mutex_);
    Named& named = names_[which];
    alone = alone && named.drops_begun == drop;
    if (status.ok() && !named.there && named.name == name) {
      wrong = DEUT_ERROR(kCorruption, "table ", table.value, " was dropped twice");
    }
    if (status == ErrorCode::kNotFound && alone) {
      wrong = DEUT_ERROR(kCorruption, "table ", table.value, " is not there to be dropped: ", status.ToString());
    }
    if (status.ok() || status == ErrorCode::kOutcomeUnknown) named.there = false;
    if (status == ErrorCode::kOutcomeUnknown) RetireName(named);
    --named.droppers;
  }
  if (!wrong.ok()) return wrong;
  return status == ErrorCode::kNotFound ? Status() : status;
}

Status TablesWorkload::Make(RecordedClient& client, size_t which) {
  std::string name;
  {
    const MutexLock lock(mutex_);
    names_[which].making = true;
    name = names_[which].name;
  }
  const Result<TableId> made = client.client().CreateTable(name, {.timeout = patience_});
  const MutexLock lock(mutex_);
  Named& named = names_[which];
  named.making = false;
  if (made.ok()) {
    if (named.table != TableId()) named.previous = named.table;
    named.table = *made;
    named.there = true;
    return Status();
  }
  if (made.status() == ErrorCode::kOutcomeUnknown) RetireName(named);
  if (made.status() == ErrorCode::kAlreadyExists) {
    return DEUT_ERROR(kCorruption, name, " is not free: ", made.status().ToString());
  }
  return made.status();
}

// It is not known whether a table has the name.
void TablesWorkload::RetireName(Named& named) {
  named.name = Concat(named.name.substr(0, named.name.find('+')), "+", ++named.lost_names);
}

Status TablesWorkload::ReadAll(RecordedClient& client) {
  client.WatchTables();
  std::vector<TableId> tables = {first_};
  {
    const MutexLock lock(mutex_);
    for (const Named& named : names_) {
      if (named.table != TableId()) tables.push_back(named.table);
      tables.push_back(named.previous);
    }
  }
  return client.Run({}, [&](RecordedTransaction& t) -> Status {
    for (const TableId table : tables) {
      ScanOptions scan;
      DEUT_RETURN_IF_ERROR(IgnoreRefusals(t.Scan(table, scan).status()));
      scan.direction = Direction::kDescending;
      DEUT_RETURN_IF_ERROR(IgnoreRefusals(t.Scan(table, scan).status()));
    }
    return Status();
  });
}

}  // namespace deut::history

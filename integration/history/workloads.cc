#include "integration/history/workloads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "common/base/concat.h"
#include "common/sync/mutex.h"
#include "integration/history/tables_workload.h"

namespace deut::history {
namespace {

int64_t Number(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}
int64_t Number(const std::optional<StoredValue>& value) { return value ? Number(value->payload) : 0; }

std::string Name(std::string_view prefix, uint64_t number) { return Concat(prefix, 100000 + number); }

class TableWorkload : public Workload {
 public:
  TableWorkload(TableId table, Durability durability, Duration patience)
      : table_(table), durability_(durability), patience_(patience) {}

  Status ReadAll(RecordedClient& client) override {
    return client.Run({}, [&](RecordedTransaction& t) -> Status {
      ScanOptions scan;
      DEUT_RETURN_IF_ERROR(t.Scan(table_, scan).status());
      scan.direction = Direction::kDescending;
      return t.Scan(table_, scan).status();
    });
  }

 protected:
  RetryOptions Retry(Isolation isolation = Isolation::kSerializable) const {
    RetryOptions retry;
    retry.transaction.isolation = isolation;
    retry.transaction.durability = durability_;
    retry.timeout = patience_;
    return retry;
  }
  static ScanOptions Range(Random& random, std::string low, std::string high) {
    ScanOptions scan;
    scan.low = std::move(low);
    scan.high = std::move(high);
    if (random.OneIn(2)) scan.direction = Direction::kDescending;
    if (random.OneIn(4)) scan.batch_bytes = 64;
    return scan;
  }
  // Bounds for a serializable transaction, which may also announce updates (R3).
  static ScanOptions SerializableRange(Random& random, std::string low, std::string high) {
    ScanOptions scan = Range(random, std::move(low), std::move(high));
    scan.for_update = random.OneIn(4);
    return scan;
  }
  // Pauses, so that other transactions run. This transaction's view must not change meanwhile.
  static void Linger(RecordedClient& client, Random& random) {
    if (!random.OneIn(4)) return;
    Runtime& runtime = client.client().runtime();
    runtime.SleepUntil(runtime.Now() + microseconds(static_cast<int64_t>(random.Below(1000 << random.Below(5)))));
  }

  const TableId table_;
  const Durability durability_;
  const Duration patience_;
};

class ListAppend final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Step(RecordedClient& client, Random& random) override {
    const uint64_t base = steps_.fetch_add(1, std::memory_order_relaxed) / kStepsPerKeys * kKeys;
    std::vector<std::pair<bool, std::string>> plan;
    for (uint64_t i = 1 + random.Below(4); i > 0; --i) {
      plan.emplace_back(random.OneIn(2), Name("list", base + random.Below(kKeys)));
    }
    return client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
      for (const auto& [append, key] : plan) {
        DEUT_RETURN_IF_ERROR(append ? t.Append(table_, key) : t.Get(table_, key).status());
      }
      return Status();
    });
  }

 private:
  static constexpr uint64_t kKeys = 6;
  static constexpr uint64_t kStepsPerKeys = 120;  // after this many steps other keys are used, so that lists stay short
  std::atomic<uint64_t> steps_{0};
};

class Register final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Step(RecordedClient& client, Random& random) override {
    const bool snapshot = random.OneIn(8);
    std::vector<std::pair<uint64_t, std::string>> plan;
    for (uint64_t i = 1 + random.Below(4); i > 0; --i) {
      plan.emplace_back(snapshot ? 0 : random.Below(4), Name("register", random.Below(10)));
    }
    const RetryOptions retry = Retry(snapshot ? Isolation::kSnapshot : Isolation::kSerializable);
    if (random.OneIn(3)) return client.RunOneShot(retry, InOneMessage(plan)).status();
    return client.Run(retry, [&](RecordedTransaction& t) -> Status {
      for (const auto& [action, key] : plan) {
        if (snapshot) Linger(client, random);
        if (action != 3) DEUT_RETURN_IF_ERROR(t.Get(table_, key).status());
        if (action >= 2) DEUT_RETURN_IF_ERROR(t.Put(table_, key));
      }
      return Status();
    });
  }

 private:
  std::vector<history::Step> InOneMessage(const std::vector<std::pair<uint64_t, std::string>>& plan) const {
    std::vector<history::Step> steps;
    for (const auto& [action, key] : plan) {
      if (action != 3) steps.push_back({.kind = OperationKind::kRead, .table = table_, .key = key});
      if (action >= 2) steps.push_back({.kind = OperationKind::kWrite, .table = table_, .key = key});
    }
    return steps;
  }
};

class Bank final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Load(RecordedClient& client) override {
    return client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
      for (uint64_t i = 0; i < kAccounts; ++i) DEUT_RETURN_IF_ERROR(t.Put(table_, Name("account", i), "100"));
      return Status();
    });
  }

  Status Step(RecordedClient& client, Random& random) override {
    if (random.OneIn(5)) return Sum(client, random);
    const std::string from = Name("account", random.Below(kAccounts)), to = Name("account", random.Below(kAccounts));
    if (from == to) return Status();
    return client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
      DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> a, t.Get(table_, from));
      DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> b, t.Get(table_, to));
      if (Number(a) == 0) return Status();
      DEUT_RETURN_IF_ERROR(t.Put(table_, from, Concat(Number(a) - 1)));
      return t.Put(table_, to, Concat(Number(b) + 1));
    });
  }

 private:
  static constexpr uint64_t kAccounts = 12;

  Status Sum(RecordedClient& client, Random& random) {
    int64_t sum = 0;
    const ScanOptions all = Range(random, "", "");
    const bool slowly = random.OneIn(3);
    DEUT_RETURN_IF_ERROR(client.Run(Retry(random.OneIn(2) ? Isolation::kSnapshot : Isolation::kSerializable),
                                    [&](RecordedTransaction& t) -> Status {
                                      sum = 0;
                                      DEUT_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records,
                                                            slowly ? t.ScanSlowly(table_, all, [] { return Status(); })
                                                                   : t.Scan(table_, all));
                                      for (const StoredRecord& record : records) sum += Number(record.value.payload);
                                      // The snapshot is older than the opening of the accounts.
                                      if (records.empty()) sum = kAccounts * 100;
                                      return Status();
                                    }));
    if (sum == kAccounts * 100) return Status();
    return DEUT_ERROR(kCorruption, "the accounts hold ", sum, " in all, not ", kAccounts * 100);
  }
};

class Ring final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Load(RecordedClient& client) override {
    return client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
      for (uint64_t i = 0; i < kRecords; ++i) {
        DEUT_RETURN_IF_ERROR(t.Insert(table_, Name("ring", i), Concat((i + 1) % kRecords)));
      }
      return Status();
    });
  }

  Status Step(RecordedClient& client, Random& random) override {
    if (random.OneIn(6)) return Walk(client, random);
    const uint64_t start = random.Below(kRecords);
    return client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
      std::array<uint64_t, 4> at = {start};
      for (size_t i = 1; i < at.size(); ++i) {
        DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> next, t.Get(table_, Name("ring", at[i - 1])));
        if (!next) return DEUT_ERROR(kInternal, "provisional: a record of the ring is absent");
        at[i] = static_cast<uint64_t>(Number(next));
      }
      // The order 0 1 2 3 becomes 0 2 1 3.
      DEUT_RETURN_IF_ERROR(t.Put(table_, Name("ring", at[0]), Concat(at[2])));
      DEUT_RETURN_IF_ERROR(t.Put(table_, Name("ring", at[2]), Concat(at[1])));
      return t.Put(table_, Name("ring", at[1]), Concat(at[3]));
    });
  }

 private:
  static constexpr uint64_t kRecords = 24;

  Status Walk(RecordedClient& client, Random& random) {
    std::map<std::string, std::string> next;
    const ScanOptions all = Range(random, "", "");
    DEUT_RETURN_IF_ERROR(client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
      next.clear();
      DEUT_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, t.Scan(table_, all));
      for (const StoredRecord& record : records) next[record.key] = record.value.payload;
      return Status();
    }));
    std::string at = Name("ring", 0);
    uint64_t steps = 0;
    do {
      at = Name("ring", static_cast<uint64_t>(Number(next[at])));
    } while (++steps < kRecords && at != Name("ring", 0));
    if (steps == kRecords && at == Name("ring", 0)) return Status();
    return DEUT_ERROR(kCorruption, "the ring closes after ", steps, " records, not ", kRecords);
  }
};

class WriteSkew final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Step(RecordedClient& client, Random& random) override {
    const uint64_t pair = random.Below(4), side = random.Below(2);
    const std::string mine = Name("switch", pair * 2 + side), other = Name("switch", pair * 2 + 1 - side);
    bool both = false;
    DEUT_RETURN_IF_ERROR(client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
      DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> a, t.Get(table_, mine));
      DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> b, t.Get(table_, other));
      both = Number(a) == 1 && Number(b) == 1;
      if (both) return Status();
      return t.Put(table_, mine, Number(a) == 1 || Number(b) == 1 ? "0" : "1");
    }));
    return both ? DEUT_ERROR(kCorruption, "both switches are on: ", mine, ", ", other) : Status();
  }
};

class PhantomScan final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Step(RecordedClient& client, Random& random) override {
    const uint64_t group = random.Below(4), slot = random.Below(1000);
    const std::string low = Concat("group", group, "/"), high = Concat("group", group, "0");
    const ScanOptions scan = SerializableRange(random, low, high);
    ScanOptions front = scan;
    front.limit_records = 1 + random.Below(3);
    bool crowded = false;
    DEUT_RETURN_IF_ERROR(client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
      DEUT_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, t.Scan(table_, scan));
      crowded = records.size() > kRoom;
      if (records.size() < kRoom) {
        const Status inserted = t.Insert(table_, Name(low, slot));
        return inserted == ErrorCode::kAlreadyExists ? Status() : inserted;
      }
      DEUT_ASSIGN_OR_RETURN(const std::vector<StoredRecord> some, t.Scan(table_, front));
      // Removes the whole range or only the first records.
      if (slot % 4 == 0) return t.RemoveRange(table_, low, high);
      for (const StoredRecord& record : some) DEUT_RETURN_IF_ERROR(t.Remove(table_, record.key));
      return Status();
    }));
    return crowded ? DEUT_ERROR(kCorruption, low, " holds more than there is room for") : Status();
  }

 private:
  static constexpr size_t kRoom = 8;
};

class LongFork final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Step(RecordedClient& client, Random& random) override {
    const uint64_t base = steps_.fetch_add(1, std::memory_order_relaxed) / 16 * kKeys;
    const bool write = random.OneIn(3);
    const uint64_t first = random.Below(kKeys);
    return client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
      if (write) return t.Put(table_, Name("fork", base + first));
      for (uint64_t i = 0; i < kKeys; ++i) {
        DEUT_RETURN_IF_ERROR(t.Get(table_, Name("fork", base + (first + i) % kKeys)).status());
      }
      return Status();
    });
  }

 private:
  static constexpr uint64_t kKeys = 3;
  std::atomic<uint64_t> steps_{0};
};

class SnapshotStaleness final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Step(RecordedClient& client, Random& random) override {
    const uint64_t pair = random.Below(6);
    const std::string a = Name("left", pair), b = Name("right", pair);
    RetryReport report;
    int64_t written = 0;
    DEUT_RETURN_IF_ERROR(client.Run(
        Retry(),
        [&](RecordedTransaction& t) -> Status {
          DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> old, t.Get(table_, a));
          written = Number(old) + 1;
          DEUT_RETURN_IF_ERROR(t.Put(table_, a, Concat(written)));
          return t.Put(table_, b, Concat(written));
        },
        &report));
    RetryOptions retry = Retry(Isolation::kSnapshot);
    if (random.OneIn(2)) retry.transaction.min_timestamp = report.commit.timestamp;
    int64_t left = 0, right = 0;
    DEUT_RETURN_IF_ERROR(client.Run(retry, [&](RecordedTransaction& t) -> Status {
      Linger(client, random);
      DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> l, t.Get(table_, a));
      Linger(client, random);
      DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> r, t.Get(table_, b));
      left = Number(l);
      right = Number(r);
      return Status();
    }));
    if (left != right) return DEUT_ERROR(kCorruption, "a snapshot holds ", left, " and ", right, " of ", a);
    if (retry.transaction.min_timestamp.value != 0 && left < written) {
      return DEUT_ERROR(kCorruption, "a snapshot of ", a, " holds ", left, ", older than ", written, " as asked for");
    }
    return Status();
  }
};

class Deletes final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Step(RecordedClient& client, Random& random) override {
    std::vector<Action> plan;
    for (uint64_t i = 1 + random.Below(4); i > 0; --i) {
      const uint64_t low = random.Below(kKeys);
      Action action{.kind = random.Below(8), .key = Name("key", low), .scan = {}};
      action.scan = SerializableRange(random, action.key, Name("key", low + 1 + random.Below(10)));
      if (random.OneIn(2)) action.scan.limit_records = 1 + random.Below(4);
      plan.push_back(std::move(action));
    }
    if (random.OneIn(4)) return client.RunOneShot(Retry(), InOneMessage(plan)).status();
    return client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
      for (const Action& action : plan) DEUT_RETURN_IF_ERROR(Do(t, action.kind, action.key, action.scan));
      return Status();
    });
  }

 private:
  static constexpr uint64_t kKeys = 30;
  struct Action {
    uint64_t kind;
    std::string key;
    ScanOptions scan;
  };

  std::vector<history::Step> InOneMessage(const std::vector<Action>& plan) const {
    // The kinds correspond to those of Do. A refused insert or update ends the whole message, which happens about
    // half the time.
    constexpr OperationKind kKinds[] = {OperationKind::kWrite,  OperationKind::kInsert, OperationKind::kUpdate,
                                        OperationKind::kDelete, OperationKind::kDelete, OperationKind::kRead,
                                        OperationKind::kScan,   OperationKind::kScan};
    std::vector<history::Step> steps;
    for (const Action& action : plan) {
      steps.push_back({.kind = kKinds[action.kind], .table = table_, .key = action.key, .scan = action.scan});
    }
    return steps;
  }

  Status Do(RecordedTransaction& t, uint64_t kind, const std::string& key, const ScanOptions& scan) const {
    const auto refused_or = [](const Status& status) {
      return status == ErrorCode::kAlreadyExists || status == ErrorCode::kNotFound ? Status() : status;
    };
    switch (kind) {
      case 0:
        return t.Put(table_, key);
      case 1:
        return refused_or(t.Insert(table_, key));
      case 2:
        return refused_or(t.Update(table_, key));
      case 3:
        return t.CompareAndSet(table_, key);
      case 4:
        // For some keys, removes everything from the key on.
        return key.back() == '3' ? t.RemoveRange(table_, key, "") : t.Remove(table_, key);
      case 5:
        return t.Get(table_, key).status();
      case 6:
        return t.ScanSlowly(table_, scan, [&] { return t.Remove(table_, key); }).status();
      default:
        return t.Scan(table_, scan).status();
    }
  }
};

class Bulk final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Step(RecordedClient& client, Random& random) override {
    const uint64_t group = random.Below(3);
    const std::string low = Concat("bulk", group, "/"), high = Concat("bulk", group, "0");
    if (random.OneIn(2)) {
      return client.Run(Retry(), [&](RecordedTransaction& t) -> Status {
        const std::string mark = Concat(t.timestamp().value);
        for (uint64_t i = 0; i < kKeys; ++i) DEUT_RETURN_IF_ERROR(t.Put(table_, Name(low, i), mark));
        return Status();
      });
    }
    std::vector<StoredRecord> seen;
    const ScanOptions all = Range(random, low, high);
    DEUT_RETURN_IF_ERROR(client.Run(Retry(random.OneIn(2) ? Isolation::kSnapshot : Isolation::kSerializable),
                                    [&](RecordedTransaction& t) -> Status {
                                      DEUT_ASSIGN_OR_RETURN(seen, t.Scan(table_, all));
                                      return Status();
                                    }));
    for (const StoredRecord& record : seen) {
      if (seen.size() == kKeys && Number(record.value.payload) == Number(seen.front().value.payload)) continue;
      return DEUT_ERROR(kCorruption, low, " holds ", seen.size(), " records, of ", seen.front().value.payload, " and ",
                        record.value.payload);
    }
    return Status();
  }

 private:
  static constexpr uint64_t kKeys = 20;
};

class Monotonic final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Step(RecordedClient& client, Random& random) override {
    const std::string key = Name("counter", random.Below(2));
    RetryReport report;
    int64_t value = 0;
    DEUT_RETURN_IF_ERROR(client.Run(
        Retry(),
        [&](RecordedTransaction& t) -> Status {
          DEUT_ASSIGN_OR_RETURN(const std::optional<StoredValue> old, t.Get(table_, key));
          value = Number(old) + 1;
          return t.Put(table_, key, Concat(value));
        },
        &report));
    const MutexLock lock(mutex_);
    std::map<uint64_t, int64_t>& values = values_[key];
    const auto at = values.emplace(report.commit.timestamp.value, value).first;
    const bool above = at == values.begin() || std::prev(at)->second < value;
    const bool below = std::next(at) == values.end() || std::next(at)->second > value;
    if (above && below) return Status();
    return DEUT_ERROR(kCorruption, key, ": ", value, " at ", report.commit.timestamp.value,
                      " is not in the order of the timestamps");
  }

 private:
  Mutex mutex_{RealRuntime()};
  std::map<std::string, std::map<uint64_t, int64_t>> values_ DEUT_GUARDED_BY(mutex_);  // key -> timestamp -> value
};

class Starvation final : public TableWorkload {
 public:
  using TableWorkload::TableWorkload;

  Status Step(RecordedClient& client, Random& random) override {
    if (!random.OneIn(3)) {
      return client.Run(Retry(), [&](RecordedTransaction& t) { return t.Scan(table_, {}).status(); });
    }
    const std::string key = Name("key", random.Below(4));
    Runtime& runtime = client.client().runtime();
    RetryReport report;
    Status status = client.Run(
        Retry(),
        [&](RecordedTransaction& t) {
          runtime.SleepUntil(runtime.Now() + microseconds(random.Between(500, 2000)));
          return t.Put(table_, key);
        },
        &report);
    const uint64_t overtaken = report.aborts[static_cast<size_t>(AbortReason::kRangeReadLater)];
    if (overtaken <= kMaxOvertakes) return status;
    return DEUT_ERROR(kInternal, "a transaction was starved: it was overtaken ", overtaken,
                      " times by scans of its range");
  }

 private:
  // Scans overtake the first attempt nearly always. Later attempts declare their write (R11), so only a scan that
  // begins at that very moment overtakes them.
  static constexpr uint64_t kMaxOvertakes = 8;
};

template <typename Kind>
std::unique_ptr<Workload> Make(TableId table, Durability durability, Duration patience) {
  return std::make_unique<Kind>(table, durability, patience);
}

struct Known {
  const char* name;
  std::unique_ptr<Workload> (*make)(TableId, Durability, Duration);
};
constexpr Known kKnown[] = {
    {"list_append", Make<ListAppend>},
    {"register", Make<Register>},
    {"bank", Make<Bank>},
    {"ring", Make<Ring>},
    {"write_skew", Make<WriteSkew>},
    {"phantom_scan", Make<PhantomScan>},
    {"long_fork", Make<LongFork>},
    {"snapshot_staleness", Make<SnapshotStaleness>},
    {"deletes", Make<Deletes>},
    {"bulk", Make<Bulk>},
    {"tables", Make<TablesWorkload>},
    {"monotonic", Make<Monotonic>},
    {"starvation", Make<Starvation>},
};

}  // namespace

bool MeasuresProgress(std::string_view name) { return name == "starvation"; }

std::vector<std::string> WorkloadNames() {
  std::vector<std::string> names;
  for (const Known& known : kKnown) names.emplace_back(known.name);
  return names;
}

Result<std::unique_ptr<Workload>> NewWorkload(std::string_view name, TableId table, Durability durability,
                                              Duration patience) {
  for (const Known& known : kKnown) {
    if (name == known.name) return known.make(table, durability, patience);
  }
  return DEUT_ERROR(kInvalidArgument, "no workload has the name ", name);
}

WorkloadRun RunWorkload(Client& client, Workload& workload, const WorkloadOptions& options,
                        absl::FunctionRef<void()> meanwhile) {
  Recorder recorder(client);
  RecordedClient& first = *recorder.NewClient();
  Status status = workload.Load(first);
  if (!status.ok()) return {.history = recorder.Take(), .status = std::move(status)};
  Runtime& runtime = client.runtime();
  const Deadline end = runtime.Now() + options.duration;
  std::vector<Status> corrupt(options.threads);
  std::atomic<uint32_t> running{options.threads};
  {
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint32_t i = 0; i < options.threads; ++i) {
      const size_t which = i % (options.more_clients.size() + 1);
      RecordedClient* mine = recorder.NewClient(which == 0 ? client : *options.more_clients[which - 1]);
      threads.push_back(runtime.StartThread(Concat("workload", i), [&, i, mine] {
        Random random(options.seed + i);
        const auto goes_on = [&] {
          return runtime.Now() < end && (options.stop == nullptr || !options.stop->load()) && corrupt[i].ok();
        };
        for (uint64_t steps = 0; steps < options.steps_per_thread && goes_on(); ++steps) {
          Status step = workload.Step(*mine, random);
          if (step == ErrorCode::kCorruption) corrupt[i] = std::move(step);
        }
        running.fetch_sub(1);
      }));
    }
    while (running.load() != 0) meanwhile();
  }
  status = workload.ReadAll(first);
  for (Status& failure : corrupt) {
    if (!failure.ok()) status = std::move(failure);
  }
  return {.history = recorder.Take(), .status = std::move(status)};
}

}  // namespace deut::history

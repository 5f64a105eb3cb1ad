#include "tc/record_manager/engine_fixture.h"

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/record_manager/pinned.h"

namespace deut::tc {
namespace {

RedoLogOptions SmallLog(size_t segment_bytes) {
  RedoLogOptions options;
  options.directory = "log";
  options.ring_bytes = 1 << 20;
  options.segment_bytes = segment_bytes;
  options.max_record_bytes = 128 << 10;
  options.chunk_bytes = 32 << 10;
  options.block_bytes = 64 << 10;
  options.space_reserve_bytes = 0;
  return options;
}

}  // namespace

EngineFixture::EngineFixture(EngineFixtureOptions options) {
  Runtime& runtime = RealRuntime();
  if (options.faulty_disk) {
    disk = std::make_unique<FaultyDisk>(runtime, 1);
    storage = disk->Mount();
  } else {
    storage = NewMemoryStorage(runtime);
  }
  RecoveredLog recovered;
  Result<std::unique_ptr<RedoLog>> opened =
      RedoLog::Open(SmallLog(options.log_segment_bytes), runtime, *storage, &recovered);
  if (!opened.ok()) FailStop(opened.status().ToString());
  log = std::move(*opened);
  ActiveTransactions::Options active_options;
  active_options.max_transactions = options.max_transactions;
  active_options.first_timestamp = recovered.first_timestamp;
  active_options.ensure_reserved = [this](Timestamp t, Deadline d) { return log->EnsureReserved(t, d); };
  active_options.reserved_below = [this] { return log->reserved_below(); };
  active_options.log_tail = [this] { return log->tail(); };
  active = std::make_unique<ActiveTransactions>(active_options, runtime);
  dc = std::make_unique<PumpedDc>(runtime, *log, *active);
  records = std::make_unique<RecordTable>(domain, options.log2_buckets);
  if (options.read_cache_bytes != 0) {
    read_cache = std::make_unique<ReadCache>(options.read_cache_bytes, options.cache_written, domain, *records);
  }
  if (options.spills) {
    spilled = std::make_unique<SpilledRuns>("log/spill", runtime, *storage, domain);
    if (Status cleared = spilled->LockAndEmpty(); !cleared.ok()) FailStop(cleared.ToString());
  }
  catalogue = std::make_unique<Catalogue>(runtime, domain, options.max_tables);
  Collector::Options collecting;
  collecting.applied = [this] { return dc->applied(); };
  collecting.low_water = [this] { return active->AdvanceNow(); };
  collecting.released = [this](uint64_t bytes) { engine->counters.pinned_bytes.fetch_sub(bytes); };
  collecting.readers = [this] { return active->RoundForReaders(); };
  collecting.runs = [this](TableId table) -> CommittedRuns& { return catalogue->FindAlsoDropped(table)->runs(); };
  collecting.free_tables = [this](Collector::Access& access) {
    return catalogue->FreeDropped(
        {.applied = [this, &access] { return DEUT_OMITTED("T1.applied_of_round") ? dc->applied() : access.applied(); },
         .low_water = [this] { return active->AdvanceNow(); },
         .draw = [this] { return active->DrawUnused(RealRuntime().Now()); }},
        access);
  };
  collecting.value_evictor = {.excess = [this] { return PinnedExcess(*engine); },
                              .durable = [this] { return log->durable(); }};
  collecting.spiller = {.runs = spilled.get(),
                        .excess = [this] { return SpillExcess(*engine); },
                        .durable = [this] { return log->durable(); },
                        .oldest_first_record = [this] { return active->OldestFirstRecord(); },
                        .at_least = options.spill_at_least};
  collecting.fold_after = options.fold_after;
  collecting.fold_at_least = options.fold_at_least;
  collecting.read_cache = read_cache.get();
  collecting.period = options.collector_period;
  collecting.max_deferred_entries = options.max_deferred_entries;
  collector = std::make_unique<Collector>(collecting, runtime, domain, *records);
  engine.reset(new Engine{.runtime = options.engine_runtime != nullptr ? *options.engine_runtime : runtime,
                          .domain = domain,
                          .active = *active,
                          .records = *records,
                          .catalogue = *catalogue,
                          .collector = *collector,
                          .log = *log,
                          .dc = *dc,
                          .version_budget_bytes = options.version_budget_bytes,
                          .read_cache = read_cache.get(),
                          .spilled = spilled.get(),
                          .conflicts = {.range_precision = options.range_precision,
                                        .range_control = options.range_control,
                                        .wait = options.conflict_wait}});
  manager = std::make_unique<RecordManager>(*engine);
  if (Status loaded = catalogue->LoadFromDc({TableInfo{.id = kTable, .name = "t"}}); !loaded.ok()) {
    FailStop(loaded.ToString());
  }
  dc->AddTable(kTable);
  collector->Start();
}

EngineFixture::~EngineFixture() { Stop(); }

void EngineFixture::Stop() {
  if (manager == nullptr) return;
  DEUT_CHECK(active->open_transactions() == 0);
  collector->Stop();
  log->Stop();
  manager.reset();
}

TransactionOptions EngineFixture::Buffered() {
  TransactionOptions options;
  options.durability = Durability::kBuffered;
  return options;
}

TransactionOptions EngineFixture::Declaring(const std::vector<std::string>& keys) {
  TransactionOptions options = Buffered();
  for (const std::string& key : keys) options.declared.push_back({kTable, key});
  return options;
}

std::unique_ptr<TestTransaction> EngineFixture::BeginPointer(const TransactionOptions& options) {
  Result<std::unique_ptr<Transaction>> txn = manager->Begin(options, Soon());
  if (!txn.ok()) FailStop(txn.status().ToString());
  return std::make_unique<TestTransaction>(*manager, *std::move(txn));
}

TestTransaction EngineFixture::Begin(const TransactionOptions& options) {
  Result<std::unique_ptr<Transaction>> txn = manager->Begin(options, Soon());
  if (!txn.ok()) FailStop(txn.status().ToString());
  return TestTransaction(*manager, *std::move(txn));
}

TestTransaction EngineFixture::BeginSnapshot() {
  TransactionOptions options = Buffered();
  options.isolation = Isolation::kSnapshot;
  return Begin(options);
}

void EngineFixture::Load(const std::vector<std::pair<std::string, std::string>>& puts) {
  {
    TestTransaction txn = Begin();
    for (const auto& [key, value] : puts) {
      const std::string put = value == "-" ? txn.Remove(key) : txn.Put(key, value);
      if (put != "ok") FailStop("load: " + put);
    }
    if (const std::string committed = txn.Commit(); committed != "ok") FailStop("load: " + committed);
  }
  PumpAndCollect();
}

void EngineFixture::PumpAndCollect() {
  dc->Pump();
  Collect();
}

bool EngineFixture::Settle() {
  // Pumps more than once, because a pump that meets another thread's round of low-water sees the value of the round
  // before.
  const Deadline end = Soon();
  do {
    dc->Pump();
    Collector::Mark mark = collector->MarkFinished();
    if (collector->WaitCollected(&mark, RealRuntime().Now() + milliseconds(20))) return true;
  } while (RealRuntime().Now() < end);
  return false;
}

bool EngineFixture::CopiesBecome(uint64_t count) {
  const Deadline end = Soon();
  while (catalogue->copied_postings() != count) {
    if (RealRuntime().Now() >= end) return false;
    domain.Collect();
    RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(100));
  }
  return true;
}

void EngineFixture::Collect() {
  // The first round takes finished transactions, the second looks at the applied position, the third collects.
  for (int i = 0; i < 3; ++i) {
    collector->RunBetweenRounds([](Collector::Access&) {});
  }
}

void EngineFixture::Fold() {
  collector->RunBetweenRounds([](Collector::Access& access) { access.Fold(); });
}

void EngineFixture::SetVersionBudget(uint64_t bytes) {
  // Set by the collector's thread, which reads it.
  collector->RunBetweenRounds([&](Collector::Access&) { engine->version_budget_bytes = bytes; });
}

void EngineFixture::ClearReadCache() {
  collector->RunBetweenRounds([](Collector::Access& access) { access.ClearReadCache(); });
}

void EngineFixture::SetRanges(const std::vector<std::string>& cuts, TableId table) {
  catalogue->Find(table)->ranges().Recut(RealRuntime(), domain, cuts);
}

std::string EngineFixture::Contents() { return Begin().Scan(); }

Range& EngineFixture::RangeOf(std::string_view key) {
  const RangeMap& map = catalogue->Find(kTable)->map();
  return map.at(map.IndexOf(key));
}

std::string StatusText(const Status& status) {
  if (status.ok()) return "ok";
  if (status.abort() != nullptr) return AbortReasonName(status.abort()->reason);
  return ErrorCodeName(status.code());
}

TestTransaction::~TestTransaction() { Abort(); }

std::string TestTransaction::Text(const Status& status) {
  const bool goes_on = status.ok() || status == ErrorCode::kAlreadyExists || status == ErrorCode::kNotFound ||
                       status == ErrorCode::kInvalidArgument || status == ErrorCode::kWrongState;
  if (!goes_on) {
    manager_.Abort(*txn_, status.abort() != nullptr ? status.abort()->reason : AbortReason::kFailedOperation);
  }
  return StatusText(status);
}

std::string TestTransaction::Get(std::string_view key) {
  RecordBatch batch;
  const Status status = manager_.Get(*txn_, table, key, &batch, EngineFixture::Soon());
  if (!status.ok()) return Text(status);
  RecordBatch::Iterator it(batch);
  return it.Valid() ? std::string(it.record().value) : "-";
}

std::string TestTransaction::Put(std::string_view key, std::string_view value) {
  return Text(manager_.Put(*txn_, table, key, value));
}

std::string TestTransaction::Remove(std::string_view key) { return Text(manager_.Remove(*txn_, table, key)); }

std::string TestTransaction::Insert(std::string_view key, std::string_view value) {
  return Text(manager_.Insert(*txn_, table, key, value, EngineFixture::Soon()));
}

std::string TestTransaction::Update(std::string_view key, std::string_view value) {
  return Text(manager_.Update(*txn_, table, key, value, EngineFixture::Soon()));
}

std::string TestTransaction::ScanBatch(Operation* scan, bool* more) {
  *more = false;
  OperationResult result;
  scan->kind = OperationKind::kScan;
  scan->table = table;
  const Status status = manager_.Scan(*txn_, *scan, &result, EngineFixture::Soon());
  if (!status.ok()) return Text(status);
  std::string text;
  for (RecordBatch::Iterator it(result.records); it.Valid(); it.Next()) {
    if (!text.empty()) text += ' ';
    text.append(it.record().key).append("=").append(it.record().value);
  }
  *more = !result.complete;
  scan->scan_sequence = result.scan_sequence;
  if (scan->direction == Direction::kAscending) {
    low_ = result.resume;
    scan->low = low_;
  } else {
    high_ = result.resume;
    scan->high = high_;
  }
  return text;
}

std::string TestTransaction::ScanAll(Operation scan) {
  std::string all;
  for (bool more = true; more;) {
    const std::string text = ScanBatch(&scan, &more);
    if (!open()) return text;
    if (!all.empty() && !text.empty()) all += ' ';
    all += text;
  }
  return all;
}

std::string TestTransaction::Scan(std::string_view low, std::string_view high, Direction direction) {
  return ScanAll(Operation{.low = low, .high = high, .direction = direction});
}

std::string TestTransaction::ScanForUpdate(std::string_view low, std::string_view high) {
  return ScanAll(Operation{.low = low, .high = high, .for_update = true});
}

std::string TestTransaction::Commit() {
  const Result<CommitAnswer> answer = manager_.Commit(*txn_, EngineFixture::Soon());
  return StatusText(answer.status());
}

void TestTransaction::Abort() {
  if (open()) manager_.Abort(*txn_, AbortReason::kRequested);
}

AtPoint::AtPoint(std::string point, std::function<void()> action)
    : reached_(std::make_shared<std::atomic<bool>>(false)) {
  testing::SetPointHandler(
      [reached = reached_, point = std::move(point), action = std::move(action)](std::string_view name) {
        if (name != point || reached->exchange(true)) return;
        action();
      });
}

AtPoint::~AtPoint() {
  reached_->store(true);  // a thread that passes the point late does nothing
  testing::SetPointHandler(nullptr);
}

}  // namespace deut::tc

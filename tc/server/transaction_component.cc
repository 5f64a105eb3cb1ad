#include "tc/server/transaction_component.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/check.h"
#include "common/base/concat.h"
#include "common/io/folder_owner.h"
#include "common/io/watched_storage.h"
#include "common/observe/log.h"
#include "common/testing/test_points.h"
#include "tc/catalogue/catalogue.h"
#include "tc/dc_link/dc_link.h"
#include "tc/log_format/block_format.h"
#include "tc/mvcc/collector.h"
#include "tc/mvcc/read_cache.h"
#include "tc/mvcc/record_table.h"
#include "tc/outcomes/outcome_table.h"
#include "tc/record_manager/pinned.h"
#include "tc/record_manager/record_manager.h"
#include "tc/server/reader_eviction.h"
#include "tc/server/repartitioner.h"
#include "tc/server/serving_state.h"
#include "tc/server/session.h"
#include "tc/server/session_registry.h"
#include "tc/server/status_report.h"

namespace deut::tc {
namespace {

// The longest time for which a wait does not notice that the component is to stop.
constexpr Duration kStopPollInterval = milliseconds(100);
// Time limit of one question to the DC at the start, after which it is asked again. A stop waits for the answer.
constexpr Duration kStartCallTimeout = seconds(1);
// If the DC answers with an error it is asked again after a pause, which doubles from the first figure to the second.
constexpr Duration kTablesPauseMin = milliseconds(50);
constexpr Duration kTablesPauseMax = seconds(1);

// Returns whether no later answer to the same question can be better. PERMISSION_DENIED and IO_ERROR are not among
// these codes, because operators repair certificates and disks while the processes run.
bool IsFinalAnswer(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kFenced:
    case ErrorCode::kVersionMismatch:
    case ErrorCode::kWrongState:
    case ErrorCode::kCorruption:
    case ErrorCode::kInternal:
      return true;
    default:
      return false;
  }
}

// Bytes of the log that are kept when values are read back: the version budget divided by kReadBackDivisor, within
// limits.
constexpr uint64_t kReadBackDivisor = 16;
constexpr uint64_t kMinReadBackBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxReadBackBytes = uint64_t{64} << 20;

constexpr FolderOwner kTcFolder = {FolderKind::kTransactionComponent, [](std::string_view name) {
                                     uint64_t number = 0;
                                     return name == "LOCK" || name == "spill" ||
                                            ParseSegmentName(name.substr(0, name.find(kDamagedSuffix)), &number);
                                   }};

// A version of a small record takes about this many bytes with its entry. So the hash chains of the record table stay
// short when such versions fill the budget.
constexpr uint64_t kBudgetBytesPerBucket = 256;

constexpr uint64_t kDefaultScanAheadBytes = uint64_t{256} << 20;

// Fills the fields that have no value: from the process's budget, or else with their defaults. Returns true if the
// version budget is to follow the process's budget; its field then has the cap.
bool FollowProcessBudget(TransactionComponentOptions* options) {
  const ProcessBudget* const budget = options->process_budget;
  VersionMemoryOptions& memory = options->memory;
  const bool versions_follow = budget != nullptr && !memory.version_budget_bytes.has_value();
  if (!memory.version_budget_bytes.has_value()) {
    memory.version_budget_bytes =
        budget != nullptr ? budget->version_cap() : VersionMemoryOptions::kDefaultVersionBudgetBytes;
  }
  if (!memory.max_transaction_bytes.has_value()) {
    memory.max_transaction_bytes =
        budget != nullptr ? budget->transaction_bytes() : VersionMemoryOptions::kDefaultMaxTransactionBytes;
  }
  if (options->log_buffer_bytes.has_value()) {
    options->log.ring_bytes = *options->log_buffer_bytes;
  } else if (budget != nullptr) {
    options->log.ring_bytes = std::min<size_t>(options->log.ring_bytes, budget->log_buffer_bytes());
  }
  return versions_follow;
}

uint32_t LogBuckets(const TransactionComponentOptions& options) {
  if (options.memory.log2_record_buckets != 0) return options.memory.log2_record_buckets;
  return static_cast<uint32_t>(
      std::clamp(std::bit_width(*options.memory.version_budget_bytes / kBudgetBytesPerBucket) - 1, 8, 26));
}

// A spilled run begins with at least this many updates, which is about a hundredth of what the budget holds.
size_t MinSpilledUpdates(uint64_t budget_bytes) {
  return std::clamp<size_t>(budget_bytes >> 13, 64, Spiller::kPerRound);
}

// The filters of spilled runs take at most this part of the version budget, which they count against. At ten bits a
// key that is enough for one spilled version in ten bytes of the budget. Runs beyond that have no filter, so that a
// longer backlog does not refuse writers for the sake of reads.
constexpr uint64_t kSpillFilterDivisor = 8;

// The versions that the TC holds, in memory and in spilled files. The members are in the order of dependence, and are
// destroyed in reverse.
struct VersionStore {
  VersionStore(const TransactionComponentOptions& options, Runtime& runtime, Storage& storage, Timestamp first,
               std::function<uint64_t()> filter_budget)
      : spill_disk(runtime, storage, {.slow_after = options.spill.slow_after, .stuck_after = Duration(0)}),
        records(domain, LogBuckets(options), first),
        read_cache(options.read_cache.bytes.value_or(0), options.read_cache.written, domain, records),
        spilled(options.spill.directory, runtime, spill_disk, domain, std::move(filter_budget)) {}

  // S9: the collector waits for spilled files, so an operation that hangs there is logged. It does not end the
  // process, because the log has everything that these files have. (Declared before the domain, which releases the
  // last of them.)
  WatchedStorage spill_disk;
  ReclamationDomain domain;
  RecordTable records;
  ReadCache read_cache;
  SpilledRuns spilled;
};

class LinkReader final : public DcReader {
 public:
  explicit LinkReader(DcLink& link) : link_(link) {}
  Status Read(absl::Span<DataRequest* const> requests, Deadline deadline) override {
    return link_.Read(requests, deadline);
  }
  bool TrySubmitReads(absl::Span<DataRequest* const> requests) override { return link_.TrySubmitReads(requests); }
  void CollectReads(absl::Span<DataRequest* const> requests, Deadline deadline) override {
    link_.CollectReads(requests, deadline);
  }
  Result<std::unique_ptr<ScanStream>> OpenScan(const ScanSpec& spec, Deadline deadline) override {
    DEUT_ASSIGN_OR_RETURN(std::unique_ptr<BulkScan> scan, link_.OpenScan(spec, deadline));
    return std::unique_ptr<ScanStream>(std::move(scan));
  }
  Position applied() const override { return link_.applied(); }
  bool HasSpace(uint64_t bytes) const override { return link_.HasSpace(bytes); }
  bool KnowsTableOptions() const override { return link_.KnowsTableOptions(); }

 private:
  DcLink& link_;
};

ActiveTransactions::Options ActiveOptions(const TransactionComponentOptions& options, const RecoveredLog& recovered,
                                          RedoLog& log) {
  ActiveTransactions::Options active;
  active.max_transactions = options.max_transactions;
  active.first_timestamp = recovered.first_timestamp;
  active.ensure_reserved = [&log](Timestamp timestamp, Deadline deadline) {
    return log.EnsureReserved(timestamp, deadline);
  };
  active.reserved_below = [&log] { return log.reserved_below(); };
  active.log_tail = [&log] { return log.tail(); };
  return active;
}

DcLinkOptions LinkOptions(DcLinkOptions options, std::function<Status()> begin_log,
                          std::function<void(const Status&)> on_fatal) {
  options.begin_log = std::move(begin_log);
  options.on_fatal = std::move(on_fatal);
  return options;
}

}  // namespace

// The members are in the order of dependence, and are destroyed in reverse.
struct TransactionComponent::Parts {
  // `versions_follow`: the process's budget limits the versions, too.
  Parts(TransactionComponentOptions o, bool versions_follow, Runtime& r, Storage& storage, DataComponent& dc,
        std::unique_ptr<RedoLog> opened, const RecoveredLog& recovered)
      : options(std::move(o)),
        runtime(r),
        state(
            r, [this] { return link.status().state; }, options.on_refused),
        store(options, r, storage, recovered.first_timestamp,
              [this] { return engine.version_budget() / kSpillFilterDivisor; }),
        log(std::move(opened)),
        active(ActiveOptions(options, recovered, *log), r),
        link(r, dc, *log, recovered, active, active,
             LinkOptions(
                 options.dc_link, [this, &storage] { return BeginLog(storage); },
                 [this](const Status& s) { state.Refuse(s); })),
        reader(link),
        catalogue(r, store.domain, options.max_tables),
        collector(CollectorOptions(), r, store.domain, store.records),
        outcomes({.max_outcomes = options.outcomes.max_outcomes,
                  .window = options.outcomes.window,
                  .first_timestamp = recovered.first_timestamp},
                 r, store.domain),
        engine{.runtime = r,
               .domain = store.domain,
               .active = active,
               .records = store.records,
               .catalogue = catalogue,
               .collector = collector,
               .log = *log,
               .dc = reader,
               .version_budget_bytes = *options.memory.version_budget_bytes,
               .version_limit = versions_follow ? options.process_budget : nullptr,
               .max_transaction_bytes = *options.memory.max_transaction_bytes,
               .outcomes = &outcomes,
               .read_cache = HasReadCache() ? &store.read_cache : nullptr,
               .spilled = &store.spilled,
               .conflicts = options.conflicts,
               .scan_ahead =
                   ScanAheadBudget(options.process_budget == nullptr ? kDefaultScanAheadBytes
                                                                     : options.process_budget->scan_ahead_bytes())},
        record_manager(engine),
        repartitioner(options.ranges, engine, link),
        eviction(engine,
                 [this] {
                   const DcLinkStatus dc = link.status();
                   return dc.gate_open && dc.shipping && dc.in_flight_bytes == 0;
                 }),
        registry(r, options.idle_timeout) {
    if (options.memory.over_budget == OverBudgetPolicy::kAbortReader)
      registry.SetEvictionSource([this] { return eviction.Next(); });
    outcomes.Recover(recovered);
    log->set_before_trim([this](Lsn cut) { return outcomes.ForgetBelow(cut); });
  }

  // Without a value the process's budget decides, at each moment, how many bytes the cache has.
  bool HasReadCache() const {
    return options.read_cache.bytes.value_or(options.process_budget == nullptr ? 0 : 1) != 0;
  }

  // Takes part in the process's budget. REQUIRES: the collector runs.
  void JoinProcessBudget() {
    if (options.process_budget == nullptr) return;
    // A large transaction is a fixed part. If its bytes were versions, the limit of versions would be so much higher, and
    // others could pin that beside it (MayPin), whether memory is free or not.
    versions_registration.emplace(*options.process_budget, MemoryPart::kVersions,
                                  ProcessBudget::Reporter{.bytes = [this] { return OrdinaryPinnedBytes(engine); }});
    ProcessBudget::Reporter cache{.bytes = [this] { return store.read_cache.bytes(); }};
    if (!options.read_cache.bytes.has_value()) {
      cache.on_limit = [this](uint64_t limit) {
        if (store.read_cache.SetBudget(limit)) collector.MakeRoom();
      };
    }
    cache_registration.emplace(*options.process_budget, MemoryPart::kCachedRecords, std::move(cache));
  }
  void LeaveProcessBudget() {
    cache_registration.reset();
    versions_registration.reset();
  }

  Collector::Options CollectorOptions() {
    Collector::Options collecting;
    collecting.applied = [this] { return link.applied(); };
    collecting.low_water = [this] { return active.AdvanceNow(); };
    collecting.readers = [this] { return active.RoundForReaders(); };
    if (options.conflicts.range_control == RangeControl::kRanges) {
      collecting.runs = [this](TableId table) -> CommittedRuns& { return catalogue.FindAlsoDropped(table)->runs(); };
    }
    collecting.free_tables = [this](Collector::Access& access) {
      return catalogue.FreeDropped({.applied = [&access] { return access.applied(); },
                                    .low_water = [this] { return active.AdvanceNow(); },
                                    .draw = [this] { return active.DrawUnused(runtime.Now()); }},
                                   access);
    };
    if (HasReadCache()) collecting.read_cache = &store.read_cache;
    collecting.value_evictor.excess = [this] { return PinnedExcess(engine); };
    collecting.value_evictor.durable = [this] { return log->durable(); };
    collecting.spiller = {.runs = &store.spilled,
                          .excess = [this] { return SpillExcess(engine); },
                          .durable = [this] { return log->durable(); },
                          .oldest_first_record = [this] { return active.OldestFirstRecord(); },
                          .at_least = MinSpilledUpdates(*options.memory.version_budget_bytes)};
    collecting.fold_after = options.memory.fold_after;
    collecting.fold_at_least = options.memory.fold_at_least;
    collecting.released = [this](uint64_t bytes) {
      engine.counters.pinned_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    };
    return collecting;
  }

  // Called when the DC has accepted this TC (X4): only from now on the TC writes to its folders. Runs that an earlier process has spilled may fill
  // the disk on which the log needs its next segment, so they are removed first.
  Status BeginLog(Storage& storage) {
    DEUT_RETURN_IF_ERROR(ClaimFolder(storage, options.log.directory, kTcFolder));
    DEUT_RETURN_IF_ERROR(store.spilled.LockAndEmpty());
    return log->Begin();
  }

  // X4: serves nothing before the DC has everything that the log held.
  void StartServing() {
    Duration pause = kTablesPauseMin;
    ErrorCode told = ErrorCode::kOk;
    while (!state.stopping()) {
      const Status caught_up = link.WaitCaughtUp(runtime.Now() + milliseconds(200));
      if (caught_up == ErrorCode::kUnavailable || caught_up == ErrorCode::kDeadlineExceeded) continue;
      if (!caught_up.ok()) return state.Refuse(caught_up);
      const Result<std::vector<TableInfo>> tables = link.Tables(runtime.Now() + kStartCallTimeout);
      if (!tables.ok()) {
        if (IsFinalAnswer(tables.status())) return state.Refuse(tables.status());
        if (std::exchange(told, tables.status().code()) != tables.status().code()) {
          LogWarning("the tables of ", options.dc_link.dc_name,
                     " are not known yet, asking again: ", tables.status().ToString());
        }
        state.WaitDecided(runtime.Now() + pause);  // a stop ends the pause
        pause = std::min(pause * 2, kTablesPauseMax);
        continue;
      }
      if (Status loaded = catalogue.LoadFromDc(*tables); !loaded.ok()) return state.Refuse(loaded);
      repartitioner.RunOnce(runtime.Now() + kStartCallTimeout);
      DEUT_CHECK(log->begun());  // X4: the DC has accepted this TC
      if (state.Serve()) repartitioner.Start();
      return;
    }
  }

  // A call that creates or drops a table, from before it checks whether the component serves until it has ended. Stop
  // does the same in the opposite order, so it waits for every call that went on, as these append to the log.
  // (Transactions of sessions end in AbortAll.)
  class TableCall {
   public:
    explicit TableCall(Parts& parts) : parts_(parts) { parts_.table_calls.fetch_add(1, std::memory_order_seq_cst); }
    ~TableCall() {
      parts_.table_calls.fetch_sub(1, std::memory_order_seq_cst);
      if (parts_.state.stopping()) parts_.runtime.WakeAll(parts_.table_calls);
    }
    TableCall(const TableCall&) = delete;
    TableCall& operator=(const TableCall&) = delete;

   private:
    Parts& parts_;
  };

  void WaitForTableCalls() {
    for (;;) {
      const uint32_t calls = table_calls.load(std::memory_order_seq_cst);
      if (calls == 0) return;
      runtime.Wait(table_calls, calls, kNoDeadline);
    }
  }

  const TransactionComponentOptions options;
  Runtime& runtime;
  ServingState state;
  VersionStore store;
  const std::unique_ptr<RedoLog> log;
  ActiveTransactions active;
  DcLink link;
  LinkReader reader;
  Catalogue catalogue;
  Collector collector;
  OutcomeTable outcomes;
  Engine engine;
  RecordManager record_manager;
  Repartitioner repartitioner;
  ReaderEviction eviction;
  SessionRegistry registry;

  std::atomic<uint32_t> table_calls{0};  // in flight
  std::unique_ptr<Thread> starter;
  bool stopped = false;
  std::optional<ProcessBudget::Registration> versions_registration;
  std::optional<ProcessBudget::Registration> cache_registration;
};

Result<std::unique_ptr<TransactionComponent>> TransactionComponent::Open(TransactionComponentOptions options,
                                                                         Runtime& runtime, Storage& storage,
                                                                         DataComponent& dc) {
  if (options.memory.log2_record_buckets > 30) {
    return DEUT_ERROR(kInvalidArgument, "log2_record_buckets is at most 30; it is ",
                      options.memory.log2_record_buckets);
  }
  const bool versions_follow = FollowProcessBudget(&options);
  options.log.max_outcomes = options.outcomes.max_outcomes;
  options.log.keep_time = options.outcomes.window;
  options.log.read_back_bytes = std::clamp<uint64_t>(*options.memory.version_budget_bytes / kReadBackDivisor,
                                                     kMinReadBackBytes, kMaxReadBackBytes);
  options.log.keep_bytes = options.outcomes.log_bytes;
  if (options.spill.directory.empty()) options.spill.directory = Concat(options.log.directory, "/spill");
  // The TC writes nothing to a folder of another component. In its own folders it writes and removes nothing but locks before the DC has accepted it
  // (Parts::BeginLog). So a refusal leaves all files on which it is based. A refused start also removes the lock files that it has made. All it may
  // leave behind is the empty folder of the log.
  DEUT_RETURN_IF_ERROR(CheckFolder(storage, options.log.directory, kTcFolder));
  DEUT_RETURN_IF_ERROR(SpilledRuns::CheckFolder(storage, options.spill.directory));
  RecoveredLog recovered;
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<RedoLog> log, RedoLog::Recover(options.log, runtime, storage, &recovered));
  DEUT_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> spill_lock,
                        SpilledRuns::LockFolder(storage, options.spill.directory));
  auto parts =
      std::make_unique<Parts>(std::move(options), versions_follow, runtime, storage, dc, std::move(log), recovered);
  Parts* const p = parts.get();
  p->store.spilled.AdoptLock(std::move(spill_lock));
  p->collector.Start();
  p->JoinProcessBudget();
  p->registry.Start();
  p->link.Start();
  p->starter = runtime.StartThread("tc-start", [p] { p->StartServing(); });
  return std::unique_ptr<TransactionComponent>(new TransactionComponent(std::move(parts)));
}

TransactionComponent::TransactionComponent(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

TransactionComponent::~TransactionComponent() {
  Stop();
  DEUT_CHECK(parts_->table_calls.load(std::memory_order_seq_cst) == 0);
}

void TransactionComponent::BeginStop() {
  Parts& p = *parts_;
  p.state.BeginStop();
  p.link.CloseGate();
}

void TransactionComponent::Stop() {
  Parts& p = *parts_;
  if (std::exchange(p.stopped, true)) return;
  BeginStop();
  p.LeaveProcessBudget();
  p.starter->Join();
  p.repartitioner.Stop();
  p.registry.Stop();
  p.link.Stop();
  p.registry.AbortAll(AbortReason::kShutdown);
  DEUT_POINT("component.aborted_all");
  p.WaitForTableCalls();
  DEUT_POINT("component.stopping_log");
  p.log->Stop();
  p.collector.Stop();
}

Status TransactionComponent::WaitServing(Deadline deadline) {
  parts_->state.WaitDecided(deadline);
  return parts_->state.Check();
}

Result<std::unique_ptr<TransactionSession>> TransactionComponent::NewSession(Deadline) {
  Parts* const p = parts_.get();
  return std::unique_ptr<TransactionSession>(
      std::make_unique<Session>(p->record_manager, p->runtime, [p] { return p->state.Check(); }, p->registry));
}

Result<Lsn> TransactionComponent::AwaitDurable(Lsn at, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(parts_->log->WaitDurable(at, deadline));
  const Lsn durable = parts_->log->durable();
  DEUT_DCHECK(durable > at);  // D1: the caller shows what is below
  return durable;
}

Result<OutcomeAnswer> TransactionComponent::AskOutcome(const TransactionName& name, Deadline deadline) {
  DEUT_RETURN_IF_ERROR(parts_->state.Check());
  Parts& p = *parts_;
  DEUT_ASSIGN_OR_RETURN(const OutcomeAnswer answer, p.outcomes.Ask(name, p.active.next_timestamp(), deadline));
  // An outcome that was answered once is answered again, even by a later process.
  if (answer.outcome == TransactionOutcome::kCommitted && DEUT_STEP("outcome.answer_durable"))
    DEUT_RETURN_IF_ERROR(p.log->WaitDurable(answer.commit.commit_lsn, deadline));
  return answer;
}

Result<std::string> TransactionComponent::NameOfTable(TableId table) {
  DEUT_RETURN_IF_ERROR(parts_->state.Check());
  return parts_->catalogue.NameOf(table);
}

Result<TableId> TransactionComponent::OpenTable(std::string_view name, Deadline) {
  DEUT_RETURN_IF_ERROR(parts_->state.Check());
  DEUT_ASSIGN_OR_RETURN(const Catalogue::TablePointer table, parts_->catalogue.FindByName(name));
  return table->id();
}

Result<TableId> TransactionComponent::CreateTable(std::string_view name, const TableOptions& options,
                                                  Deadline deadline) {
  const Parts::TableCall call(*parts_);
  DEUT_RETURN_IF_ERROR(parts_->state.Check());
  return parts_->record_manager.CreateTable(name, options, deadline);
}

Status TransactionComponent::DropTable(std::string_view name, Deadline deadline) {
  const Parts::TableCall call(*parts_);
  DEUT_RETURN_IF_ERROR(parts_->state.Check());
  return parts_->record_manager.DropTable(name, deadline);
}

Result<std::vector<TableInfo>> TransactionComponent::ListTables(Deadline deadline) {
  DEUT_RETURN_IF_ERROR(parts_->state.Check());
  // The DC knows the sizes. A table that it has not created yet, or cannot be asked about, is listed without its
  // size.
  Result<std::vector<TableInfo>> sizes = parts_->link.Tables(deadline);
  absl::flat_hash_map<TableId, TableInfo> known;
  if (sizes.ok()) {
    for (TableInfo& size : *sizes) known.emplace(size.id, std::move(size));
  }
  std::vector<TableInfo> listed;
  for (const Catalogue::TablePointer& table : parts_->catalogue.tables()) {
    const auto size = known.find(table->id());
    listed.push_back(size != known.end() ? std::move(size->second)
                                         : TableInfo{.id = table->id(), .name = table->name()});
  }
  return listed;
}

Result<ServiceStatus> TransactionComponent::GetStatus(Deadline deadline) {
  Parts& p = *parts_;
  ServiceStatus status;
  status.tc = ReportTc(p.engine, p.link.status(), p.repartitioner, p.store.spill_disk.statistics(), p.registry.size(),
                       p.state.serving());
  // Operators need the status also while the DC is away.
  if (Result<std::vector<CounterValue>> dc = p.link.DcCounters(std::min(deadline, p.runtime.Now() + seconds(2)));
      dc.ok()) {
    status.dc = *std::move(dc);
  }
  return status;
}

Status TransactionComponent::DropCaches(Deadline deadline) {
  DEUT_RETURN_IF_ERROR(parts_->state.Check());
  const auto clear = [](Collector::Access& access) { access.ClearReadCache(); };
  parts_->collector.RunBetweenRounds(clear);
  DEUT_RETURN_IF_ERROR(WaitCollected(deadline));
  // Versions collected meanwhile have left copies of themselves (S7). When these go they leave entries.
  parts_->collector.RunBetweenRounds(clear);
  return WaitCollected(deadline);
}

Status TransactionComponent::WaitCollected(Deadline deadline) {
  Collector::Mark mark = parts_->collector.MarkFinished();
  // Waits in steps, so that a stop is noticed.
  for (;;) {
    const MonotonicTime now = parts_->runtime.Now();
    if (parts_->collector.WaitCollected(&mark, std::min<Deadline>(deadline, now + kStopPollInterval)))
      return Status::Ok();
    DEUT_RETURN_IF_ERROR(parts_->state.Check());
    if (parts_->runtime.Now() >= deadline) break;
  }
  return DEUT_ERROR(kDeadlineExceeded, parts_->collector.uncollected(), " transactions are not collected yet, ",
                    parts_->collector.deferred_entries(),
                    " keys are kept for their read timestamps; the oldest open transaction is ",
                    parts_->active.oldest().value);
}

}  // namespace deut::tc

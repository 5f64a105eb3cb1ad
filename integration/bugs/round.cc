#include "integration/bugs/round.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/io/faulty_disk.h"
#include "common/runtime/random.h"
#include "integration/bugs/chaos.h"
#include "integration/bugs/damage.h"
#include "integration/bugs/recorded_round.h"
#include "integration/bugs/store.h"
#include "integration/bugs/two_tcs_round.h"
#include "integration/bugs/workers.h"
#include "integration/history/cycle_checker.h"
#include "integration/history/recorder.h"
#include "integration/history/timestamp_checker.h"
#include "integration/history/workloads.h"
#include "integration/power/checkpointing_dc.h"
#include "tc/client/client.h"

namespace deut::bugs {
namespace {

class Round {
 public:
  Round(const RoundOptions& options, Watchdog& watchdog)
      : options_(options),
        watchdog_(watchdog),
        random_(options.seed),
        environment_(DrawEnvironment(options.layer, random_)),
        disk_(RealRuntime(), random_.Next()),
        pages_(RealRuntime()) {}

  RoundResult Run() {
    Live();
    if (recorder_) result_.history = recorder_->Take();
    store_.reset();
    return std::move(result_);
  }

 private:
  bool loses_power() const { return options_.layer == Layer::kPower; }
  bool found() const { return !result_.verdict.empty(); }
  void Found(std::string verdict, std::string details) {
    if (found()) return;
    result_.verdict = std::move(verdict);
    result_.details = std::move(details);
  }

  void Live() {
    std::optional<Chaos> chaos;
    if (!history::MeasuresProgress(options_.workload)) chaos.emplace(environment_.chaos_seed);
    for (uint32_t life = 0; life < environment_.lives && !found(); ++life) {
      if (!Open(life) || !Prepare(life)) return;
      Work(life);
      if (found()) return;
      if (life + 1 < environment_.lives) EndLife();
    }
    if (options_.layer == Layer::kCorruption) {
      Corrupt();
    } else if (!store_) {
      if (!Open(environment_.lives)) return;
      ReadAll();
    } else {
      ReadAll();
    }
  }

  // If power is lost in recovery, the store is opened once more.
  bool Open(uint32_t life) {
    for (int tries = 0;; ++tries) {
      const uint64_t crashes = disk_.crashes();
      if (loses_power() && life > 0 && tries < 3 && random_.OneIn(2)) disk_.CrashAfter(1 + random_.Below(60));
      storage_ = disk_.Mount();
      Result<std::unique_ptr<Store>> opened =
          Store::Open(environment_, *storage_, pages(), [&] { return disk_.crashes() != crashes; });
      watchdog_.Moved();
      if (opened.ok()) {
        store_ = *std::move(opened);
        return true;
      }
      if (disk_.crashes() != crashes) {
        pages_.LosePower(random_.Next());
        crashes_ = disk_.crashes();
      } else {
        Found("does not open", opened.status().ToString());
        return false;
      }
    }
  }

  bool Prepare(uint32_t life) {
    if (life > 0) return true;
    const Result<TableId> table = store_->CreateTable("t", environment_.patience);
    if (!table.ok()) {
      Found("no table", table.status().ToString());
      return false;
    }
    Result<std::unique_ptr<history::Workload>> workload =
        history::NewWorkload(options_.workload, *table, environment_.durability, environment_.patience);
    if (!workload.ok()) {
      Found("no such workload", workload.status().ToString());
      return false;
    }
    workload_ = *std::move(workload);
    table_ = *table;
    recorder_.emplace(store_->client());
    recorder_->SetPadding(environment_.padding);
    const Status loaded = workload_->Load(*recorder_->NewClient());
    if (loaded.ok()) return true;
    Found("load", loaded.ToString());
    return false;
  }

  void Work(uint32_t life) {
    Runtime& runtime = RealRuntime();
    const Deadline end = runtime.Now() + environment_.life;
    const uint64_t crashes = crashes_;
    if (loses_power()) ArmDisk();
    std::vector<history::RecordedClient*> clients;
    for (uint32_t i = 0; i < environment_.threads; ++i) clients.push_back(recorder_->NewClient(store_->client()));
    Workers workers(*workload_, clients, options_.seed + uint64_t{life} * 100, environment_.steps_per_thread,
                    &watchdog_);
    bool failed = false, stopped = false;
    while (workers.running()) {
      failed = failed || !store_->failure().ok();
      stopped = stopped || failed || runtime.Now() >= end || disk_.crashes() != crashes;
      if (stopped) {
        workers.Stop();
        old_reader_.reset();  // writers may wait for it
      }
      const Duration period = std::min<Duration>(environment_.harm_period, milliseconds(20));
      runtime.SleepUntil(runtime.Now() + microseconds(200) + period);
      if (!stopped) Harm();
      if (watchdog_.still()) SayState();
    }
    old_reader_.reset();
    const std::vector<Status> failures = workers.Join();
    disk_harmed_ = disk_.crashes() != crashes || fault_hits() != 0;
    if (failed && !disk_harmed_) Found("the store fails", store_->failure().ToString());
    for (const Status& failure : failures) {
      if (failure.ok()) continue;
      // A lost disk may cause any error. But a workload's finding about values counts in any case.
      if (failure == ErrorCode::kCorruption || !disk_harmed_) {
        Found(failure == ErrorCode::kCorruption ? "condition" : "error", failure.ToString());
      }
    }
  }

  // Prints the state of a store in which nothing moves any more: its counters, and its answer to a write. Called
  // once, after the old reader has ended.
  void SayState() {
    if (std::exchange(said_, true)) return;
    Client& client = store_->neighbour();
    const Result<ServiceStatus> status = client.GetStatus();
    if (status.ok()) {
      for (const auto* const counters : {&status->tc, &status->dc}) {
        for (const CounterValue& counter : *counters) {
          std::printf("%s %llu\n", counter.name.c_str(), static_cast<unsigned long long>(counter.value));
        }
      }
    }
    Result<Transaction> begun = client.Begin({}, {.timeout = seconds(1)});
    Status wrote = begun.status();
    if (wrote.ok()) wrote = begun->Put(table_, "judge", "");
    if (wrote.ok()) wrote = begun->Commit().status();
    std::printf("status: %s\na write: %s\n", status.status().ToString().c_str(), wrote.ToString().c_str());
    std::fflush(stdout);
  }

  // Opens or closes a reader that holds back every later commit.
  void ChangeOldReader() {
    old_reader_.reset();
    if (random_.OneIn(2)) return;
    TransactionOptions options;
    if (random_.OneIn(2)) options.isolation = Isolation::kSnapshot;
    Result<Transaction> begun = store_->client().Begin(options, {.timeout = milliseconds(50)});
    if (begun.ok()) old_reader_.emplace(*std::move(begun));
  }

  void Harm() {
    if (environment_.old_readers && random_.OneIn(2)) ChangeOldReader();
    // Caches become empty only when everything is collected, which an old reader prevents.
    if (environment_.drop_caches && !old_reader_ && random_.OneIn(2)) (void)store_->DropCaches();
    if (environment_.restart_dc && random_.OneIn(environment_.restart_one_in)) {
      const uint64_t seed = random_.Next();
      // Updates that are not stable may be lost.
      const Status restarted = store_->RestartDc([&] {
        if (seed % 2 == 0) pages_.LosePower(seed);
      });
      if (!restarted.ok() && !loses_power()) Found("the DC does not start", restarted.ToString());
    }
  }

  void ArmDisk() {
    fault_ = -1;
    const uint64_t way = random_.Below(8);
    if (way < 3) {
      const DiskFault::Action action = random_.OneIn(2) ? DiskFault::Action::kIoError : DiskFault::Action::kShort;
      fault_ = disk_.AddFault({.action = action,
                               .kinds = kDiskWrite,
                               .path_contains = "/tc/",
                               .skip = random_.Below(uint64_t{8} << random_.Below(6)),
                               .count = 1});
    }
    if (way > 1) disk_.CrashAfter(1 + random_.Below(uint64_t{16} << random_.Below(7)));
  }
  uint64_t fault_hits() const { return fault_ < 0 ? 0 : disk_.hits(fault_); }

  void EndLife() {
    disk_.CrashAfter(0);
    // In the other half of the cases the process died and the machine stays up.
    if (loses_power() && random_.OneIn(2)) disk_.Crash(random_.Next());
    disk_.RemoveAllFaults();
    store_.reset();
    if (disk_.crashes() != crashes_ || random_.OneIn(2)) pages_.LosePower(random_.Next());
    crashes_ = disk_.crashes();
    watchdog_.Moved();
  }

  void ReadAll() {
    disk_.CrashAfter(0);
    disk_.RemoveAllFaults();
    // The last life may have ended on its own.
    if (disk_harmed_) {
      EndLife();
      if (!Open(0)) return;
      disk_harmed_ = false;
    }
    const Status read = workload_->ReadAll(*recorder_->NewClient(store_->client()));
    if (!read.ok()) Found("the last read", read.ToString());
    if (read.ok()) ExpectNoPostings();
  }

  // A posting left in a range when everything is collected would burden every later scan.
  void ExpectNoPostings() {
    Runtime& runtime = RealRuntime();
    for (const Deadline end = runtime.Now() + seconds(10);;) {
      watchdog_.Moved();
      if (!store_->DropCaches().ok()) return;
      const uint64_t left = Postings();
      if (left == 0) return;
      if (runtime.Now() >= end) return Found("postings are left", Concat(left, " of them"));
      runtime.SleepUntil(runtime.Now() + milliseconds(1));
    }
  }
  uint64_t Postings() {
    const Result<ServiceStatus> status = store_->client().GetStatus();
    if (!status.ok()) return 0;
    const auto postings = std::ranges::find(status->tc, "ranges.postings", &CounterValue::name);
    return postings == status->tc.end() ? 0 : postings->value;
  }

  void Corrupt() {
    store_.reset();
    LogDamage damage(disk_, environment_.tc.log.directory);
    for (int i = 0; i < 8 && !found(); ++i) {
      if (!damage.Do(random_)) return;
      storage_ = disk_.Mount();
      Result<std::unique_ptr<Store>> opened = Store::Open(environment_, *storage_, pages(), [] { return false; });
      watchdog_.Moved();
      if (opened.ok()) {
        const Status read = workload_->ReadAll(*recorder_->NewClient((*opened)->client()));
        if (!read.ok() && IsOrdinary(read)) Found("the read after damage", read.ToString());
        opened->reset();
      }
      if (!damage.Undo()) return;
    }
    if (found()) return;
    // The refusals of damaged logs deleted nothing.
    if (Open(0)) ReadAll();
  }

  power::KeptPages* pages() { return environment_.keeps_pages ? &pages_ : nullptr; }

  const RoundOptions options_;
  Watchdog& watchdog_;
  Random random_;
  Environment environment_;
  FaultyDisk disk_;
  power::KeptPages pages_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Store> store_;
  std::optional<Transaction> old_reader_;
  std::unique_ptr<history::Workload> workload_;
  std::optional<history::Recorder> recorder_;
  uint64_t crashes_ = 0;  // number of crashes that pages_ has taken into account
  int fault_ = -1;
  bool disk_harmed_ = false;
  bool said_ = false;
  TableId table_;
  RoundResult result_;
};

}  // namespace

void JudgeHistory(RoundResult* result) {
  const history::Report timestamps = history::CheckTimestamps(result->history);
  const history::Report cycles = history::CheckCycles(result->history);
  result->committed = timestamps.committed;
  if (timestamps.ok() && cycles.ok()) return;
  std::string verdict = timestamps.ok() ? "" : timestamps.verdict();
  if (!cycles.ok() && cycles.verdict() != verdict) ConcatTo(&verdict, verdict.empty() ? "" : "+", cycles.verdict());
  if (!result->verdict.empty()) ConcatTo(&verdict, "+", result->verdict);
  result->verdict = std::move(verdict);
  ConcatTo(&result->details, "\n", timestamps.ToText(), cycles.ToText());
}

RoundResult RunRound(const RoundOptions& options, Watchdog& watchdog) {
  if (options.layer == Layer::kRecorded) return RunRecordedRound(options.seed, watchdog);
  RoundResult result =
      options.layer == Layer::kTwoTcs ? RunTwoTcsRound(options, watchdog) : Round(options, watchdog).Run();
  JudgeHistory(&result);
  watchdog.Moved();
  return result;
}

}  // namespace deut::bugs

#include "integration/scenarios/scenario_run.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/history/cycle_checker.h"
#include "integration/history/history_edn.h"
#include "integration/history/history_text.h"
#include "integration/history/timestamp_checker.h"
#include "integration/history/workloads.h"
#include "tc/client/retry.h"

namespace deut::scenarios {
namespace {

using history::CheckCycles;
using history::CheckTimestamps;
using history::RecordedClient;
using history::Report;
using history::Workload;
using history::WorkloadRun;
using testing::Cluster;
using testing::ClusterOptions;
using testing::SmallDisk;
using testing::TempDir;

void Pause(Duration duration) { RealRuntime().SleepUntil(RealRuntime().Now() + duration); }

// True for the results that a fault may cause. Any other result of a step is an error.
bool MayHappen(const Status& status) {
  return status.ok() || IsRetryable(status) || status == ErrorCode::kDeadlineExceeded ||
         status == ErrorCode::kOutcomeUnknown || status == ErrorCode::kAlreadyExists || status == ErrorCode::kNotFound;
}

// Counts steps that succeed, and ends the run at a result that no fault may cause.
class WatchedWorkload final : public Workload {
 public:
  explicit WatchedWorkload(std::unique_ptr<Workload> inner) : inner_(std::move(inner)) {}

  Status Load(RecordedClient& client) override { return inner_->Load(client); }
  Status ReadAll(RecordedClient& client) override { return inner_->ReadAll(client); }
  Status Step(RecordedClient& client, Random& random) override {
    Status status = inner_->Step(client, random);
    if (status.ok()) done_.fetch_add(1);
    if (MayHappen(status)) return status;
    if (status != ErrorCode::kCorruption) {
      unexpected_.store(true);
      status = DEUT_ERROR(kCorruption, "a step was answered as it must not be: ", status.ToString());
    }
    failed_.store(true);
    return status;
  }

  uint64_t done() const { return done_.load(); }
  bool failed() const { return failed_.load(); }
  bool unexpected() const { return unexpected_.load(); }

 private:
  const std::unique_ptr<Workload> inner_;
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> failed_{false}, unexpected_{false};
};

// A cluster with its clients. The folders are removed with it.
struct Site {
  // In the order of construction, which the destructor reverses.
  TempDir folder;
  std::unique_ptr<SmallDisk> disk;
  std::unique_ptr<Cluster> cluster;
  std::vector<std::unique_ptr<Client>> clients;
  uint64_t cycles = 0, tables = 0;

  ~Site() {
    clients.clear();
    cluster.reset();
  }
};

class Run {
 public:
  Run(const Scenario& scenario, const RunOptions& options, std::ostream& out)
      : scenario_(scenario), options_(options), out_(out), begin_(RealRuntime().Now()) {}

  RunReport Go() {
    for (uint64_t n = 0; report_.ok() && !IsOver(); ++n) {
      seed_ = n == 0 ? options_.seed : Mix64(options_.seed + n) >> 16;
      random_ = Random(seed_);
      const Status ready = PrepareSite();
      if (!ready.ok()) {
        Fail(ready == ErrorCode::kCancelled ? "skipped" : VerdictOf(ready), Concat("start: ", ready.ToString()));
      } else {
        OneHistory();
      }
      if (!report_.ok()) report_.failed_seed = seed_;
    }
    site_.reset();
    report_.took = RealRuntime().Now() - begin_;
    return std::move(report_);
  }

 private:
  bool IsOver() const { return report_.cycles >= options_.cycles || RealRuntime().Now() - begin_ >= options_.duration; }

  void Fail(std::string verdict, const std::string& details) {
    if (report_.ok()) report_.verdict = std::move(verdict);
    ConcatTo(&report_.details, details, "\n");
  }

  Status PrepareSite() {
    if (site_ != nullptr && site_->cycles < scenario_.cluster) return Status();
    site_.reset();
    site_ = std::make_unique<Site>();
    ClusterOptions cluster;
    cluster.proxies = true;
    cluster.connect.client.default_timeout = scenario_.timeout;
    std::ranges::copy(scenario_.tc_flags, std::back_inserter(cluster.tc.flags));
    std::ranges::copy(scenario_.dc_flags, std::back_inserter(cluster.dc.flags));
    if (scenario_.small_disk != 0) {
      Result<std::unique_ptr<SmallDisk>> disk = SmallDisk::Create(site_->folder.path(), scenario_.small_disk);
      if (!disk.ok()) return DEUT_ERROR(kCancelled, disk.status().ToString());
      site_->disk = *std::move(disk);
      cluster.tc_folder = Concat(site_->disk->path(), "/tc");
    }
    site_->cluster = std::make_unique<Cluster>(cluster);
    for (uint32_t i = 1; i < scenario_.clients; ++i) site_->clients.push_back(site_->cluster->NewClient());
    return site_->cluster->AwaitServing(scenario_.stall);
  }

  void OneHistory() {
    Cluster& cluster = *site_->cluster;
    const std::string& name = scenario_.workloads[random_.Below(scenario_.workloads.size())];
    const std::string table_name = Concat("history", ++site_->tables);
    const Result<TableId> table = cluster.client().CreateTable(table_name);
    if (!table.ok()) return Fail("failed", table.status().ToString());
    WatchedWorkload workload(
        history::NewWorkload(name, *table, scenario_.durability, std::min<Duration>(scenario_.timeout, seconds(20)))
            .value());
    std::atomic<bool> stop{false};
    history::WorkloadOptions options{
        .threads = scenario_.threads, .duration = seconds(86400), .stop = &stop, .seed = random_.Next()};
    for (const std::unique_ptr<Client>& client : site_->clients) options.more_clients.push_back(client.get());
    FaultDriver driver(cluster, scenario_, site_->disk.get(), random_, &report_.effects);
    driver.SetAlways();
    const uint64_t first_cycle = report_.cycles;
    const MonotonicTime begin = RealRuntime().Now();
    const WorkloadRun run = RunWorkload(cluster.client(), workload, options, [&] {
      const bool enough = IsOver() || report_.cycles - first_cycle >= scenario_.history;
      if (enough || !report_.ok() || workload.failed()) {
        // The last transaction then reads from the DC, except for the very last writes.
        if (!stop.exchange(true) && report_.ok()) (void)cluster.client().DropCaches({.timeout = seconds(1)});
        Pause(milliseconds(1));
        return;
      }
      const Status cycle = Cycle(driver, workload);
      if (!cycle.ok()) Fail(VerdictOf(cycle), Concat("cycle ", report_.cycles, ": ", cycle.ToString()));
    });
    const MonotonicTime recorded = RealRuntime().Now();
    if (!run.status.ok() && report_.ok()) {
      const bool condition = run.status == ErrorCode::kCorruption && !workload.unexpected();
      Fail(condition ? "condition" : "failed", run.status.ToString());
    }
    const Report judged = Judge(run.history);
    const MonotonicTime checked = RealRuntime().Now();
    report_.checking += checked - recorded;
    out_ << scenario_.name << ": " << name << ", seed " << seed_ << ": " << report_.cycles - first_cycle
         << " cycles in " << duration_cast<milliseconds>(recorded - begin).count() << " ms, " << judged.committed
         << " committed (" << judged.unknown_committed << " of unknown outcome), " << judged.aborted
         << " aborted; checked in " << duration_cast<milliseconds>(checked - recorded).count()
         << " ms: " << report_.verdict << std::endl;
    if (!report_.ok()) return Keep(run.history);
    const Status dropped = cluster.client().DropTable(table_name);
    if (!dropped.ok()) Fail("failed", Concat("drop of a table: ", dropped.ToString()));
  }

  Report Judge(const history::History& history) {
    Report timestamps = CheckTimestamps(history);
    const Report cycles = CheckCycles(history);
    if (!timestamps.ok()) Fail(timestamps.verdict(), Concat("timestamps: ", timestamps.ToText()));
    if (!cycles.ok()) Fail(cycles.verdict(), Concat("cycles: ", cycles.ToText()));
    ++report_.histories;
    report_.committed += timestamps.committed;
    report_.aborted += timestamps.aborted;
    report_.unknown_committed += timestamps.unknown_committed;
    report_.unknown_dropped += timestamps.unknown_dropped;
    report_.reads += timestamps.reads;
    report_.scans += timestamps.scans;
    report_.edges += cycles.edges;
    return timestamps;
  }

  static const char* VerdictOf(const Status& status) {
    if (status == ErrorCode::kWrongState) return "crash";
    return status == ErrorCode::kDeadlineExceeded ? "stall" : "failed";
  }

  Status Cycle(FaultDriver& driver, const WatchedWorkload& workload) {
    const MonotonicTime begin = RealRuntime().Now();
    Pause(scenario_.slice.Draw(random_));
    for (uint64_t faults = scenario_.faults.empty() ? 0 : scenario_.faults_per_cycle.Draw(random_); faults > 0;
         --faults) {
      for (const Fault& fault : NextFaults()) DEUT_RETURN_IF_ERROR(driver.Do(fault));
    }
    DEUT_RETURN_IF_ERROR(site_->cluster->AwaitServing(scenario_.stall));
    // Half of the cycles continue with the DC's content, the others with the TC's caches.
    if (random_.OneIn(2)) {
      const Status dropped = site_->cluster->client().DropCaches();
      if (!MayHappen(dropped)) return dropped;
    }
    DEUT_RETURN_IF_ERROR(AwaitProgress(workload));
    ++report_.cycles;
    ++site_->cycles;
    report_.longest_cycle = std::max<Duration>(report_.longest_cycle, RealRuntime().Now() - begin);
    return Status();
  }

  // Deals all fault sequences in a random order before any of them repeats.
  const FaultSequence& NextFaults() {
    if (deck_.empty()) {
      for (size_t i = 0; i < scenario_.faults.size(); ++i) deck_.push_back(i);
      std::shuffle(deck_.begin(), deck_.end(), random_);
    }
    const size_t next = deck_.back();
    deck_.pop_back();
    return scenario_.faults[next];
  }

  Status AwaitProgress(const WatchedWorkload& workload) const {
    const uint64_t enough = workload.done() + scenario_.threads;
    const Deadline limit = RealRuntime().Now() + scenario_.stall;
    while (workload.done() < enough && !workload.failed()) {
      if (RealRuntime().Now() > limit) {
        return DEUT_ERROR(kDeadlineExceeded, "everybody serves, but for ",
                          duration_cast<seconds>(scenario_.stall).count(), " s hardly a step has succeeded");
      }
      Pause(milliseconds(1));
    }
    return Status();
  }

  void Keep(const history::History& history) {
    if (options_.keep.empty()) return;
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(options_.keep) / Concat(scenario_.name, "-", seed_);
    std::error_code error;
    fs::create_directories(folder, error);
    const Status written = WriteHistory(history, (folder / "history.txt").string());
    std::ofstream edn(folder / "history.edn", std::ios::binary);
    const Status elle = WriteEdn(history, edn);
    std::ofstream(folder / "report.txt") << report_.verdict << "\n" << report_.details;
    for (const char* log : {"tc.log", "dc.log"}) {
      fs::copy_file(site_->cluster->directory().Sub(log), folder / log, fs::copy_options::overwrite_existing, error);
    }
    edn.close();
    if (!elle.ok()) fs::remove(folder / "history.edn", error);  // the history has an operation that Elle cannot express
    const bool all = written.ok() && !error;
    out_ << (all ? "kept in " : "could not keep everything in ") << folder.string() << std::endl;
  }

  const Scenario& scenario_;
  const RunOptions& options_;
  std::ostream& out_;
  const MonotonicTime begin_;
  RunReport report_;
  uint64_t seed_ = 0;
  Random random_{0};
  std::vector<size_t> deck_;
  std::unique_ptr<Site> site_;
};

}  // namespace

RunReport RunScenario(const Scenario& scenario, const RunOptions& options, std::ostream& out) {
  return Run(scenario, options, out).Go();
}

std::string LedgerLine(const std::string& commit, const Scenario& scenario, const RunOptions& options,
                       const RunReport& report) {
  char took[32];
  std::snprintf(took, sizeof(took), "%.1f", std::chrono::duration<double>(report.took).count());
  return Concat(commit.empty() ? "unknown" : commit, " ", scenario.name, " ", options.seed, " ", report.cycles, " ",
                report.committed, " ", report.verdict, " ", took, "\n");
}

}  // namespace deut::scenarios

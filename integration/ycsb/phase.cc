#include "integration/ycsb/phase.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/runtime/random.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"

namespace deut::ycsb {
namespace {

constexpr Duration kTick = milliseconds(100);
constexpr int kTicksPerSecond = 10;
// A run that lacks writes (BenchmarkOptions::min_writes) may take at most this many times its time.
constexpr int kMaxRunTimes = 6;
// The progress reports an operation that has been in progress for at least this many seconds.
constexpr double kReportAfterSeconds = 1;

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

class Phase {
 public:
  Phase(PhaseKind kind, Client& client, TableId table, const BenchmarkOptions& options, Journal* journal,
        const PhaseOutput& output)
      : kind_(kind),
        client_(client),
        runtime_(client.runtime()),
        options_(options),
        output_(output),
        inserts_(runtime_, options.records),
        failure_mutex_(runtime_) {
    state_.journal = journal;
    state_.inserts = &inserts_;
    // Writers of different processes that write to the same store get different identities, even if the processes
    // have the same seed.
    const uint64_t process = Mix64(runtime_.RandomSeed());
    for (uint32_t i = 0; i < std::max(options.threads, 1U); ++i) {
      const uint64_t seed = Mix64(options.seed ^ Mix64(i + (kind == PhaseKind::kLoad ? 0 : 1'000'000)));
      workers_.push_back(std::make_unique<Worker>(client, table, options, state_, process + i, seed));
    }
  }

  PhaseResult Run();

 private:
  void Work(Worker& worker);
  Tick Sum() const;
  void Progress(const Tick& before, const Tick& now) const;

  const PhaseKind kind_;
  Client& client_;
  Runtime& runtime_;
  const BenchmarkOptions& options_;
  const PhaseOutput& output_;
  PhaseState state_;
  InsertSequence inserts_;
  std::vector<std::unique_ptr<Worker>> workers_;
  MonotonicTime begun_;

  std::atomic<size_t> finished_{0};
  Event all_finished_;
  Mutex failure_mutex_;
  Status failure_ DEUT_GUARDED_BY(failure_mutex_);
};

void Phase::Work(Worker& worker) {
  const Status status = kind_ == PhaseKind::kLoad ? worker.Load() : worker.Run();
  if (!status.ok()) {
    state_.stop.store(true);
    inserts_.Stop();
    const MutexLock lock(failure_mutex_);
    if (failure_.ok()) failure_ = status;
  }
  if (finished_.fetch_add(1) + 1 == workers_.size()) all_finished_.Signal(runtime_);
}

Tick Phase::Sum() const {
  const MonotonicTime now = client_.runtime().Now();
  Tick sum{.wall_us = client_.runtime().WallMicros(), .elapsed = Seconds(now - begun_)};
  for (const auto& worker : workers_) {
    const WorkerCounters& counters = worker->counters();
    sum.transactions += counters.transactions.load(std::memory_order_relaxed);
    sum.scans += counters.scans.load(std::memory_order_relaxed);
    sum.writes += counters.writes.load(std::memory_order_relaxed);
    sum.records += counters.records.load(std::memory_order_relaxed);
    sum.aborts += counters.aborts.load(std::memory_order_relaxed);
    sum.errors += counters.errors.load(std::memory_order_relaxed);
    const int64_t busy_since = counters.busy_since.load(std::memory_order_relaxed);
    if (busy_since != 0) sum.oldest = std::max(sum.oldest, Seconds(now.time_since_epoch() - Duration(busy_since)));
  }
  return sum;
}

void Phase::Progress(const Tick& before, const Tick& now) const {
  // The time of the oldest operation is printed only if it is unusual.
  const std::string waiting =
      now.oldest < kReportAfterSeconds ? "" : absl::StrFormat("  one in progress for %.1f s", now.oldest);
  const double span = std::max(now.elapsed - before.elapsed, 1e-3);
  const auto rate = [&](uint64_t Tick::* field) { return static_cast<double>(now.*field - before.*field) / span; };
  if (kind_ == PhaseKind::kLoad) {
    output_.progress(absl::StrFormat(
        "load %4.0f s  %9.0f records/s  %3.0f %%  errors %d%s", now.elapsed, rate(&Tick::records),
        100.0 * static_cast<double>(now.records) / static_cast<double>(std::max<uint64_t>(options_.records, 1)),
        now.errors, waiting));
    return;
  }
  output_.progress(absl::StrFormat(
      "run  %4.0f s  %8.0f ops/s  %8.0f scans/s  %9.0f records/s  aborts %.0f/s  errors %d%s", now.elapsed,
      rate(&Tick::transactions), rate(&Tick::scans), rate(&Tick::records), rate(&Tick::aborts), now.errors, waiting));
}

PhaseResult Phase::Run() {
  PhaseResult result;
  if (state_.journal != nullptr) {
    const Status begun = state_.journal->BeginPhase(kind_ == PhaseKind::kLoad ? "load" : "run");
    if (!begun.ok()) {
      result.failure = begun;
      return result;
    }
  }
  begun_ = runtime_.Now();
  std::vector<std::unique_ptr<Thread>> threads;
  for (const auto& worker : workers_)
    threads.push_back(runtime_.StartThread("ycsb-worker", [this, w = worker.get()] { Work(*w); }));

  const bool timed = kind_ == PhaseKind::kRun && options_.run_time > Duration(0);
  const Deadline end = timed ? begun_ + options_.run_time : kNoDeadline;
  const Deadline last_end = timed ? begun_ + kMaxRunTimes * options_.run_time : kNoDeadline;
  Tick second{.wall_us = runtime_.WallMicros()};
  Tick completed = second;  // the tick at which a completed transaction was last seen
  bool all_finished = false;
  for (int64_t number = 1; !all_finished; ++number) {
    const Deadline next = begun_ + number * kTick;
    const bool stopping = state_.stop.load();
    all_finished = all_finished_.Wait(runtime_, stopping || runtime_.Now() >= end ? next : std::min(next, end));
    const MonotonicTime time = runtime_.Now();
    if (!stopping && time >= end && (time >= last_end || Sum().writes >= options_.min_writes)) {
      // Each worker finishes the transaction it is in. Until then there may be more ticks.
      state_.stop.store(true);
      inserts_.Stop();
      all_finished = all_finished_.Wait(runtime_, next);
    }
    const Tick now = Sum();
    if (now.transactions != completed.transactions) {
      completed = now;
    } else {
      result.longest_gap = std::max(result.longest_gap, now.elapsed - completed.elapsed);
    }
    if (output_.tick) output_.tick(now);
    if (output_.progress && number % kTicksPerSecond == 0) {
      Progress(second, now);
      second = now;
    }
  }
  for (const auto& thread : threads) thread->Join();
  result.total = Sum();
  result.seconds = result.total.elapsed;
  result.begun = begun_;
  for (const auto& worker : workers_) {
    result.workers.Add(worker->results());
    result.longest.push_back(worker->results().longest);
  }
  std::sort(result.longest.begin(), result.longest.end(),
            [](const TimedOperation& a, const TimedOperation& b) { return a.took > b.took; });
  result.longest.resize(std::min(result.longest.size(), PhaseResult::kMaxLongest));
  const MutexLock lock(failure_mutex_);
  result.failure = failure_;
  return result;
}

// Returns the number of transactions that the transaction component has retried since its start; nothing if it does
// not report it.
std::optional<uint64_t> Restarts(Client& client) {
  const Result<ServiceStatus> status = client.GetStatus();
  if (!status.ok()) return std::nullopt;
  for (const CounterValue& counter : status->tc) {
    if (counter.name == "transactions.restarted") return counter.value;
  }
  return std::nullopt;
}

}  // namespace

PhaseResult RunPhase(PhaseKind kind, Client& client, TableId table, const BenchmarkOptions& options, Journal* journal,
                     const PhaseOutput& output) {
  const std::optional<uint64_t> before = Restarts(client);
  PhaseResult result = Phase(kind, client, table, options, journal, output).Run();
  const std::optional<uint64_t> after = Restarts(client);
  // The number is lower than before if the transaction component restarted meanwhile.
  if (before && after && *after >= *before) result.restarted = *after - *before;
  return result;
}

}  // namespace deut::ycsb

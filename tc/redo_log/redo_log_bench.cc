// Appends from 1 and 2 threads (buffered commits), and durable commits with 1 to 128 waiters, on real files. The
// directory is $REDO_LOG_BENCH_DIR, otherwise the working directory. It must be on a disk, not in memory.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/log_record.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

struct Bench {
  explicit Bench(size_t max_small_in_flight = 4) {
    const char* base = std::getenv("REDO_LOG_BENCH_DIR");
    directory = std::string(base == nullptr ? "." : base) + "/redo_log_bench_data";
    std::filesystem::remove_all(directory);
    storage = std::move(NewSystemStorage(IoKind::kAuto, RealRuntime()).value());
    RedoLogOptions options;
    options.directory = directory;
    options.max_small_in_flight = max_small_in_flight;
    RecoveredLog recovered;
    log = std::move(RedoLog::Open(options, RealRuntime(), *storage, &recovered).value());
  }
  ~Bench() {
    log = nullptr;
    std::filesystem::remove_all(directory);
  }
  // Keeps the disk from filling up.
  void Trim() { DEUT_CHECK(log->AdvanceRedoStart({.lsn = log->durable(), .stable = {}}, kNoDeadline).ok()); }

  std::string directory;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<RedoLog> log;
};

AppendResult CommitOne(RedoLog& log, uint64_t timestamp, const std::string& value) {
  const Update update{
      .kind = LogEntryKind::kPut, .sequence = 1, .table = TableId(1), .key = "user0123456789abcdef", .value = value};
  return log.AppendCommit(Timestamp(timestamp), {&update, 1});
}

std::unique_ptr<Bench> shared;

void Append(benchmark::State& state) {
  if (state.thread_index() == 0) shared = std::make_unique<Bench>();
  const std::string value(static_cast<size_t>(state.range(0)), 'v');
  uint64_t timestamp = 1;
  for (auto _ : state) {
    CommitOne(*shared->log, timestamp++, value);
    if (state.thread_index() == 0 && timestamp % 100000 == 0) shared->Trim();
  }
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) {
    const RedoLogCounters counters = shared->log->counters();
    state.counters["ring_waits"] = static_cast<double>(counters.ring_waits);
    state.counters["MB/s"] =
        benchmark::Counter(static_cast<double>(counters.record_bytes) / 1e6, benchmark::Counter::kIsRate);
    shared = nullptr;
  }
}
BENCHMARK(Append)->Arg(100)->Arg(1000)->Threads(1)->Threads(2)->UseRealTime()->MinTime(2);

// range(0) threads that each wait for their commit.
void DurableCommit(benchmark::State& state) {
  Bench bench(static_cast<size_t>(state.range(1)));
  const std::string value(100, 'v');
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> commits{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int64_t t = 0; t < state.range(0); ++t) {
    threads.push_back(RealRuntime().StartThread("committer", [&] {
      for (uint64_t i = 1; !stop.load(std::memory_order_relaxed); ++i) {
        const AppendResult commit = CommitOne(*bench.log, i, value);
        DEUT_CHECK(bench.log->WaitDurable(commit.lsn, kNoDeadline).ok());
        commits.fetch_add(1, std::memory_order_relaxed);
      }
    }));
  }
  for (auto _ : state) {
    const uint64_t before = commits.load();
    const MonotonicTime begin = RealRuntime().Now();
    RealRuntime().SleepUntil(begin + milliseconds(500));
    const double seconds = std::chrono::duration<double>(RealRuntime().Now() - begin).count();
    state.SetIterationTime(seconds / static_cast<double>(std::max<uint64_t>(commits.load() - before, 1)));
    bench.Trim();
  }
  stop.store(true);
  threads.clear();
  const RedoLogCounters counters = bench.log->counters();
  state.counters["commits/block"] = static_cast<double>(counters.records) / static_cast<double>(counters.blocks);
}
BENCHMARK(DurableCommit)
    ->ArgNames({"waiters", "small_in_flight"})
    ->ArgsProduct({{1, 16, 128}, {1, 2, 4, 16}})
    ->UseManualTime()
    ->Iterations(4)
    ->Unit(benchmark::kMicrosecond);

// The same without waiting threads: transactions get a callback, as the server's asynchronous commits do. One thread
// keeps range(0) of them in flight.
struct Slot final : DurabilityCallback {
  void OnDurable(const Status& status) override {
    DEUT_CHECK(status.ok());
    done.store(true, std::memory_order_release);
    finished->fetch_add(1, std::memory_order_seq_cst);
    RealRuntime().Wake(*finished, 1);
  }
  std::atomic<bool> done{true};
  std::atomic<uint32_t>* finished = nullptr;
};

void AsynchronousCommit(benchmark::State& state) {
  Bench bench(static_cast<size_t>(state.range(1)));
  const std::string value(100, 'v');
  std::atomic<uint32_t> finished{0};
  std::vector<Slot> slots(static_cast<size_t>(state.range(0)));
  for (Slot& slot : slots) slot.finished = &finished;
  uint64_t timestamp = 1;
  for (auto _ : state) {
    uint64_t commits = 0;
    const MonotonicTime begin = RealRuntime().Now();
    while (RealRuntime().Now() < begin + milliseconds(500)) {
      const uint32_t seen = finished.load(std::memory_order_seq_cst);
      bool any = false;
      for (Slot& slot : slots) {
        if (!slot.done.load(std::memory_order_acquire)) continue;
        slot.done.store(false, std::memory_order_relaxed);
        any = true;
        ++commits;
        const AppendResult commit = CommitOne(*bench.log, timestamp++, value);
        if (bench.log->NotifyWhenDurable(commit.lsn, &slot)) slot.done.store(true, std::memory_order_relaxed);
      }
      if (!any) RealRuntime().Wait(finished, seen, kNoDeadline);
    }
    const double seconds = std::chrono::duration<double>(RealRuntime().Now() - begin).count();
    state.SetIterationTime(seconds / static_cast<double>(commits));
  }
  for (Slot& slot : slots) {
    while (!slot.done.load(std::memory_order_acquire)) RealRuntime().Yield();
  }
}
BENCHMARK(AsynchronousCommit)
    ->ArgNames({"open", "small_in_flight"})
    ->ArgsProduct({{1, 16, 128}, {1, 2, 4, 16}})
    ->UseManualTime()
    ->Iterations(4)
    ->Unit(benchmark::kMicrosecond);

// A start behind range(0) MiB of log, of commits of one update of range(1) bytes. Measures the time until the log is
// open.
void Recover(benchmark::State& state) {
  Bench bench;
  const std::string value(static_cast<size_t>(state.range(1)), 'v');
  const uint64_t wanted = static_cast<uint64_t>(state.range(0)) << 20;
  uint64_t commits = 0;
  while (bench.log->tail().value < wanted) CommitOne(*bench.log, ++commits, value);
  bench.log->Stop();
  for (auto _ : state) {
    bench.log = nullptr;
    const MonotonicTime begin = RealRuntime().Now();
    RedoLogOptions options;
    options.directory = bench.directory;
    RecoveredLog recovered;
    bench.log = std::move(RedoLog::Open(options, RealRuntime(), *bench.storage, &recovered).value());
    state.SetIterationTime(std::chrono::duration<double>(RealRuntime().Now() - begin).count());
    bench.log->Stop();
  }
  state.counters["commits"] = static_cast<double>(commits);
  state.counters["GiB/s"] = benchmark::Counter(
      static_cast<double>(wanted) / (1 << 30) * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(Recover)
    ->ArgNames({"MiB", "bytes"})
    ->ArgsProduct({{1024}, {100, 1000}})
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace deut::tc

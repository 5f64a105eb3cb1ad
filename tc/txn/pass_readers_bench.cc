// Measures costs and benefits of ActiveTransactions::Options::pass_readers_after, for several values. Run by hand:
//   bazel run //tc/txn:pass_readers_bench
// Two threads commit and then begin a snapshot that contains the commit. Beside them one transaction at a time reads, stays open for a while and
// writes. The program prints how often snapshots begin, how long they wait, and how many of the transactions that stay lose to a snapshot.
//
// On 2026-11-24, on two busy processors; median wait for a snapshot in ms, and lost transactions:
//   pass after        0 ms         2 ms         5 ms        20 ms        50 ms       never
//   stay  1 ms   0.0  74 %    0.0   1 %    1.1   0 %    1.1   0 %    1.1   0 %    1.1   0 %
//   stay  5 ms   0.0  94 %    0.0  88 %    0.0   6 %    5.1   0 %    5.1   0 %    5.1   0 %
//   stay 15 ms   0.0 100 %    0.0  99 %    0.0  99 %    0.0   0 %     15   0 %     15   0 %
//   stay 50 ms   0.0 100 %    0.0 100 %    0.0 100 %    0.0  97 %    0.0   5 %     50   0 %
//   stay  1 s    0.0 100 %    0.0 100 %    0.0 100 %    0.0 100 %    0.0 100 %   1000   0 %
// So a transaction loses to nearly every such snapshot if it reads for longer than this time before it writes, and to none if it reads for less.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <type_traits>
#include <vector>

#include "common/base/check.h"
#include "common/runtime/runtime.h"
#include "tc/txn/active_transactions.h"

namespace deut::tc {
namespace {

constexpr Duration kRun = seconds(2);
static_assert(std::is_same_v<Duration, std::chrono::nanoseconds>);
constexpr int kThreads = 2;

struct Figures {
  double begun_per_s = 0, median_ms = 0, p99_ms = 0, lost_percent = 0;
};

Figures Measure(Duration pass_after, Duration stay) {
  Runtime& runtime = RealRuntime();
  ActiveTransactions::Options options;
  options.pass_readers_after = pass_after;
  options.log_tail = [] { return Lsn{8}; };
  ActiveTransactions active(options, runtime);
  const MonotonicTime end = runtime.Now() + kRun;
  std::atomic<uint64_t> ended{0}, lost{0};
  std::vector<std::vector<int64_t>> waits(kThreads);
  {
    std::vector<std::unique_ptr<Thread>> threads;
    threads.push_back(runtime.StartThread("reader", [&] {
      while (runtime.Now() < end) {
        const auto begun = *active.Begin(kNoDeadline);
        runtime.SleepUntil(std::min<MonotonicTime>(runtime.Now() + stay, end));
        if (!active.BecomeWriter(begun.slot, begun.timestamp)) lost.fetch_add(1);
        ended.fetch_add(1);
        active.End(begun.slot);
      }
    }));
    for (int i = 0; i < kThreads; ++i) {
      threads.push_back(runtime.StartThread("snapshots", [&, i] {
        while (runtime.Now() < end) {
          const auto written = *active.Begin(kNoDeadline, /*writes=*/true);
          active.End(written.slot);
          const MonotonicTime asked = runtime.Now();
          const auto snapshot = active.BeginSnapshot(written.timestamp, kNoDeadline);
          DEUT_CHECK(snapshot.ok());
          waits[static_cast<size_t>(i)].push_back((runtime.Now() - asked).count());
          active.End(snapshot->slot);
        }
      }));
    }
  }
  std::vector<int64_t> all;
  for (const auto& some : waits) all.insert(all.end(), some.begin(), some.end());
  std::ranges::sort(all);
  const auto ms = [&](size_t at) { return static_cast<double>(all[at]) / 1e6; };
  return {.begun_per_s = static_cast<double>(all.size()) / (static_cast<double>(kRun.count()) / 1e9),
          .median_ms = ms(all.size() / 2),
          .p99_ms = ms(all.size() * 99 / 100),
          .lost_percent = 100.0 * static_cast<double>(lost) / static_cast<double>(std::max<uint64_t>(ended, 1))};
}

}  // namespace
}  // namespace deut::tc

int main() {
  using deut::milliseconds;
  std::printf("%12s %9s %12s %11s %9s %7s\n", "pass after", "stay", "snapshots/s", "median ms", "p99 ms", "lost %");
  for (const int stay : {1, 5, 15, 50, 1000}) {
    for (const int after : {0, 2, 5, 20, 50, 1000}) {
      const auto figures = deut::tc::Measure(milliseconds(after), milliseconds(stay));
      std::printf("%9d ms %6d ms %12.0f %11.3f %9.3f %7.1f\n", after, stay, figures.begun_per_s, figures.median_ms,
                  figures.p99_ms, figures.lost_percent);
      std::fflush(stdout);
    }
  }
  return 0;
}

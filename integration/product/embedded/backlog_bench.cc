// Measures what an old reader costs other transactions. Scans of 50 of 2,000 records, in one or a few ranges, run
// while one record after the other is updated. They run with and without a transaction that has been open for some
// time. The benchmark also reports how much memory the old reader pins.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "benchmark/benchmark.h"
#include "common/base/check.h"
#include "common/observe/histogram.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "integration/product/embedded/embedded.h"
#include "tc/client/one_shot.h"

namespace deut {
namespace {

constexpr uint64_t kRecords = 2000;
constexpr Duration kMeasured = seconds(10);
constexpr Duration kBurst = milliseconds(1);

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) FailStop(result.status().ToString());
  return *std::move(result);
}

std::string KeyOf(uint64_t n) {
  char text[32];
  std::snprintf(text, sizeof text, "user%012llu", static_cast<unsigned long long>(n));
  return text;
}

uint64_t Figure(Client& client, std::string_view name) {
  for (const CounterValue& value : Must(client.GetStatus()).tc) {
    if (value.name == name) return value.value;
  }
  return 0;
}

// Updates records at a fixed rate until it is destroyed.
class Updater {
 public:
  Updater(Client& client, TableId table, uint64_t per_second) : client_(client), table_(table) {
    thread_ = RealRuntime().StartThread("updates", [this, per_second] { Run(per_second); });
  }
  ~Updater() {
    stop_.store(true);
    thread_.reset();
  }
  uint64_t updates() const { return updates_.load(); }

 private:
  void Run(uint64_t per_second) {
    Random random(1);
    const std::string value(100, 'v');
    TransactionOptions options;
    options.durability = Durability::kBuffered;
    const MonotonicTime begin = RealRuntime().Now();
    while (!stop_.load()) {
      const auto passed = std::chrono::duration<double>(RealRuntime().Now() - begin).count();
      while (static_cast<double>(updates_.load()) < passed * static_cast<double>(per_second) && !stop_.load()) {
        OneShot update(client_, options);
        update.Put(table_, KeyOf(random.Below(kRecords)), value);
        if (update.Run().ok()) updates_.fetch_add(1);
      }
      RealRuntime().SleepUntil(RealRuntime().Now() + kBurst);
    }
  }

  Client& client_;
  const TableId table_;
  std::atomic<uint64_t> updates_{0};
  std::atomic<bool> stop_{false};
  std::unique_ptr<Thread> thread_;
};

// range(0): updates per second. range(1): age of the old reader when the measurement begins, in seconds; 0 = no old
// reader. range(2): number of logical ranges.
void Scans(benchmark::State& state) {
  const testing::TempDir directory;
  EmbeddedOptions options;
  options.data_dir = directory.path();
  options.tc.ranges.fixed_ranges = static_cast<uint32_t>(state.range(2));
  options.tc.idle_timeout = seconds(3600);
  options.client.default_timeout = seconds(60);
  const std::unique_ptr<Embedded> store = Must(Embedded::Open(options));
  Client& client = store->client();
  const TableId table = Must(client.CreateTable("t"));
  for (uint64_t i = 0; i < kRecords; ++i) {
    OneShot put(client);
    put.Put(table, KeyOf(i), std::string(100, 'v'));
    Must(put.Run());
  }
  if (Status dropped = client.DropCaches(); !dropped.ok()) FailStop(dropped.ToString());
  Histogram times;
  uint64_t scans = 0, aborted = 0, pinned = 0, updates = 0;
  for (auto _ : state) {
    std::optional<Transaction> old;
    if (state.range(1) != 0) old.emplace(Must(client.Begin()));
    const Updater updater(client, table, static_cast<uint64_t>(state.range(0)));
    RealRuntime().SleepUntil(RealRuntime().Now() + seconds(std::max<int64_t>(state.range(1), 2)));
    Random random(2);
    const MonotonicTime begin = RealRuntime().Now();
    for (MonotonicTime now = begin; now < begin + kMeasured;) {
      OneShot scan(client);
      scan.Scan(table, {.low = KeyOf(random.Below(kRecords)), .limit_records = 50});
      (scan.Run().ok() ? scans : aborted) += 1;
      const MonotonicTime after = RealRuntime().Now();
      times.Record(static_cast<uint64_t>((after - now).count()));
      now = after;
    }
    state.SetIterationTime(std::chrono::duration<double>(RealRuntime().Now() - begin).count());
    pinned = Figure(client, "versions.bytes");
    updates = updater.updates();
  }
  state.counters["scans/s"] = static_cast<double>(scans) / std::chrono::duration<double>(kMeasured).count();
  state.counters["aborted"] = static_cast<double>(aborted);
  state.counters["p50_us"] = static_cast<double>(times.Percentile(50)) / 1000;
  state.counters["p99_us"] = static_cast<double>(times.Percentile(99)) / 1000;
  state.counters["updates"] = static_cast<double>(updates);
  state.counters["pinned_bytes"] = static_cast<double>(pinned);
}
BENCHMARK(Scans)
    ->ArgNames({"updates", "age", "ranges"})
    ->ArgsProduct({{0, 20000}, {0, 15, 60}, {1, 16}})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace deut

// Speed of the tree alone: insert, update, lookup, short scans (1 to 100 records), long scans (10,000 records), at 1
// and 2 threads. //dc/bench measures the layers above it. DEUT_BENCH_RECORDS sets the number of records (default
// 1,000,000).
//   bazel build -c opt //dc/bwtree:bwtree_bench && DEUT_BENCH_RECORDS=10000000 bazel-bin/dc/bwtree/bwtree_bench
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/runtime/random.h"
#include "common/sync/reclamation.h"
#include "dc/bench/bench_records.h"
#include "dc/bwtree/bwtree.h"
#include "dc/bwtree/mapping_table.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

using bench::BenchKey;

uint64_t Records() {
  static const uint64_t records = [] {
    const char* text = std::getenv("DEUT_BENCH_RECORDS");
    return text == nullptr ? uint64_t{1000000} : std::strtoull(text, nullptr, 10);
  }();
  return records;
}

struct Store {
  Store() : table(std::move(*MappingTable::Create(uint32_t{1} << 26))) {
    tree = std::move(*BwTree::Create(BwTreeEnvironment{*table, domain, consolidation}, BwTreeOptions{}));
  }
  std::unique_ptr<MappingTable> table;
  ReclamationDomain domain;
  std::atomic<uint64_t> consolidation{0};
  std::unique_ptr<BwTree> tree;
};

void Put(Store& store, uint64_t number, uint64_t timestamp) {
  const bench::BenchValue value(number, Timestamp(timestamp));
  DEUT_CHECK(store.tree->Put(BenchKey(number), value, Version{Timestamp(timestamp), 1}).ok());
}

// Consecutive numbers of this order are far apart.
const std::vector<uint32_t>& Order() {
  static const std::vector<uint32_t> order = bench::ShuffledRecords(Records(), 1);
  return order;
}

// Loaded once, for all benchmarks that do not insert.
Store& Loaded() {
  static Store* const store = [] {
    auto* loaded = new Store;
    for (uint64_t i = 0; i < Records(); ++i) Put(*loaded, Order()[i], 1);
    loaded->domain.Collect();
    return loaded;
  }();
  return *store;
}

void Insert(benchmark::State& state) {
  static std::unique_ptr<Store> store;
  if (state.thread_index() == 0) store = std::make_unique<Store>();
  const std::vector<uint32_t>& order = Order();
  uint64_t i = static_cast<uint64_t>(state.thread_index());
  for (auto _ : state) {
    Put(*store, order[i], 1);
    i += static_cast<uint64_t>(state.threads());
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  if (state.thread_index() == 0) store.reset();
}

void Update(benchmark::State& state) {
  Store& store = Loaded();
  static std::atomic<uint64_t> clock{2};
  Random random(static_cast<uint64_t>(state.thread_index()) + 1);
  for (auto _ : state) Put(store, random.Below(Records()), clock.fetch_add(1, std::memory_order_relaxed));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

void Lookup(benchmark::State& state) {
  Store& store = Loaded();
  Random random(static_cast<uint64_t>(state.thread_index()) + 2);
  RecordBatch answer;
  for (auto _ : state) {
    answer.Clear();
    DEUT_CHECK(store.tree->Read(BenchKey(random.Below(Records())), &answer) == BwTree::Found::kYes);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

void Scan(benchmark::State& state, bool ascending, uint64_t min_records, uint64_t max_records) {
  Store& store = Loaded();
  Random random(static_cast<uint64_t>(state.thread_index()) + 3);
  RecordBatch answer;
  int64_t records = 0;
  for (auto _ : state) {
    const uint64_t wanted = random.Between(min_records, max_records);
    ScanCursor cursor;
    (ascending ? cursor.low : cursor.high).assign(std::string_view(BenchKey(random.Below(Records()))));
    for (uint64_t got = 0; got < wanted && !cursor.complete;) {
      answer.Clear();
      ScanBudget budget;
      budget.records = wanted - got;
      budget.bytes = 64 << 10;
      while (!cursor.complete && !budget.spent && answer.size() < budget.records) {
        DEUT_CHECK(ascending ? store.tree->ScanAscending(&cursor, &budget, &answer)
                             : store.tree->ScanDescending(&cursor, &budget, &answer));
      }
      got += answer.size();
      benchmark::DoNotOptimize(answer.bytes().data());
    }
    records += static_cast<int64_t>(wanted);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  state.counters["records/s"] = benchmark::Counter(static_cast<double>(records), benchmark::Counter::kIsRate);
}

void ShortScan(benchmark::State& state) { Scan(state, true, 1, 100); }
void ShortScanDown(benchmark::State& state) { Scan(state, false, 1, 100); }
void LongScan(benchmark::State& state) { Scan(state, true, 10000, 10000); }
void LongScanDown(benchmark::State& state) { Scan(state, false, 10000, 10000); }

void Threads(benchmark::internal::Benchmark* benchmark) {
  for (const int threads : {1, 2}) benchmark->Threads(threads);
  benchmark->UseRealTime();
}

BENCHMARK(Insert)->Apply([](benchmark::internal::Benchmark* benchmark) {
  // Every run inserts all records once, whatever the number of threads: the tree grows to the same size.
  benchmark->Iterations(static_cast<int64_t>(Records()))->Threads(1)->UseRealTime();
});
BENCHMARK(Insert)->Apply([](benchmark::internal::Benchmark* benchmark) {
  benchmark->Iterations(static_cast<int64_t>(Records() / 2))->Threads(2)->UseRealTime();
});
BENCHMARK(Lookup)->Apply(Threads);
BENCHMARK(ShortScan)->Apply(Threads);
BENCHMARK(ShortScanDown)->Apply(Threads);
BENCHMARK(LongScan)->Apply(Threads);
BENCHMARK(LongScanDown)->Apply(Threads);
BENCHMARK(Update)->Apply(Threads);

}  // namespace
}  // namespace deut::dc

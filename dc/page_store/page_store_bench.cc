// The costs of the store and its checkpoints on the machine's disk: appends, syncs, random reads, a checkpoint of
// many pages; and the costs that grow with the number of segments, with sparse files. The folder is DEUT_BENCH_DIR, or
// a temporary one.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "dc/page_store/checkpoint_set.h"
#include "dc/page_store/segment_format.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc {
namespace {

constexpr DcId kDc{1};

struct Bench {
  Bench() : storage(std::move(*NewSystemStorage(IoKind::kAuto, RealRuntime()))) {
    const char* chosen = std::getenv("DEUT_BENCH_DIR");
    path = (chosen == nullptr ? directory.path() : std::string(chosen)) + "/bench";
    store = std::move(*SegmentStore::Create(*storage, RealRuntime(), path, kDc, {}));
  }
  ~Bench() {
    store.reset();
    const auto names = storage->List(path);
    for (const std::string& name : *names) DEUT_CHECK(storage->Remove(path + "/" + name).ok());
  }

  const testing::TempDir directory;
  std::unique_ptr<Storage> storage;
  std::string path;
  std::unique_ptr<SegmentStore> store;
};

PageAddress AppendOne(SegmentAppender& appender, uint32_t page, const std::string& payload) {
  const auto address =
      appender.Append({.kind = PartKind::kBase, .level = 0, .page = PageId(page), .table = TableId(1)}, payload);
  DEUT_CHECK(address.ok());
  return *address;
}

// Appends parts of range(0) bytes, written in batches of range(1), and syncs at the end.
void BM_Append(benchmark::State& state) {
  Bench bench;
  const auto appender = std::move(*bench.store->NewAppender(SegmentKind::kBase));
  const std::string payload(static_cast<size_t>(state.range(0)), 'p');
  uint32_t page = 0;
  for (auto _ : state) {
    (void)AppendOne(*appender, ++page, payload);
    if (page % static_cast<uint32_t>(state.range(1)) == 0) DEUT_CHECK(appender->Write().ok());
  }
  DEUT_CHECK(appender->Write().ok());
  bench.store->BeginCheckpoint(CheckpointNumber(1));
  DEUT_CHECK(bench.store->SyncAll(CheckpointNumber(1)).ok());
  const StoreTotals totals = bench.store->totals();
  state.SetBytesProcessed(static_cast<int64_t>(totals.bytes_appended));
  state.counters["write_amplification"] =
      static_cast<double>(totals.bytes_written) / static_cast<double>(totals.bytes_appended);
}
BENCHMARK(BM_Append)->Args({200, 64})->Args({16'000, 1})->Args({16'000, 64})->UseRealTime();

// Reads random parts of range(0) bytes, from 256 MiB.
void BM_Read(benchmark::State& state) {
  Bench bench;
  const auto appender = std::move(*bench.store->NewAppender(SegmentKind::kBase));
  const std::string payload(static_cast<size_t>(state.range(0)), 'p');
  std::vector<PageAddress> addresses;
  while (addresses.size() * payload.size() < (256 << 20)) {
    addresses.push_back(AppendOne(*appender, static_cast<uint32_t>(addresses.size() + 1), payload));
  }
  DEUT_CHECK(appender->Write().ok());
  Random random(1);
  PartBuffer buffer;
  for (auto _ : state) {
    const size_t i = random.Below(addresses.size());
    DEUT_CHECK(bench.store->Read(addresses[i], PageId(static_cast<uint32_t>(i + 1)), &buffer).ok());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Read)->Arg(1000)->Arg(16'000)->UseRealTime();

// Takes a checkpoint of range(0) pages with two parts each: write, sync, verify, rename; then reads it.
void BM_Checkpoint(benchmark::State& state) {
  Bench bench;
  const auto set = std::move(*CheckpointSet::Open(*bench.storage, bench.path, kDc, CheckpointNumber(0)));
  const auto pages = static_cast<uint32_t>(state.range(0));
  for (auto _ : state) {
    auto writer = std::move(*CheckpointWriter::Create(*bench.storage, bench.path,
                                                      {.number = set->next(),
                                                       .dc = kDc,
                                                       .incarnation = DcIncarnation(1),
                                                       .position = {},
                                                       .next_page = PageId(pages + 1),
                                                       .next_segment = 3}));
    DEUT_CHECK(writer->AddSegment({.number = 1, .kind = SegmentKind::kBase, .written_bytes = 4 << 20}).ok());
    DEUT_CHECK(writer->AddSegment({.number = 2, .kind = SegmentKind::kDelta, .written_bytes = 4 << 20}).ok());
    for (uint32_t page = 1; page <= pages; ++page) {
      const PageAddress addresses[] = {PageAddress::Make(2, 8192, 200), PageAddress::Make(1, 8192, 16'000)};
      DEUT_CHECK(writer->AddPage(PageId(page), addresses).ok());
    }
    DEUT_CHECK(set->Complete(std::move(writer)).ok());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Checkpoint)->Arg(1'000'000)->UseRealTime();

// A store of `count` sparse segments of `bytes` bytes each, as a checkpoint names them.
struct LargeStore {
  LargeStore(uint64_t count, uint64_t bytes) {
    bench.store.reset();
    std::string header(kSegmentHeaderBytes, '\0');
    for (uint64_t number = 1; number <= count; ++number) {
      EncodeSegmentHeader({.kind = SegmentKind::kBase, .number = number, .dc = kDc, .capacity_bytes = bytes},
                          header.data());
      const auto file = bench.storage->Open(bench.path + "/" + SegmentName(SegmentKind::kBase, number),
                                            {.create = true, .exclusive = true, .writable = true});
      DEUT_CHECK(file.ok() && (*file)->Write(0, header.data(), header.size()).ok());
      DEUT_CHECK((*file)->Truncate(bytes).ok());
      extents.push_back({.number = number, .kind = SegmentKind::kBase, .written_bytes = bytes});
    }
  }
  void Open() {
    bench.store.reset();
    bench.store = std::move(*SegmentStore::Open(*bench.storage, RealRuntime(), bench.path, kDc, {}, CheckpointNumber(1),
                                                extents, extents.size() + 1));
  }

  Bench bench;
  std::vector<SegmentExtent> extents;
};

// One terabyte in files of 4 MiB, as before segments became longer; one in those of a store that has grown to it with
// the default reserve; 64 in those of a store with a reserve of 2 GiB.
void LargeStores(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({262'144, 4 << 20})->Args({20'480, 64 << 20})->Args({73'728, 1 << 30})->UseRealTime();
  benchmark->Unit(benchmark::kMillisecond);
}

// Opens the store: looks at each segment's header and length.
void BM_OpenLarge(benchmark::State& state) {
  LargeStore large(static_cast<uint64_t>(state.range(0)), static_cast<uint64_t>(state.range(1)));
  for (auto _ : state) large.Open();
}
BENCHMARK(BM_OpenLarge)->Apply(LargeStores);

// Looks at the usage of all segments, as the cleaner does for up to 64 choices.
void BM_PassOverLarge(benchmark::State& state) {
  LargeStore large(static_cast<uint64_t>(state.range(0)), static_cast<uint64_t>(state.range(1)));
  large.Open();
  uint64_t written = 0;
  for (auto _ : state) {
    large.bench.store->ForEachUsage([&](const SegmentUsage& usage) { written += usage.written_bytes; });
  }
  benchmark::DoNotOptimize(written);
}
BENCHMARK(BM_PassOverLarge)->Apply(LargeStores);

}  // namespace
}  // namespace deut::dc

// The part that is in memory: the tree's hot paths through the record-operations interface.
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/bench/bench_parts.h"
#include "dc/bench/bench_run.h"
#include "dc/bench/bench_store.h"

namespace deut::dc::bench {
namespace {

constexpr uint32_t kMaxThreads = 2;

std::string Named(std::string_view operation, uint32_t threads) {
  return Concat("memory: ", operation, ", ", threads, threads == 1 ? " thread" : " threads");
}

void Insert(const BenchOptions& options, const ChecksumTable& checksums, const std::vector<uint32_t>& order,
            uint32_t threads, BenchReport* report) {
  const auto storage = NewMemoryStorage(RealRuntime());
  BenchStore store(*storage, "/pages", /*memory_bytes=*/0, checksums, options.records);
  const std::span<const uint32_t> all(order);
  const RunResult result = RunOnce(threads, 1, [&](uint32_t i, BenchThread* thread) {
    const size_t begin = all.size() * i / threads;
    store.Put(all.subspan(begin, all.size() * (i + 1) / threads - begin), thread);
  });
  AddRates(Named("insert", threads), result, report);
}

}  // namespace

void BenchMemory(const BenchOptions& options, BenchReport* report) {
  const ChecksumTable checksums(options.records);
  const std::vector<uint32_t> order = ShuffledRecords(options.records, 1);
  for (uint32_t round = 0; round < options.rounds; ++round) {
    for (uint32_t threads = 1; threads <= kMaxThreads; ++threads) Insert(options, checksums, order, threads, report);
  }

  const auto storage = NewMemoryStorage(RealRuntime());
  BenchStore store(*storage, "/pages", /*memory_bytes=*/0, checksums, options.records);
  BenchThread loader(1);
  store.Put(order, &loader);
  const auto lookup = [&store](BenchThread* thread) { store.Lookup(thread->random.Below(store.records()), thread); };
  const auto several = [&store](BenchThread* thread) { store.LookupSeveral(thread); };
  const auto short_scan = [&store](BenchThread* thread) {
    store.Scan(thread->random.Below(store.records()), thread->random.Between(1, 100), thread);
  };
  const auto long_scan = [&store](BenchThread* thread) {
    store.Scan(thread->random.Below(store.records()), 10000, thread);
  };
  // The first readers find pages with deltas, and consolidate them.
  for (int i = 0; i < 3; ++i) store.CheckAll(options.records);
  for (uint32_t round = 0; round < options.rounds; ++round) {
    for (uint32_t threads = 1; threads <= kMaxThreads; ++threads) {
      AddRates(Named("lookup", threads), RunFor(threads, options.time, round, lookup), report);
      AddRates(Named("lookup, eight in a call", threads), RunFor(threads, options.time, round, several), report);
      AddRates(Named("scan of 1-100 records", threads), RunFor(threads, options.time, round, short_scan), report);
      const RunResult scans = RunFor(threads, options.time, round, long_scan);
      const double records = static_cast<double>(scans.work.records) / static_cast<double>(scans.work.operations);
      report->Add(Named("scan of 10,000 records", threads), "records/s", scans.per_second * records);
      report->Add(Named("scan of 10,000 records", threads), "ns processor/record", scans.cpu_nanos / records);
    }
  }
  for (uint32_t round = 0; round < options.rounds; ++round) {
    for (uint32_t threads = 1; threads <= kMaxThreads; ++threads) {
      AddRates(Named("update", threads),
               RunFor(threads, options.time, round, [&store](BenchThread* thread) { store.PutRandom(thread); }),
               report);
      AddRates(Named("lookup after updates", threads), RunFor(threads, options.time, round, lookup), report);
    }
  }
  store.CheckAll(options.records);
  const double bytes = static_cast<double>(checksums.bytes());
  report->Add("memory: of the component for a byte of records", "ratio",
              static_cast<double>(store.memory_bytes()) / bytes);
}

}  // namespace deut::dc::bench

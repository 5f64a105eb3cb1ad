// The part that measures how equal the pieces of Partition are.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/bench/bench_parts.h"
#include "dc/bench/bench_store.h"

namespace deut::dc::bench {
namespace {

// Returns the largest piece divided by the mean one, in records.
double Imbalance(BenchStore& store, uint32_t pieces) {
  const auto cuts = store.operations().Partition(kBenchTable, pieces);
  DEUT_CHECK(cuts.ok());
  uint64_t largest = 0;
  uint64_t all = 0;
  for (size_t i = 0; i <= cuts->size(); ++i) {
    ScanCursor cursor;
    if (i > 0) cursor.low = (*cuts)[i - 1];
    if (i < cuts->size()) cursor.high = (*cuts)[i];
    uint64_t records = 0;
    for (RecordBatch answer; !cursor.complete; answer.Clear()) {
      ScanBudget budget;
      budget.bytes = 64 << 10;
      DEUT_CHECK(
          store.operations().Scan(kBenchTable, Direction::kAscending, &cursor, &budget, UINT64_MAX, &answer).ok());
      records += answer.size();
    }
    largest = std::max(largest, records);
    all += records;
  }
  return static_cast<double>(largest) * static_cast<double>(cuts->size() + 1) / static_cast<double>(all);
}

void AddImbalance(std::string_view keys, BenchStore& store, BenchReport* report) {
  for (const uint32_t pieces : {16, 256, 1024}) {
    report->Add(absl::StrFormat("partition into %d: %s", pieces, keys), "largest / mean", Imbalance(store, pieces));
  }
}

}  // namespace

void BenchPartition(const BenchOptions& options, BenchReport* report) {
  const ChecksumTable checksums(options.records);
  const std::vector<uint32_t> shuffled = ShuffledRecords(options.records, 1);
  std::vector<uint32_t> sorted = shuffled;
  std::sort(sorted.begin(), sorted.end());
  const auto fill = [&](std::string_view keys, const std::vector<uint32_t>& order,
                        const std::vector<uint32_t>& deleted) {
    const auto storage = NewMemoryStorage(RealRuntime());
    BenchStore store(*storage, "/pages", /*memory_bytes=*/0, checksums, options.records);
    BenchThread thread(1);
    store.Put(order, &thread);
    if (!deleted.empty()) store.Delete(deleted);
    AddImbalance(keys, store, report);
  };
  fill("inserted at random", shuffled, {});
  fill("inserted in order", sorted, {});
  // Nine of ten keys of the upper half, which are deleted.
  std::vector<uint32_t> upper;
  std::copy_if(shuffled.begin(), shuffled.end(), std::back_inserter(upper),
               [&](uint32_t record) { return record >= options.records / 2 && record % 10 != 0; });
  fill("half of them thinned to a tenth", shuffled, upper);
  // Half of the keys lie in a hundredth of the number range.
  std::vector<uint32_t> skewed = shuffled;
  std::erase_if(skewed, [&](uint32_t record) { return record >= options.records / 100 && record % 100 != 0; });
  fill("half of them in a hundredth", skewed, {});
}

}  // namespace deut::dc::bench

// Runs the hot paths for a program that counts instructions (scripts/lib/gate.py). CountedPath calls each path once,
// after a warm-up run outside it. Prints a line `NAME OPERATIONS` for each path. README.md.
//   hot_paths [NAME...]: only the named paths
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/testing/temp_dir.h"
#include "integration/scans/direct_store.h"
#include "tc/client/one_shot.h"

namespace deut {
namespace {

constexpr uint64_t kRecords = 20'000;
constexpr uint64_t kOperations = 2000;
constexpr uint64_t kTinyScan = 10;
constexpr uint64_t kShortScan = 50;
constexpr uint64_t kLongScan = 10'000;
constexpr uint64_t kLongScans = 20;

DirectStoreOptions StoreOptions(const std::string& directory, tc::RangeControl control) {
  DirectStoreOptions options;
  options.records = kRecords;
  options.directory = directory;
  // This is not counted, and a counting program may not support io_uring.
  options.io = IoKind::kPosix;
  options.tc.conflicts.range_control = control;
  return options;
}

TransactionOptions Buffered() {
  TransactionOptions options;
  options.durability = Durability::kBuffered;
  return options;
}

struct Stores {
  testing::TempDir directory;
  DirectStore ranges{StoreOptions(directory.Sub("on"), tc::RangeControl::kRanges)};
  DirectStore points{StoreOptions(directory.Sub("off"), tc::RangeControl::kNone)};
  uint64_t counted = 0;  // number of paths run
};

uint64_t Place(Random& random, uint64_t count) { return random.Below(kRecords - count + 1); }

void Read(DirectStore& store, uint64_t times) {
  Random random(1);
  OneShot one(store.client(), Buffered());
  for (uint64_t i = 0; i < times; ++i) {
    one.Clear();
    one.Get(store.table(), DirectStore::KeyOf(Place(random, 1)));
    DirectStore::OrDie(one.Run().status(), "read");
  }
}

void Write(DirectStore& store, uint64_t times) {
  Random random(2);
  const std::string value(store.value_bytes(), 'v');
  OneShot one(store.client(), Buffered());
  for (uint64_t i = 0; i < times; ++i) {
    one.Clear();
    one.Put(store.table(), DirectStore::KeyOf(Place(random, 1)), value);
    DirectStore::OrDie(one.Run().status(), "write");
  }
}

// Reads three keys of one half of the records and writes one of the other half. A read of a page with fresh updates
// from the background may consolidate the page for others, and how often that happens depends on the scheduling of
// threads. With separate halves, the reads here do not meet the writes.
void ReadAndWrite(DirectStore& store, uint64_t times) {
  Random random(3);
  const std::string value(store.value_bytes(), 'v');
  OneShot one(store.client(), Buffered());
  for (uint64_t i = 0; i < times; ++i) {
    one.Clear();
    for (int reads = 0; reads < 3; ++reads) one.Get(store.table(), DirectStore::KeyOf(random.Below(kRecords / 2)));
    one.Put(store.table(), DirectStore::KeyOf(kRecords / 2 + random.Below(kRecords / 2)), value);
    DirectStore::OrDie(one.Run().status(), "four operations");
  }
}

void Scan(DirectStore& store, uint64_t records, uint64_t times,
          DirectStore::Seen (DirectStore::*scan)(uint64_t, uint64_t)) {
  Random random(4);
  for (uint64_t i = 0; i < times; ++i) {
    if ((store.*scan)(Place(random, records), records).records != records) std::abort();
  }
}

// The paths. For scans of 10,000 records, an operation is a record.
void PointRead(Stores& s) { Read(s.ranges, kOperations); }
void ShortDirectScan(Stores& s) { Scan(s.ranges, kShortScan, kOperations, &DirectStore::ScanDirectly); }
void ShortScan(Stores& s) { Scan(s.ranges, kShortScan, kOperations, &DirectStore::ScanSerializably); }
void ShortInteractiveScan(Stores& s) { Scan(s.ranges, kShortScan, kOperations, &DirectStore::ScanInteractively); }
void TinyDirectScan(Stores& s) { Scan(s.ranges, kTinyScan, kOperations, &DirectStore::ScanDirectly); }
void TinyScan(Stores& s) { Scan(s.ranges, kTinyScan, kOperations, &DirectStore::ScanSerializably); }
void LongDirectScan(Stores& s) { Scan(s.ranges, kLongScan, kLongScans, &DirectStore::ScanDirectly); }
void LongScan(Stores& s) { Scan(s.ranges, kLongScan, kLongScans, &DirectStore::ScanSerializably); }
void Update(Stores& s) { Write(s.ranges, kOperations); }
void UpdateWithoutRanges(Stores& s) { Write(s.points, kOperations); }
void FourOperations(Stores& s) { ReadAndWrite(s.ranges, kOperations); }
void FourOperationsWithoutRanges(Stores& s) { ReadAndWrite(s.points, kOperations); }

struct Path {
  const char* name;  // the function's name
  uint64_t operations;
  void (*run)(Stores&);
};
constexpr Path kPaths[] = {
    {"PointRead", kOperations, PointRead},
    {"ShortDirectScan", kOperations, ShortDirectScan},
    {"ShortScan", kOperations, ShortScan},
    {"ShortInteractiveScan", kOperations, ShortInteractiveScan},
    {"TinyDirectScan", kOperations, TinyDirectScan},
    {"TinyScan", kOperations, TinyScan},
    {"LongDirectScan", kLongScans* kLongScan, LongDirectScan},
    {"LongScan", kLongScans* kLongScan, LongScan},
    {"Update", kOperations, Update},
    {"UpdateWithoutRanges", kOperations, UpdateWithoutRanges},
    {"FourOperations", kOperations, FourOperations},
    {"FourOperationsWithoutRanges", kOperations, FourOperationsWithoutRanges},
};

// The counted function: the counting program is given this name, and counts each function that is called from here by
// its own name. A statement follows the call, so that this function ends only after the path.
__attribute__((noinline)) void CountedPath(const Path& path, Stores& stores) {
  path.run(stores);
  ++stores.counted;
}

// Readers consolidate each page that the load has left in pieces, once they have met it often enough. This finishes
// before anything is counted.
void ReadUntilConsolidated(DirectStore& store) { Read(store, kRecords); }

void Main(const std::vector<std::string>& names) {
  Stores stores;
  ReadUntilConsolidated(stores.ranges);
  ReadUntilConsolidated(stores.points);
  for (const Path& path : kPaths) {
    if (!names.empty() && std::ranges::find(names, path.name) == names.end()) continue;
    path.run(stores);  // warms up
    stores.ranges.Settle();
    stores.points.Settle();
    CountedPath(path, stores);
    std::printf("%s %llu\n", path.name, static_cast<unsigned long long>(path.operations));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace deut

int main(int argc, char** argv) { deut::Main({argv + 1, argv + argc}); }

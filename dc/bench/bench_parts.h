// The parts of the benchmark of a data component's records. Each adds rows to the report; rates are medians of
// alternating rounds. Thread-safety: one part at a time.
#ifndef DC_BENCH_BENCH_PARTS_H_
#define DC_BENCH_BENCH_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/runtime/time.h"
#include "dc/bench/bench_report.h"
#include "dc/page_store/segment_store.h"

namespace deut::dc::bench {

struct BenchOptions {
  uint64_t records = 1000000;
  uint32_t rounds = 3;
  Duration time = std::chrono::seconds(1);  // duration of each measurement
  std::string directory = {};               // directory for the files on disk; it is emptied
  double recovery_gib = 1;                  // the largest of the three sizes of data
  std::vector<uint64_t> redo_mib = {64, 256};
  uint32_t memory_share = 8;                 // size of the data as a multiple of the memory budget
  uint64_t store_bytes = uint64_t{4} << 30;  // bytes of the large store's segments
  uint64_t store_segment_bytes = 64 << 20;   // length of one
  // The large store keeps at most this number of segments open.
  size_t open_files = SegmentStoreOptions().max_open_files;
};

// Measures insert, lookup, update, short and long scans, at 1 and 2 threads, with everything in memory.
void BenchMemory(const BenchOptions& options, BenchReport* report);
// The same on a disk, with a memory budget of a part of the data: with misses, and bytes read and written for each
// requested byte.
void BenchBeyondMemory(const BenchOptions& options, BenchReport* report);
// Measures the duration of a start, by size of data and length of redo.
void BenchRecovery(const BenchOptions& options, BenchReport* report);
// Measures updates and lookups while checkpoints are taken, compared with the same without checkpoints.
void BenchCheckpoint(const BenchOptions& options, BenchReport* report);
// Measures a start, checkpoints and a choice of the cleaner in a store of sparse files (sparse_store.h).
void BenchLargeStore(const BenchOptions& options, BenchReport* report);
// Measures how equal the pieces of Partition are: the largest divided by the mean.
void BenchPartition(const BenchOptions& options, BenchReport* report);

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_PARTS_H_

// The parts of the benchmark of a data component's records. Each adds rows to the report; rates are medians of alternating rounds.
#ifndef DC_BENCH_BENCH_PARTS_H_
#define DC_BENCH_BENCH_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/runtime/time.h"
#include "dc/bench/bench_report.h"

namespace deut::dc::bench {

struct BenchOptions {
  uint64_t records = 1000000;
  uint32_t rounds = 3;
  Duration time = std::chrono::seconds(1);  // of each measurement
  std::string directory = {};               // for what is on disk; emptied
  double recovery_gib = 1;                  // the largest of the three sizes of data
  std::vector<uint64_t> redo_mib = {64, 256};
  uint32_t memory_share = 8;  // data is so many times the memory budget
};

// Insert, lookup, update, short and long scans, at 1 and 2 threads; everything in memory.
void BenchMemory(const BenchOptions& options, BenchReport* report);
// The same with a budget of a part of the data, on the disk: with misses, and bytes read and written for a byte asked for.
void BenchBeyondMemory(const BenchOptions& options, BenchReport* report);
// How long a start takes, by size of data and length of redo.
void BenchRecovery(const BenchOptions& options, BenchReport* report);
// Updates and lookups with checkpoints being taken, against the same without.
void BenchCheckpoint(const BenchOptions& options, BenchReport* report);
// How even the pieces are that Partition cuts: the largest against the mean.
void BenchPartition(const BenchOptions& options, BenchReport* report);

}  // namespace deut::dc::bench

#endif  // DC_BENCH_BENCH_PARTS_H_

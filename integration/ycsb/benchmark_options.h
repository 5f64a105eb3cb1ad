// What a run of the benchmark is to do. Set by flags (ycsb_main.cc).
#ifndef INTEGRATION_YCSB_BENCHMARK_OPTIONS_H_
#define INTEGRATION_YCSB_BENCHMARK_OPTIONS_H_

#include <cstdint>

#include "common/runtime/runtime.h"
#include "integration/ycsb/workload.h"
#include "protocol/transaction_service.h"

namespace deut::ycsb {

struct BenchmarkOptions {
  Workload workload;
  uint64_t records = 1'000'000;
  uint32_t value_bytes = 100;
  uint32_t threads = 4;
  // Of the run phase: it ends after this time, or after so many transactions (0 = no such end), whichever comes first.
  Duration run_time = seconds(10);
  uint64_t operations = 0;
  // When the time is over and fewer writes than this were acknowledged, the run goes on until there are as many, or for six times its
  // time: on a slow or busy machine, too, the journal is to be worth something.
  uint64_t min_writes = 0;
  double theta = 0.99;
  // Scans ask for scan_min to scan_max records, each number alike.
  uint32_t scan_min = 1;
  uint32_t scan_max = 100;
  // An interactive write puts so many records, each in a message of its own, and pauses before each message but the first: its client thinks.
  uint32_t interactive_records = 4;
  Duration think_time = milliseconds(1);
  // Records that the load phase puts into one transaction.
  uint32_t load_batch = 100;
  // For one transaction with all its repetitions.
  Duration deadline = seconds(30);
  // Of transactions that only read.
  Isolation read_isolation = Isolation::kSerializable;
  Durability durability = Durability::kDurable;
  // For runs in which daemons are killed: UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED and OUTCOME_UNKNOWN are counted, and a write
  // is tried again until it is acknowledged; without it any of them ends the run.
  bool tolerate_unavailable = false;
  // Of the random choices; what the workers draw follows from it.
  uint64_t seed = 1;
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_BENCHMARK_OPTIONS_H_

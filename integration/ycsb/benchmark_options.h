// Options of one run of the benchmark. Flags set them (ycsb_main.cc).
// Thread-safety: values.
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
  // The run phase ends after this time or after this many transactions (0 = no limit), whichever comes first.
  Duration run_time = seconds(10);
  uint64_t operations = 0;
  // If fewer writes are acknowledged when the time is over, the run continues until there are as many, at most for
  // six times its time. The journal of a slow or busy machine thus proves something, too.
  uint64_t min_writes = 0;
  double theta = 0.99;
  // A scan asks for scan_min to scan_max records, each number equally likely.
  uint32_t scan_min = 1;
  uint32_t scan_max = 100;
  // An interactive write puts this many records, each in a message of its own, and pauses before each message but the
  // first (the client's think time).
  uint32_t interactive_records = 4;
  Duration think_time = milliseconds(1);
  // The load phase puts this many records into one transaction.
  uint32_t load_batch = 100;
  // Limit for one transaction with all its retries.
  Duration deadline = seconds(30);
  // Isolation of transactions that only read.
  Isolation read_isolation = Isolation::kSerializable;
  Durability durability = Durability::kDurable;
  // For runs in which daemons are killed. True: UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED and
  // OUTCOME_UNKNOWN are counted, and a write is retried until it is acknowledged. False: any of them ends the run.
  bool tolerate_unavailable = false;
  // Seed of the random choices; all draws of the workers follow from it.
  uint64_t seed = 1;
};

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_BENCHMARK_OPTIONS_H_

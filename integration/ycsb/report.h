// The result of a benchmark as JSON, for programs, and as text, for people.
//
// JSON (one object; a rate counts completed transactions, or records they read or wrote, over the run phase):
//   workload, target, threads, records, value_bytes, theta, scan_max, isolation, durability, seconds
//   transactions, writes, transactions_per_second, records_per_second
//   aborts_per_second, abort_reasons {reason: count}         attempts that the retry loop repeated
//   restarts_per_second                                      attempts that the transaction component retried by itself; absent if unknown
//   latency_us {mean, p50, p95, p99, p999, max}              of transactions with all their retries
//   operations {type: {count, latency_us}}
//   longest_operations [{type, began_at_seconds, latency_us, attempts, outcome}]
//                                                            each worker's longest, the ten longest of these; failed ones, too
//   errors, tolerated {code: {count, example}}, failure      errors: the tolerated ones, and the one that ended the run
//   longest_gap_seconds                                      longest time without a completed transaction, to a tenth of a second
//   checksum                                                 of all values read
//   load {seconds, records, records_per_second, errors}      absent if nothing was loaded
#ifndef INTEGRATION_YCSB_REPORT_H_
#define INTEGRATION_YCSB_REPORT_H_

#include <string>
#include <string_view>

#include "integration/ycsb/benchmark_options.h"
#include "integration/ycsb/phase.h"

namespace deut::ycsb {

// `load` and `run` may be null: that phase was not run.
std::string ReportJson(const BenchmarkOptions& options, std::string_view target, const PhaseResult* load,
                       const PhaseResult* run);
std::string ReportText(const PhaseResult& run);

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_REPORT_H_

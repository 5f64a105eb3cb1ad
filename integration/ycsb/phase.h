// RunPhase runs the load phase or the run phase of a benchmark with its workers, and reports progress every second.
// Thread-safety: nothing forbids several phases of a client at a time, but one is intended.
#ifndef INTEGRATION_YCSB_PHASE_H_
#define INTEGRATION_YCSB_PHASE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "integration/ycsb/benchmark_options.h"
#include "integration/ycsb/worker.h"
#include "tc/client/client.h"

namespace deut::ycsb {

enum class PhaseKind : uint8_t { kLoad, kRun };

// The sum of all workers' counters at one time.
struct Tick {
  int64_t wall_us = 0;
  double elapsed = 0;  // seconds since the phase began
  uint64_t transactions = 0;
  uint64_t scans = 0;
  uint64_t writes = 0;
  uint64_t records = 0;
  uint64_t aborts = 0;
  uint64_t errors = 0;
  double oldest = 0;  // seconds since the oldest operation in progress began
};

struct PhaseOutput {
  // Receives a line of progress each second, without a newline. May be empty.
  std::function<void(std::string_view line)> progress;
  // Called ten times a second, and at the end. May be empty.
  std::function<void(const Tick& tick)> tick;
};

struct PhaseResult {
  double seconds = 0;
  Tick total;
  WorkerResults workers;
  // One-shot transactions of all clients that the transaction component itself retried after a conflict during the
  // phase. Empty: unknown.
  std::optional<uint64_t> restarted;
  // The longest time without a completed transaction, to a tenth of a second.
  double longest_gap = 0;
  // Each worker's longest operation, sorted by decreasing duration; at most kMaxLongest of them.
  static constexpr size_t kMaxLongest = 10;
  std::vector<TimedOperation> longest;
  MonotonicTime begun;
  // The error that ended the phase early; OK if none did.
  Status failure;
};

// `journal` may be null. REQUIRES for the run phase: the records below options.records exist.
PhaseResult RunPhase(PhaseKind kind, Client& client, TableId table, const BenchmarkOptions& options, Journal* journal,
                     const PhaseOutput& output);

}  // namespace deut::ycsb

#endif  // INTEGRATION_YCSB_PHASE_H_

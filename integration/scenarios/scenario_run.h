// RunScenario: a cluster, its load, faults in cycles, and the checkers' verdict over each history.
//
// A cycle: the load runs for a slice, one or more faults come, they are healed, and the load must go on. After some cycles the history ends
// with a reading of everything and goes to both checkers; the next one begins with a table and a workload of its own. Everything that is
// chosen comes from the seed: history n of a run has a seed of its own, and is what a run of that seed begins with.
// Thread-safety: one run at a time, on the thread that calls it.
#ifndef INTEGRATION_SCENARIOS_SCENARIO_RUN_H_
#define INTEGRATION_SCENARIOS_SCENARIO_RUN_H_

#include <cstdint>
#include <iosfwd>
#include <string>

#include "common/runtime/time.h"
#include "integration/scenarios/fault_driver.h"
#include "integration/scenarios/scenario_file.h"

namespace deut::scenarios {

struct RunOptions {
  uint64_t seed = 1;
  // Whichever ends first; the last history may have fewer cycles than the others.
  uint64_t cycles = 20;
  Duration duration = seconds(86400);
  // What is left of a failure goes to DIR/NAME-SEED; empty = nowhere.
  std::string keep = {};
};

struct RunReport {
  // "ok"; what the checkers call the gravest anomaly; "condition" (the workload's own), "stall", "crash" (a daemon has ended by itself),
  // "failed" (a call was answered as it must not be); or "skipped": the machine does not allow it.
  std::string verdict = "ok";
  std::string details;       // of anything but ok
  uint64_t failed_seed = 0;  // of the history that was refused
  uint64_t cycles = 0, histories = 0;
  // Of all histories.
  uint64_t committed = 0, aborted = 0, unknown_committed = 0, unknown_dropped = 0, reads = 0, scans = 0, edges = 0;
  Duration took{0}, longest_cycle{0}, checking{0};
  Effects effects;

  bool ok() const { return verdict == "ok"; }
};

// Tells on `out` of each history.
RunReport RunScenario(const Scenario& scenario, const RunOptions& options, std::ostream& out);

// One line of the ledger (README.md), with its end.
std::string LedgerLine(const std::string& commit, const Scenario& scenario, const RunOptions& options,
                       const RunReport& report);

}  // namespace deut::scenarios

#endif  // INTEGRATION_SCENARIOS_SCENARIO_RUN_H_

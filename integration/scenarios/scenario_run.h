// RunScenario: runs a cluster, its load and faults in cycles, and lets the checkers judge each history.
//
// A cycle: the load runs for a slice, one or more faults are injected and healed, and then the load must make
// progress. After some cycles, a transaction reads everything, and both checkers judge the history. The next history
// has a table and a workload of its own. Every choice comes from the seed. History n of a run has a seed of its own;
// a run with that seed begins with that history.
// Thread-safety: one run at a time, on the calling thread.
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
  // The run ends at the first of these limits. The last history may have fewer cycles than the others.
  uint64_t cycles = 20;
  Duration duration = seconds(86400);
  // Files about a failure go to DIR/NAME-SEED; empty = they are not kept.
  std::string keep = {};
};

struct RunReport {
  // "ok"; the checkers' name of the gravest anomaly; "condition" (the workload's own), "stall", "crash" (a daemon has
  // ended by itself), "failed" (a call got an answer that no fault explains); or "skipped": the machine does not
  // allow the scenario.
  std::string verdict = "ok";
  std::string details;       // of any verdict but "ok"
  uint64_t failed_seed = 0;  // seed of the refused history
  uint64_t cycles = 0, histories = 0;
  // Sums over all histories.
  uint64_t committed = 0, aborted = 0, unknown_committed = 0, unknown_dropped = 0, reads = 0, scans = 0, edges = 0;
  Duration took{0}, longest_cycle{0}, checking{0};
  Effects effects;

  bool ok() const { return verdict == "ok"; }
};

// Prints a line about each history to `out`.
RunReport RunScenario(const Scenario& scenario, const RunOptions& options, std::ostream& out);

// Returns one line of the ledger (README.md), with its newline.
std::string LedgerLine(const std::string& commit, const Scenario& scenario, const RunOptions& options,
                       const RunReport& report);

}  // namespace deut::scenarios

#endif  // INTEGRATION_SCENARIOS_SCENARIO_RUN_H_

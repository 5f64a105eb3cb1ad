// Figures: counts of a test of power losses, printed when the test ends.
// Thread-safety: none.
#ifndef INTEGRATION_POWER_FIGURES_H_
#define INTEGRATION_POWER_FIGURES_H_

#include <cstdint>

#include "integration/power/power_run.h"

namespace deut::power {

// Returns the value of an environment variable; `otherwise` if it is not set.
uint64_t FromEnvironment(const char* name, uint64_t otherwise);

struct Figures {
  uint64_t crash_points = 0, second_crashes = 0, lives = 0, reads = 0, transactions = 0, found = 0, lost_buffered = 0,
           unknown_found = 0, trimmed_runs = 0;
  DcWork dc;

  void Add(const PowerRun& run);
  ~Figures();
};

}  // namespace deut::power

#endif  // INTEGRATION_POWER_FIGURES_H_

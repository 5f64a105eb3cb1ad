// Load: what clients do to a store while its power is failing. Threads of their own, each a client: transactions over few shared keys, durable and
// buffered, of one key and of many (logged in chunks), reads, scans and snapshots, deletions of a range; tables of their own, created, filled and
// dropped. Everything that is tried is told to the oracle.
// Deterministic per client; the order between clients is the scheduler's.
#ifndef INTEGRATION_POWER_LOAD_H_
#define INTEGRATION_POWER_LOAD_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/runtime/random.h"
#include "integration/history/recorder.h"
#include "integration/power/oracle.h"
#include "integration/power/powered_store.h"

namespace deut::power {

struct LoadOptions {
  uint32_t threads = 1;
  uint32_t steps = 30;  // by all threads together
  uint64_t seed = 1;
};

// Runs until the steps are done or the store has failed. Empty, or what was wrong at once (a timestamp drawn twice).
std::string RunLoad(PoweredStore& store, Oracle& oracle, const LoadOptions& options);

// Reads all tables in one durable transaction.
Result<Found> ReadAll(PoweredStore& store, Oracle& oracle);

}  // namespace deut::power

#endif  // INTEGRATION_POWER_LOAD_H_

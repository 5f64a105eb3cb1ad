// Load: the clients' work on a store whose power is failing. Each thread is a client. It runs transactions over few
// shared keys, durable and buffered, of one key or of many (logged in chunks). It reads, scans, takes snapshots, and
// deletes ranges, and creates, fills and drops tables of its own. It reports every attempt to the oracle.
// Each client is deterministic; the scheduler decides the order between clients.
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
  uint32_t steps = 30;  // sum over all threads
  uint64_t seed = 1;
};

// Runs until the steps are done or the store has failed. Returns "", or an error found at once (a timestamp drawn
// twice).
std::string RunLoad(PoweredStore& store, Oracle& oracle, const LoadOptions& options);

// Reads all tables in one durable transaction.
Result<Found> ReadAll(PoweredStore& store, Oracle& oracle);

}  // namespace deut::power

#endif  // INTEGRATION_POWER_LOAD_H_

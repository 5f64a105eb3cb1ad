// Simulator: random histories of a store that is serializable by construction, because it runs its transactions one after the other; and
// corruptions of them. For the tests of the checkers.
// Thread-safety: pure functions of their arguments.
#ifndef INTEGRATION_HISTORY_SIMULATOR_H_
#define INTEGRATION_HISTORY_SIMULATOR_H_

#include <cstdint>
#include <string>

#include "common/runtime/random.h"
#include "integration/history/history.h"

namespace deut::history {

struct SimulatorOptions {
  uint32_t transactions = 60;
  uint32_t keys = 8;
  uint32_t max_operations = 5;
  bool lists = false;   // appends and reads; otherwise registers
  bool deletes = true;  // registers only
  bool scans = true;
  bool snapshots = true;
  bool unknown = true;          // some outcomes
  uint32_t unknown_one_in = 6;  // ... of so many transactions one
  bool unknown_deletes = true;  // ... and these may delete
  // ... and they are one-shots: neither their timestamps nor their reads are known. Then nobody inserts or updates: presence that no
  // read explains is a matter of guesses.
  bool untimed = false;
  // How many transactions overlap, about; 0: each ends before the next one begins.
  uint32_t overlap = 4;
};

History Simulate(const SimulatorOptions& options, Random& random);

// Changes one result of one committed transaction into something that the store cannot have shown at that place in the order of the
// timestamps: an absence, an older value, a key more or less in a scan. False: nothing there can be changed.
// What only a transaction of unknown outcome wrote stays as it is: it might not have committed. Says what it did.
bool Corrupt(History* history, Random& random, std::string* what);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_SIMULATOR_H_

// Simulator: random histories of a store that is serializable by construction, because it runs its transactions one
// after the other. It can also corrupt such a history. Used by the tests of the checkers.
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
  bool unknown = true;          // some transactions have an unknown outcome: ...
  uint32_t unknown_one_in = 6;  // ... one transaction in this many, ...
  bool unknown_deletes = true;  // ... these may delete, ...
  // ... and these are one-shots, whose timestamps and reads are not known. No transaction then inserts or updates,
  // because a presence that no read explains could only be guessed.
  bool untimed = false;
  // About this many transactions overlap; 0: each ends before the next one begins.
  uint32_t overlap = 4;
};

History Simulate(const SimulatorOptions& options, Random& random);

// Changes one result of one committed transaction into one that the store cannot have shown at its timestamp: an
// absence, an older value, a key more or less in a scan. Values that a transaction of unknown outcome wrote stay
// unchanged, because it might not have committed. `what` receives a description. Returns false if nothing could be
// changed.
bool CorruptOneResult(History* history, Random& random, std::string* what);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_SIMULATOR_H_

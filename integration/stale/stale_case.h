// The state space of replaced folders: which component's folder, by what, and whether the other component lives on meanwhile.
// AllCases lists it whole.
// Thread-safety: functions; RunCase starts daemons of its own.
#ifndef INTEGRATION_STALE_STALE_CASE_H_
#define INTEGRATION_STALE_STALE_CASE_H_

#include <string>
#include <vector>

#include "integration/stale/stale_world.h"

namespace deut::stale {

enum class Replacement {
  kOlder,            // copied when the component was killed; it has run since
  kOlderWhileItRan,  // copied file by file under writes
  kForeign,          // of the same component of another cluster
  kEmpty,            // nothing
  kWithoutState,     // the DC's dc_state is missing
  kWithoutCheckpoints,
  kWithoutASegment,
  kStateOfOtherVersion,
  kCheckpointOfOtherVersion,
  kSegmentOfOtherVersion,  // the newest that is in use
  kOldestSegmentOfOtherVersion,
  kSpareOfOtherVersion,
  kSpilledRunOfOtherVersion,
  kOwnerOfOtherVersion,
};

struct StaleCase {
  Component component = Component::kDc;
  Replacement replacement = Replacement::kOlder;
  bool peer_lives = true;  // else it is killed, too, and started again

  std::string name() const;
};

std::vector<StaleCase> AllCases();

struct CaseResult {
  Verdict verdict;
  std::string broken;  // what the oracle misses; empty: the case passes
};

// Writes, replaces, starts, judges; after a refusal twice more, and compares the refusing component's folder byte by byte.
CaseResult RunCase(const StaleCase& stale);

}  // namespace deut::stale

#endif  // INTEGRATION_STALE_STALE_CASE_H_

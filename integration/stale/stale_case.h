// The state space of replaced folders: whose folder, what happens to it or to one of its files, whether the other component lives on meanwhile, and
// whether the DC lags behind the TC at that moment. AllCases lists it whole.
// Thread-safety: functions; RunCase starts daemons of its own.
#ifndef INTEGRATION_STALE_STALE_CASE_H_
#define INTEGRATION_STALE_STALE_CASE_H_

#include <optional>
#include <string>
#include <vector>

#include "integration/stale/stale_files.h"
#include "integration/stale/stale_world.h"

namespace deut::stale {

// What takes the place of a whole folder.
enum class Replacement {
  kOlder,            // copied when the component was killed; it has run since
  kOlderLaidOver,    // the same, over the files that are there: newer ones stay beside it
  kOlderWhileItRan,  // copied file by file under writes
  kForeign,          // of the same component of another cluster
  kFork,             // of the same component of a cluster that went its own way from copies of both folders
  kEmpty,            // nothing
  kWithoutCheckpoints,
  kWithoutPages,
  kSpilledRunOfOtherVersion,
};

struct StaleCase {
  Component component = Component::kDc;
  Replacement replacement = Replacement::kOlder;  // unless a file is named
  std::optional<FileKind> file = std::nullopt;
  FileChange change = FileChange::kMissing;
  bool peer_lives = true;  // else it is killed, too, and started again
  bool held_back = false;  // an open transaction keeps the last commits from the DC

  std::string name() const;
};

std::vector<StaleCase> AllCases();
// The part that CI runs: whole folders, and files that are missing or of another version.
std::vector<StaleCase> CoreCases();

struct CaseResult {
  Verdict verdict;
  std::string broken;  // what the oracle misses; empty: the case passes
  bool played = true;  // false: the folder had no such file
};

// Writes, replaces, starts, judges; after a refusal `restarts` times more, and compares the folders byte by byte.
CaseResult RunCase(const StaleCase& stale, int restarts);

}  // namespace deut::stale

#endif  // INTEGRATION_STALE_STALE_CASE_H_

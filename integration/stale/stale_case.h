// The state space of replaced folders. Its dimensions are the component, the change to its folder or to one file,
// whether the other component keeps running, and whether the DC lags behind the TC. AllCases lists all of it.
// Thread-safety: pure functions; RunCase starts daemons of its own.
#ifndef INTEGRATION_STALE_STALE_CASE_H_
#define INTEGRATION_STALE_STALE_CASE_H_

#include <optional>
#include <string>
#include <vector>

#include "integration/stale/stale_files.h"
#include "integration/stale/stale_world.h"

namespace deut::stale {

// The replacement of a whole folder.
enum class Replacement {
  kOlder,            // copied when the component was killed; it has run since
  kOlderLaidOver,    // the same, over the files that are there: newer ones stay beside it
  kOlderWhileItRan,  // copied file by file under writes
  kForeign,          // of the same component of another cluster
  kFork,             // of the same component of a cluster that went its own way from copies of both folders
  kEmpty,            // nothing
  kAbsent,           // not even the folder
  kWithoutCheckpoints,
  kWithoutPages,
  kSpilledRunOfOtherVersion,
};

struct StaleCase {
  Component component = Component::kDc;
  Replacement replacement = Replacement::kOlder;  // used only if `file` is empty
  std::optional<FileKind> file = std::nullopt;
  FileChange change = FileChange::kMissing;
  bool peer_lives = true;  // false: it is killed, too, and started again
  bool held_back = false;  // an open transaction keeps the last commits from the DC

  std::string name() const;
};

std::vector<StaleCase> AllCases();
// The cases that CI runs: whole folders, and files that are missing or of another version.
std::vector<StaleCase> CoreCases();

struct CaseResult {
  Verdict verdict;
  std::string broken;  // the violation of the oracle; empty: the case passes
  bool played = true;  // false: the folder had no such file
};

// Writes, replaces, starts and judges. After a refusal it starts `restarts` times more, and compares the folders byte
// by byte.
CaseResult RunCase(const StaleCase& stale, int restarts);

}  // namespace deut::stale

#endif  // INTEGRATION_STALE_STALE_CASE_H_

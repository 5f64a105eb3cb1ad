// A round: one workload of integration/history on a store of its own, in the surroundings that the seed draws (environment.h), judged by both
// checkers and by the workload's own condition. Nothing in it knows of a rule or of a seeded bug.
//
// Layers. kEmbedded: one life. kRestart: the DC restarts while transactions run; the TC is closed and opened again. kPower: power is
//   lost at a random operation of the disk, in recovery too, or a write fails; the next life opens what is left, which must hold all that
//   was acknowledged. kCorruption: after the first life bits are flipped, one after the other, where the log itself proves that something
//   was there: the store opens and holds everything, or refuses; and log batches lose bits on their way. kTwoTcs: two_tcs_round.h.
//   kRecorded: recorded_round.h.
// Thread-safety: one round at a time in a process (chaos.h).
#ifndef INTEGRATION_BUGS_ROUND_H_
#define INTEGRATION_BUGS_ROUND_H_

#include <cstdint>
#include <string>

#include "integration/bugs/environment.h"
#include "integration/bugs/watchdog.h"
#include "integration/history/history.h"

namespace deut::bugs {

struct RoundOptions {
  Layer layer = Layer::kEmbedded;
  std::string workload;
  uint64_t seed = 0;
};

struct RoundResult {
  // Empty: nothing was found. Else a word or a few: the checkers' verdicts, or what the store did.
  std::string verdict;
  std::string details;
  uint64_t committed = 0;
  history::History history;
};

// Puts the checkers' verdicts on the history in front of what was found already.
void JudgeHistory(RoundResult* result);

RoundResult RunRound(const RoundOptions& options, Watchdog& watchdog);

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_ROUND_H_

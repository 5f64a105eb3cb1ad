// A round: one workload of integration/history on a store of its own, under the conditions that the seed draws
// (environment.h). Both checkers and the workload's own condition judge it. The round knows no rule and no seeded
// bug.
//
// Layers:
// - kEmbedded: one life.
// - kRestart: the DC restarts while transactions run; the TC is closed and opened again.
// - kPower: power is lost at a random operation of the disk, in recovery too, or a write fails. The next life opens
//   the remaining files, which must hold everything that was acknowledged.
// - kCorruption: after the first life bits are flipped, one after the other, where the log itself proves that data
//   was there. The store must open and hold everything, or refuse. Log batches lose bits on their way, too.
// - kTwoTcs: two_tcs_round.h.
// - kRecorded: recorded_round.h.
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
  // Empty: nothing was found. Otherwise one or a few words: the checkers' verdicts, or the store's misbehaviour.
  std::string verdict;
  std::string details;
  uint64_t committed = 0;
  history::History history;
};

// Puts the checkers' verdicts on the history in front of the verdict so far.
void JudgeHistory(RoundResult* result);

RoundResult RunRound(const RoundOptions& options, Watchdog& watchdog);

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_ROUND_H_

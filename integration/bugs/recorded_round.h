// A round of the layer `recorded`: a recorded run of integration/power (one long life of a store with its pages on the disk, and what a loss of power
// leaves at each of many moments of it), in surroundings and under chaos that the seed draws.
// Thread-safety: one round at a time in a process (chaos.h, flight_board.h).
#ifndef INTEGRATION_BUGS_RECORDED_ROUND_H_
#define INTEGRATION_BUGS_RECORDED_ROUND_H_

#include <cstdint>

#include "integration/bugs/round.h"
#include "integration/bugs/watchdog.h"

namespace deut::bugs {

// With a verdict of what is wrong at a crash point; without a history: it was judged at each point.
RoundResult RunRecordedRound(uint64_t seed, Watchdog& watchdog);

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_RECORDED_ROUND_H_

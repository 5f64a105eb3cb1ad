// A round of the layer `recorded`: a recorded run of integration/power, under conditions and chaos that the seed
// draws. The run is one long life of a store with its pages on the disk. The states that a loss of power leaves at
// many moments of it are judged.
// Thread-safety: one round at a time in a process (chaos.h, flight_board.h).
#ifndef INTEGRATION_BUGS_RECORDED_ROUND_H_
#define INTEGRATION_BUGS_RECORDED_ROUND_H_

#include <cstdint>

#include "integration/bugs/round.h"
#include "integration/bugs/watchdog.h"

namespace deut::bugs {

// The verdict describes the error at a crash point. The result has no history, because it was judged at each point.
RoundResult RunRecordedRound(uint64_t seed, Watchdog& watchdog);

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_RECORDED_ROUND_H_

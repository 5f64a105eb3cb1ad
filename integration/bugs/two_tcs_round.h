// A round of two TCs at one DC, none of which knows of the other (rules X4, X5), and of logs and DCs that do not belong together.
//
// Between two lives of the TC either
//   - another one takes over: the clients of the old one are cut off, a second one starts on what its log's disk has at that moment, and the
//     old one lives on, with a disk, with transactions (that nobody hears of), and with messages that arrive after its successor's. Now and
//     then two start from the same log. Whoever serves must hold what was acknowledged, and the old one must not disturb it; or
//   - the old one ends, and its log is opened with a DC that is new, or has fallen back to an earlier state; or an old copy of its log is
//     opened with the DC, which has applied more. Whatever opens must hold what was acknowledged. What is refused is opened as it should be.
// Thread-safety: as RunRound.
#ifndef INTEGRATION_BUGS_TWO_TCS_ROUND_H_
#define INTEGRATION_BUGS_TWO_TCS_ROUND_H_

#include "integration/bugs/round.h"
#include "integration/bugs/watchdog.h"

namespace deut::bugs {

// Without the checkers' verdicts.
RoundResult RunTwoTcsRound(const RoundOptions& options, Watchdog& watchdog);

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_TWO_TCS_ROUND_H_

// A round of two TCs at one DC that do not know of each other (rules X4, X5). It also opens logs with DCs that they
// do not belong to.
//
// Between two lives of the TC, one of these happens:
// - Another TC takes over. The clients of the old TC are cut off, and a second TC starts from the present content of
//   its log's disk. The old one continues with its disk, with transactions whose results no client gets, and with
//   messages that arrive after its successor's. Sometimes two TCs start from the same log. A TC that serves must hold
//   everything that was acknowledged, and the old one must not disturb it.
// - The old TC ends, and its log is opened with a DC that is new or has fallen back to an earlier state. Or an old
//   copy of its log is opened with the DC, which has applied more. A store that opens must hold everything that was
//   acknowledged. After a refusal, the log that belongs to the DC is opened.
// Thread-safety: as RunRound.
#ifndef INTEGRATION_BUGS_TWO_TCS_ROUND_H_
#define INTEGRATION_BUGS_TWO_TCS_ROUND_H_

#include "integration/bugs/round.h"
#include "integration/bugs/watchdog.h"

namespace deut::bugs {

// The result lacks the checkers' verdicts.
RoundResult RunTwoTcsRound(const RoundOptions& options, Watchdog& watchdog);

}  // namespace deut::bugs

#endif  // INTEGRATION_BUGS_TWO_TCS_ROUND_H_

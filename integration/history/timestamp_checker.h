// CheckTimestamps judges strict serializability with predicates from the timestamps that the store gave, in O(n log
// n) of the history's size. It runs the committed transactions again on a sorted map, one after the other in the
// order of their timestamps. Every read must find the value in the map. Every scan must find exactly the keys of the
// map within the bounds that it *reached* (rule S4).
// It also checks these rules:
// - Timestamps are unique.
// - A transaction that is invoked after another has completed has the larger timestamp.
// - A snapshot reads the state below its own timestamp. It may be stale, but holds its min_timestamp, and no
//   transaction that begins after its end is ordered before it.
//
// Unknown outcomes. A transaction of unknown outcome committed if a read shows its effect: one of its values, or a
// key whose absence or presence only it explains. If several transactions could explain a read, the checker tries
// one, and another one if the first contradicts other reads. It may refuse a history with many such reads although
// some choice would fit. A transaction whose timestamp is unknown, too, is put where the reads allow it
// (unknown_placement.h).
// Complete: the checker reports every read that differs from the serial order of the timestamps. It trusts that this
// is the store's serial order, as the store promises; cycle_checker.h does not.
// Thread-safety: pure function.
#ifndef INTEGRATION_HISTORY_TIMESTAMP_CHECKER_H_
#define INTEGRATION_HISTORY_TIMESTAMP_CHECKER_H_

#include "integration/history/history.h"
#include "integration/history/report.h"

namespace deut::history {

Report CheckTimestamps(const History& history);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_TIMESTAMP_CHECKER_H_

// CheckTimestamps: strict serializability with predicates, in time O(n log n) of the history's size, from the timestamps that the store
// gave. The committed transactions are run again, one after the other in the order of their timestamps, on a sorted map: every read must find
// what the map holds, and every scan exactly the keys that the map holds within the bounds that the scan *reached* (rule S4).
// Besides: timestamps are unique; a transaction invoked after another had completed has the larger one; a snapshot reads what has smaller
// timestamps than its own, however stale, but holds its min_timestamp, and nobody who begins after its end is ordered before it.
//
// Unknown outcomes: committed if a read shows it: a value of theirs, or a key that is absent, or there, as only they can have left it. Where several
// could have, one is tried, and another one if that contradicts other reads; histories with many such may be refused although some choice would
// fit. One whose timestamp is unknown too is put where the reads allow it to be (unknown_placement.h).
// Complete: whatever of the reads is not as in the serial order of the timestamps is reported. It trusts the timestamps: that they are the
// store's serial order is what the store promises, and what cycle_checker.h does not assume.
// Thread-safety: pure function.
#ifndef INTEGRATION_HISTORY_TIMESTAMP_CHECKER_H_
#define INTEGRATION_HISTORY_TIMESTAMP_CHECKER_H_

#include "integration/history/history.h"
#include "integration/history/report.h"

namespace deut::history {

Report CheckTimestamps(const History& history);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_TIMESTAMP_CHECKER_H_

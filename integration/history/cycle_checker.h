// CheckCycles: strict serializability from what was read alone; timestamps are not looked at. The history's dependencies (dependencies.h) must
// have no cycle; a cycle is named after Adya's phenomena, and shown with its operations. For lists (append) and registers.
// Sound: a history of a strictly serializable store is never refused. Complete for lists; for registers as far as the order of their versions
// is known (dependencies.h says when it is).
// Linear in operations, edges and keys within scanned bounds, but for the lengths of lists (each read is compared) and for
// histories with cycles.
// Thread-safety: pure function.
#ifndef INTEGRATION_HISTORY_CYCLE_CHECKER_H_
#define INTEGRATION_HISTORY_CYCLE_CHECKER_H_

#include "integration/history/history.h"
#include "integration/history/report.h"

namespace deut::history {

Report CheckCycles(const History& history);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_CYCLE_CHECKER_H_

// CheckCycles judges strict serializability from the values that were read. It does not use timestamps. The history's
// dependencies (dependencies.h) must form no cycle. A cycle is named after Adya's phenomena and is shown with its
// operations. Works for lists (append) and for registers.
// Sound: the history of a strictly serializable store is never refused. Complete for lists; for registers, as far as
// the order of their versions is known (dependencies.h says when it is).
// Cost: linear in operations, edges and keys within scanned bounds. Exceptions are the lengths of lists (each list
// read is compared) and histories with cycles.
// Thread-safety: pure function.
#ifndef INTEGRATION_HISTORY_CYCLE_CHECKER_H_
#define INTEGRATION_HISTORY_CYCLE_CHECKER_H_

#include "integration/history/history.h"
#include "integration/history/report.h"

namespace deut::history {

Report CheckCycles(const History& history);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_CYCLE_CHECKER_H_

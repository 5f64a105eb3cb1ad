// Writes a history in the form that Elle reads (EDN, one map per event), to get a second opinion from a checker
// written by others. A history with appends becomes Elle's list-append, any other rw-register. Values become whole
// numbers, one per write.
// Elle gets the records that a scan returned, as reads. The output omits the absences that a scan saw, keys found
// present, and snapshots. After an unknown outcome a client continues under a new process number, as Elle requires.
// Thread-safety: pure function. Errors: INVALID_ARGUMENT if the history holds an operation that Elle cannot express:
// deletions, blind writes to lists.
#ifndef INTEGRATION_HISTORY_HISTORY_EDN_H_
#define INTEGRATION_HISTORY_HISTORY_EDN_H_

#include <iosfwd>

#include "common/base/status.h"
#include "integration/history/history.h"

namespace deut::history {

Status WriteEdn(const History& history, std::ostream& out);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_HISTORY_EDN_H_

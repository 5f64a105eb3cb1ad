// Histories in the form that Elle reads (EDN, a map an event): for a second opinion by a checker that others wrote.
// A history with appends is of Elle's kind list-append, any other of rw-register. Values become whole numbers, one per write. Of a scan
// Elle gets what it returned, as reads; what it did not return, keys that were found present, and snapshots are left out. A client goes
// on under a new process number after an unknown outcome, as Elle wants it.
// Thread-safety: pure function. Errors: INVALID_ARGUMENT if there is something that Elle has no word for: deletions, blind writes to lists.
#ifndef INTEGRATION_HISTORY_HISTORY_EDN_H_
#define INTEGRATION_HISTORY_HISTORY_EDN_H_

#include <iosfwd>

#include "common/base/status.h"
#include "integration/history/history.h"

namespace deut::history {

Status WriteEdn(const History& history, std::ostream& out);

}  // namespace deut::history

#endif  // INTEGRATION_HISTORY_HISTORY_EDN_H_

// Exchanging the ranges of a table (architecture section 3; what remains of rules P when nothing is open meanwhile).
// The new ranges remember the latest last_read of the old ones they overlap, and a posting of every uncollected transaction that wrote into
// them; so nothing that was read is forgotten, and nothing that is only in the TC is missed by a gather.
// Thread-safety: see REQUIRES; readers of the map may run (a drop of a table in its last steps, metrics): they hold a guard.
#ifndef TC_CATALOGUE_RANGE_EXCHANGE_H_
#define TC_CATALOGUE_RANGE_EXCHANGE_H_

#include <string>
#include <vector>

#include "common/sync/reclamation.h"
#include "tc/catalogue/table_state.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

// `cuts`: ascending, distinct, non-empty keys. REQUIRES: no transaction is open and none can begin; the collector's thread; `uncollected` are
// all committed transactions whose updates the DC may not have applied.
void ExchangeRanges(TableState& table, const std::vector<std::string>& cuts,
                    const std::vector<TransactionRecord*>& uncollected, ReclamationDomain& domain);

}  // namespace deut::tc

#endif  // TC_CATALOGUE_RANGE_EXCHANGE_H_

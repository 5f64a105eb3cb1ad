// FindTable: the first step of every operation, and the effect of a drop of the table meanwhile (rule T1).
// Thread-safety: the transaction's thread.
#ifndef TC_RECORD_MANAGER_FIND_TABLE_H_
#define TC_RECORD_MANAGER_FIND_TABLE_H_

#include "common/base/status.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

// Returns the table as the transaction sees it. A drop has a timestamp, like every transaction:
// - A transaction that is earlier than the drop reads as if nothing had happened. The DC does not learn of the drop
//   before that transaction has ended (S1). If the transaction writes, it loses, because the drop, which is later,
//   has read the whole table.
// - A transaction that is later finds no table (NOT_FOUND) once the drop is committed, and depends on that commit
//   (D1). Before, it loses.
// - A snapshot reads below every undecided drop, so it never loses.
Result<TableState*> FindTable(Engine& engine, Transaction& txn, TableId id, bool for_write);

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_FIND_TABLE_H_

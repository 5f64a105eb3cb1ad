// The look for a table that every operation begins with, and what a table that is dropped meanwhile means to it (rule T1).
#ifndef TC_RECORD_MANAGER_FIND_TABLE_H_
#define TC_RECORD_MANAGER_FIND_TABLE_H_

#include "common/base/status.h"
#include "tc/record_manager/engine.h"
#include "tc/record_manager/transaction.h"

namespace deut::tc {

// Answers the table as the transaction sees it. A drop has a timestamp like every transaction:
//   a transaction that is earlier reads on, as if nothing had happened (S1: the DC does not hear of the drop before it has ended);
//     where it would write, it loses: the drop has read the whole table, later;
//   a later one finds no table (NOT_FOUND) once the drop is committed, and depends on that (D1); until then it loses.
// A snapshot reads below every undecided drop, so it never loses.
Result<TableState*> FindTable(Engine& engine, Transaction& txn, TableId id, bool for_write);

}  // namespace deut::tc

#endif  // TC_RECORD_MANAGER_FIND_TABLE_H_

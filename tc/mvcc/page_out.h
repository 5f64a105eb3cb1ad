// Taking the values of committed versions out of memory (rules S2, S9): the log has them, and keeps them until the DCs have made them stable.
//
// A version that is paged out is another object in the same place of the chain: the same transaction, sequence and length, with the place in the
//   log in place of the value. By the collector's thread, from above:
//   - below a committed version: one store to that one's `older`, which is the collector's alone;
//   - at the head: one 16-byte compare-and-swap from the version to what replaces it. It loses to every install, raise and removal, and then the
//     version stays.
//   - below dead versions, or an open transaction's, it stays: an installer that has seen those may link to it, and would not notice (R4).
//   In each case the old version's own `older` is left as it is: a reader on its way down goes on below it.
// Races. A reader that has the old version reads its value, under its guard; one that comes later finds the place, and reads the log without a
//   guard. An installer that links to the replaced head fails at its compare-and-swap, whose word has changed.
// What may go: of a folded transaction (others' write sets point to their versions), logged, below `durable`, not applied (it goes by itself soon),
//   of at least kLeastPagedOut bytes. Not what its own transaction has replaced: that is not in the log, and nobody reads it.
// Thread-safety: the collector's thread, under a guard.
#ifndef TC_MVCC_PAGE_OUT_H_
#define TC_MVCC_PAGE_OUT_H_

#include <cstdint>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/record_table.h"

namespace deut::tc {

// Smaller values are not worth the exchange.
constexpr uint32_t kLeastPagedOut = 32;

struct PagedOut {
  uint64_t versions = 0;
  uint64_t bytes = 0;  // that have left memory, of those that the collector counts (PinnedBy)
  bool again = false;  // something stays that may go another time
};
// Commits before `durable` are durable.
PagedOut PageOut(RecordEntry& entry, Lsn durable, ReclamationDomain& domain);

}  // namespace deut::tc

#endif  // TC_MVCC_PAGE_OUT_H_

// PageOut: replaces the values of committed versions in memory by their place in the log (rules S2, S9). The log keeps the values until the DCs have
// made them stable.
//
// A paged-out version is another object at the same place in the chain: the same transaction, sequence and length, with the place in the log instead
//   of the value. The collector's thread replaces versions from the top down:
//   - below a committed version: by one store to that version's `older`, which only the collector changes;
//   - at the head: by one 16-byte compare-and-swap from the version to its replacement. It loses to every install, raise and removal, and then the
//     version stays.
//   - below dead versions, or an open transaction's, the version stays: an installer that has seen those may link to it, and would not notice (R4).
//   In each case the old version's own `older` is unchanged: a reader that walks down the chain goes on below it.
// Races. A reader that has the old version reads its value, under its guard. A later reader finds the place, and reads the log without a guard. An
//   installer that links to the replaced head fails at its compare-and-swap, because the word has changed.
// Eligible versions: of a folded transaction (a write set still points to other versions), logged, below `durable`, not applied (those leave soon
//   anyway), of at least kMinPagedOutBytes bytes. Not a version that its own transaction has replaced: it is not in the log, and no reader reads it.
// Thread-safety: the collector's thread, under a guard. Ownership: retires the replaced version.
#ifndef TC_MVCC_PAGE_OUT_H_
#define TC_MVCC_PAGE_OUT_H_

#include <cstdint>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/record_table.h"

namespace deut::tc {

// Smaller values are not worth the replacement.
constexpr uint32_t kMinPagedOutBytes = 32;

struct PagedOut {
  uint64_t versions = 0;
  uint64_t bytes = 0;        // that have left memory, as the collector counts them (PinnedBy)
  bool retry_later = false;  // a version stays that could be paged out later
};
// REQUIRES: commits before `durable` are durable.
PagedOut PageOut(RecordEntry& entry, Lsn durable, ReclamationDomain& domain);

}  // namespace deut::tc

#endif  // TC_MVCC_PAGE_OUT_H_

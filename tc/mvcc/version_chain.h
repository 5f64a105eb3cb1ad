// Operations on the version chain of one record entry: what a reader sees, how a version is installed, how dead and applied versions leave.
// Rules R1 (step 3), R4, R7, R10, S6. All are latch-free and run under a guard of the reclamation domain.
//
// Who changes what. The head: installers, readers (last_read; a copy of the DC's record into an empty chain, S7) and the collector, by 16-byte
//   compare-and-swap. `older` of a
//   published version: the collector alone: of a version that is applied, what is below it dies; of a committed one, the next is passed over if
//   nobody reads it (S6, early). Nobody links past a live version, and the newest committed one stays, so no installer can hold on to what is cut
//   off.
//   Dead versions at the top are unlinked by whoever swings the head past them; that thread retires them.
#ifndef TC_MVCC_VERSION_CHAIN_H_
#define TC_MVCC_VERSION_CHAIN_H_

#include <atomic>
#include <cstdint>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/record_version.h"
#include "tc/txn/readers.h"

namespace deut::tc {

// What a reader finds in a chain.
struct Visible {
  enum class Kind : uint8_t {
    kNothing,   // no version for this reader: the DC's record is the version
    kVersion,   // `version` (a tombstone means absent)
    kConflict,  // an earlier transaction's uncommitted version: `version`
  };
  Kind kind = Kind::kNothing;
  const RecordVersion* version = nullptr;
};

// S9: counts how often versions have left chains for spilled runs, or were about to (spiller.h), against what it was then.
struct SpillWatch {
  const std::atomic<uint64_t>* spills = nullptr;  // none: nothing is spilled
  uint64_t then = 0;
  bool Changed() const { return spills != nullptr && spills->load(std::memory_order_seq_cst) != then; }
};

struct ReaderView {
  Timestamp timestamp;                      // sees committed versions below it
  const TransactionRecord* self = nullptr;  // and its own
  uint32_t own_below = UINT32_MAX;          // of its own, those with a smaller sequence (R10)
};

// Newest first: own -> use; uncommitted earlier -> conflict; uncommitted later, dead or committed later -> skip; committed earlier -> use.
Visible FindVisible(const RecordVersion* head, const ReaderView& reader);

// R4: the newest version that is neither aborted nor withdrawn.
RecordVersion* LiveHead(RecordVersion* head);

// Swings the head from `seen` (a word of this entry, read under this guard) to `replacement`, whose `older` is LiveHead(seen.head), or
// null where that is a copy of the DC's record (S7), with last_read raised to at least `raise_to`. On success retires what it unlinked: dead
// versions, the copy. On failure reloads `seen`.
bool InstallVersion(RecordEntry& entry, HeadWord::Value& seen, RecordVersion* replacement, Timestamp raise_to,
                    ReclamationDomain& domain);

// S7: makes `copy` (of_dc) the whole chain, where the newest live version is `over` (null: there is none), and marks the entry as queued. True,
// with the word before in `seen`; what it unlinked has been retired. False, with what is there now: another is the newest, or the entry is sealed.
// False, too, where `spills` has changed since whoever asked the DC looked at the chain (S9).
bool InstallCopy(RecordEntry& entry, HeadWord::Value& seen, const RecordVersion* over, RecordVersion* copy,
                 ReclamationDomain& domain, const SpillWatch& spills = {});
// S7: takes the copy out, if the chain is one, and the mark of the queue off. REQUIRES: the collector's thread; the entry is queued, and not in the
// queue any more. Answers the word before; a copy in it has been retired.
HeadWord::Value RemoveCopy(RecordEntry& entry, ReclamationDomain& domain);

// S6: `version` is applied and below low-water: everything older is unlinked and retired, and it goes itself if it is the head, or
// when it becomes the head because what was above it has died. (A reader that still finds it reads what the DC would have told.)
// REQUIRES: the collector's thread; versions of one key in ascending order.
void CollectApplied(RecordEntry& entry, RecordVersion* version, ReclamationDomain& domain);

// S6, early: unlinks the committed versions that none of the readers reads, of transactions that are folded or collected (others' write sets point to
// them). The newest committed version stays.
// A reader on its way down the chain goes on below what is unlinked. An installer links to the newest live version, which is not unlinked.
// REQUIRES: the collector's thread; `readers` is the latest answer of ActiveTransactions::RoundForReaders.
// S9: what a version and the entry that it keeps take.
inline uint64_t PinnedBy(const RecordEntry& entry, const RecordVersion& version) {
  return sizeof(RecordEntry) + entry.key_bytes + version.bytes();
}

struct Unread {
  uint64_t versions = 0;
  uint64_t bytes = 0;  // PinnedBy: of those that were not applied, and that their own transaction had not replaced
};
Unread CollectUnread(RecordEntry& entry, const Readers& readers, ReclamationDomain& domain);

// Unlinks dead versions from the top, and then an applied one. REQUIRES: the collector's thread.
void RemoveDeadAndApplied(RecordEntry& entry, ReclamationDomain& domain);

}  // namespace deut::tc

#endif  // TC_MVCC_VERSION_CHAIN_H_

// Operations on the version chain of one record entry: which version a reader sees, how a version is installed, how dead and applied versions leave.
// Rules R1 (steps 3 and 4), R4, R7, R10, S6.
//
// Head. Installers, readers and the collector change it by 16-byte compare-and-swap. A reader raises last_read, or puts a copy of the DC's record
//   into an empty chain (S7).
// `older` of a published version. Only the collector changes it. It cuts off everything below an applied version. Below a committed version it
//   skips the next one if no reader reads that (S6, early). No installer links past a live version, and the newest committed one stays, so no
//   installer can hold on to a version that is cut off.
// Dead versions at the top are unlinked by the thread that swings the head past them; that thread retires them.
// Thread-safety: any thread under a guard of the reclamation domain, except where the collector's thread is required. Latch-free.
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

// The result of a reader's look at a chain.
struct Visible {
  enum class Kind : uint8_t {
    kNothing,   // no version for this reader: the DC's record is the version
    kVersion,   // `version` (a tombstone means absent)
    kConflict,  // an earlier transaction's uncommitted version: `version`
  };
  Kind kind = Kind::kNothing;
  const RecordVersion* version = nullptr;
};

// S9: detects whether versions have left chains for spilled runs, or were about to (spiller.h), since the value `then` was read.
struct SpillWatch {
  const std::atomic<uint64_t>* spills = nullptr;  // null: nothing is spilled
  uint64_t then = 0;
  bool Changed() const { return spills != nullptr && spills->load(std::memory_order_seq_cst) != then; }
};

struct ReaderView {
  Timestamp timestamp;                      // the reader sees committed versions below it
  const TransactionRecord* self = nullptr;  // and versions of this transaction
  uint32_t own_below = UINT32_MAX;          // among its own versions, those with a smaller sequence (R10)
};

// Newest first: own -> use; uncommitted earlier -> conflict; uncommitted later, dead or committed later -> skip; committed earlier -> use.
Visible FindVisible(const RecordVersion* head, const ReaderView& reader);

// R4: the newest version that is neither aborted nor withdrawn.
RecordVersion* LiveHead(RecordVersion* head);

// Swings the head from `seen` (a word of this entry, read under this guard) to `replacement`, and raises last_read to at least `raise_to`. `older`
// of `replacement` is LiveHead(seen.head), or null if that is a copy of the DC's record (S7). On success retires the versions it unlinked: dead
// ones, or the copy. On failure reloads `seen`.
bool InstallVersion(RecordEntry& entry, HeadWord::Value& seen, RecordVersion* replacement, Timestamp raise_to,
                    ReclamationDomain& domain);

// S7: makes `copy` (of_dc) the whole chain and marks the entry as queued, if the newest live version is `over` (null: there is none). On success
// `seen` is the word before, and the unlinked versions have been retired. On failure `seen` is the present word; another version is the newest, or
// the entry is sealed. It fails as well if `spills` has changed since the thread that asked the DC looked at the chain (S9).
bool InstallCopy(RecordEntry& entry, HeadWord::Value& seen, const RecordVersion* over, RecordVersion* copy,
                 ReclamationDomain& domain, const SpillWatch& spills = {});
// S7: removes the copy, if the chain is one, and clears the queued mark. Returns the word before; a copy in it has been retired.
// REQUIRES: the collector's thread; the entry is marked as queued and has been taken out of the queue.
HeadWord::Value RemoveCopy(RecordEntry& entry, ReclamationDomain& domain);

// S6: `version` is applied and below low-water. Unlinks and retires everything older. The version itself leaves if it is the head, or when it
// becomes the head because the versions above it have died. (A reader that still finds it reads what the DC would return.)
// REQUIRES: the collector's thread; versions of one key in ascending order.
void CollectApplied(RecordEntry& entry, RecordVersion* version, ReclamationDomain& domain);

// S9: bytes of a version and of the entry that it keeps in the table.
inline uint64_t PinnedBy(const RecordEntry& entry, const RecordVersion& version) {
  return sizeof(RecordEntry) + entry.key_bytes + version.bytes();
}

struct Unread {
  uint64_t versions = 0;
  uint64_t bytes = 0;  // PinnedBy of those that were neither applied nor replaced by their own transaction
};
// S6, early: unlinks committed versions that none of the readers reads, if their transactions are folded or collected. (Otherwise a write set still
// points to the version.) The newest committed version stays.
// A reader that walks down the chain goes on below an unlinked version. An installer links to the newest live version, which is not unlinked.
// REQUIRES: the collector's thread; `readers` is the latest result of ActiveTransactions::RoundForReaders.
Unread CollectUnread(RecordEntry& entry, const Readers& readers, ReclamationDomain& domain);

// Unlinks dead versions from the top, and then an applied one. REQUIRES: the collector's thread.
void RemoveDeadAndApplied(RecordEntry& entry, ReclamationDomain& domain);

}  // namespace deut::tc

#endif  // TC_MVCC_VERSION_CHAIN_H_

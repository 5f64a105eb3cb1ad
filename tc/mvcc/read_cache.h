// ReadCache: copies of what the DC has answered, so that it is not asked again (rule S7).
//
// A copy is a version of a transaction of timestamp 0 that has always been committed: whatever the DC returns is visible to every active
// transaction (S1). That the DC has nothing is kept as a tombstone. A copy is the whole chain of its entry, always:
//   in   Fill: from a chain without a live version to the copy, one compare-and-swap of the head word, which also sets QUEUED
//        Refresh: from a version that is applied, the newest live one, to its copy: where QUEUED is set, and, while nothing need go for it, where it
//          is not
//   out  a writer that installs over it (WritePath::Install): the copy goes, what is written stands alone
//        the collector, when it is the copy's turn: from the copy to nothing
//   Whoever loses one of these compare-and-swaps looks at the word again. `older` of no version is changed, and no version has a copy below it.
//
// Claim: while a copy is linked, it is what the DC has of the key (or, while a new life of the DC is behind the gate, what it will have: X3).
//   An update that the DC applies stands in the chain from before its commit until it has been found applied, so it cannot be applied while the
//   copy is the chain. It remains that a copy is right when it is linked. Its reader, R, had looked into the chain, having raised last_read or
//   the floor before, then asked, and has not ended. What could make the answer old is an update applied between answer and link.
//   Earlier than R: R met it in the chain only if its value had left the log (S2), hence was applied; else it was not there, so either it had
//   been applied by then, or it is installed after R's raise and fails its check (R1 step 5). A snapshot raises nothing, but there is no open
//   transaction earlier than it (L2).
//   Later than R: it is not below low-water before R has ended (S1). So if it has committed, it is still in the chain, and there is no copy.
//   What has left the chain for a spilled run (S9) was there when R looked, or a spill was counted since; in either case nothing is linked. So the
//   claim's "stands in the chain" holds for it too: where it is in a run alone there is no copy.
//   A copy of an applied version is right for as long as that stands there alone, which the compare-and-swap finds out.
//   Fill need not meet the entry that R looked at: what is said holds for the key. An entry that is new has no last_read; that R, and others,
//   have read is then in the bucket's floor, or was when the entry before it was sealed at or below low-water (R5, R6), as for a writer that
//   makes one.
// Consequences.
//   A dropped table's copies are those of an id that nobody asks for any more. A new life of the DC changes no copy.
//   A scan takes no keys from here. Where a gathered key's chain is a copy, that is what the DC has now, so newer than its answer (S5).
//   A TC that has been taken over from and does not know it yet answers from copies, as it does from versions, without the DC that would refuse it:
//   that there is none such is the lock on the log's directory (X5).
//   Preconditions look at the head, so they are answered by a copy as well.
//   Who is earlier than an uncommitted writer over what was a copy asks the DC. So does the next one if the writer aborts.
//
// The queue: entries that have held a copy, first in, first out, with a second chance for those read since they came in or were looked at. An
//   entry is in the queue once, while QUEUED is set: whoever sets it pushes the entry (a stack of arrivals: push by compare-and-swap, take all by
//   exchange); only the collector takes entries out, then clears it. R5 removes no entry that is queued, so the queue's pointers are good. An
//   entry whose copy a writer has replaced keeps its place: what is written becomes the copy once it is applied. What was written and
//   never read comes in as long as nothing has to go for it, and goes first where it has come first: whoever writes much takes nothing from readers.
// Memory: an entry and a version for each copy, counted with their keys and values before they are made, and never beyond the budget: an answer
//   for which there is no room is not kept. The collector keeps some room free, so that is rare. A hit allocates and counts nothing; it marks the
//   copy as used.
// Thread-safety: Fill, Replaced and the figures from any thread; Refresh, Evict and Clear by the collector's.
// Ownership: the queue's links are the entries'; copies belong to their chains, and may outlive the cache.
#ifndef TC_MVCC_READ_CACHE_H_
#define TC_MVCC_READ_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/record_version.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {

class ReadCache {
 public:
  // `keep_written`: not only what has been read, and what is written over that, but all that is written, while there is room.
  ReadCache(uint64_t budget_bytes, bool keep_written, ReclamationDomain& domain, RecordTable& records);
  ~ReadCache();
  ReadCache(const ReadCache&) = delete;
  ReadCache& operator=(const ReadCache&) = delete;

  // Keeps what the DC has answered; no value: there is no record. True: it is time for the collector to make room.
  // REQUIRES: the transaction that asked still counts in the low-water, and had raised and looked before it asked.
  // `spills`: as it was before it looked; and it has found no spilled run (S9).
  bool Fill(uint64_t hash, TableId table, std::string_view key, std::optional<std::string_view> value,
            const SpillWatch& spills = {});

  // `applied` is, and goes: its copy takes its place, and with it go the versions below. False: another is the newest, its value has left
  // memory (S9), or there is no room; then nothing was done. What is not queued has room only where nothing has to go for it, now or soon; a
  // removal has none there.
  // REQUIRES: a guard; the collector's thread.
  bool Refresh(RecordEntry& entry, const RecordVersion& applied);

  // A writer has installed over the copy. REQUIRES: the guard under which it was found.
  void Replaced(const RecordVersion& copy) {
    bytes_.fetch_sub(copy.bytes(), std::memory_order_relaxed);
    replaced_.fetch_add(1, std::memory_order_relaxed);
  }

  // A reader has found the copy.
  static void Use(const RecordVersion& copy) {
    if (!copy.used.load(std::memory_order_relaxed)) copy.used.store(true, std::memory_order_relaxed);
  }

  // Makes room, looking at `most` entries at most, and lets go of entries that are not queued any more and hold nothing. True: there is more to do.
  using LetGo = absl::FunctionRef<void(RecordEntry*)>;
  bool Evict(size_t most, LetGo let_go);
  // Of all that was there when it was called.
  void Clear(LetGo let_go);

  uint64_t budget_bytes() const { return budget_bytes_; }
  // Of copies that are linked and entries that are queued.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t filled() const { return filled_.load(std::memory_order_relaxed); }
  uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }
  uint64_t refreshed() const { return refreshed_.load(std::memory_order_relaxed); }
  uint64_t replaced() const { return replaced_.load(std::memory_order_relaxed); }
  // Answers that were not kept for want of room.
  uint64_t no_room() const { return no_room_.load(std::memory_order_relaxed); }

 private:
  static uint64_t EntryBytes(size_t key_bytes) { return sizeof(RecordEntry) + key_bytes; }
  // False: they would be more than `limit` then.
  bool Reserve(uint64_t bytes, uint64_t limit);
  void Push(RecordEntry* entry);
  // Sets QUEUED and pushes it. False: it was set, or the entry is sealed.
  bool Queue(RecordEntry& entry);
  void TakeArrivals();
  RecordEntry* Pop();
  void Append(RecordEntry* entry);
  // `entry` has been taken out of the queue.
  void GiveUp(RecordEntry* entry, LetGo let_go);

  ReclamationDomain& domain_;
  RecordTable& records_;
  const uint64_t budget_bytes_;
  const bool keep_written_;
  const uint64_t wake_bytes_;  // with more than that the collector is woken
  const uint64_t keep_bytes_;  // and leaves so much
  TransactionRecord* const of_dc_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> filled_{0};
  std::atomic<uint64_t> refreshed_{0};
  std::atomic<uint64_t> evicted_{0};
  std::atomic<uint64_t> replaced_{0};
  std::atomic<uint64_t> no_room_{0};
  std::atomic<RecordEntry*> arrivals_{nullptr};

  // The collector's own.
  RecordEntry* first_ = nullptr;
  RecordEntry* last_ = nullptr;
};

}  // namespace deut::tc

#endif  // TC_MVCC_READ_CACHE_H_

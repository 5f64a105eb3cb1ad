// ReadCache: copies of the DC's answers to point reads, so that the DC is not asked again (rule S7).
//
// A copy is a version of a transaction of timestamp 0 that has always been committed: a record that the DC returns is visible to every active
// transaction (S1). A tombstone copy says that the DC has no record. A copy is always the whole chain of its entry:
//   in   Fill: from a chain without a live version to the copy, by one compare-and-swap of the head word, which also sets QUEUED
//        Refresh: from an applied version, the newest live one, to its copy: if QUEUED is set; or if it is not, while the cache has room without
//          evicting
//   out  a writer that installs over it (WritePath::Install): the copy leaves, and the written version stands alone
//        the collector, when it evicts the copy: from the copy to an empty chain
//   The loser of one of these compare-and-swaps looks at the word again. No version's `older` is changed, and no version has a copy below it.
//
// Claim: while a copy is linked, it is what the DC has of the key (or, while a new incarnation of the DC is behind the gate, what it will have: X3).
//   An update stands in the chain from before its commit until the TC has found it applied. So no update of the key is applied while the copy is
//   the chain. It remains to show that a copy is right when it is linked. Its reader, R, had raised last_read or the floor, then looked into the
//   chain, then asked the DC, and has not ended. Only an update applied between answer and link could make the answer old.
//   Earlier than R: R met it in the chain only if its value had left the log (S2), hence was applied. Else it was not there: either it had been
//   applied by then, or it is installed after R's raise and fails its check (R1 step 5). A snapshot raises nothing, but no open transaction is
//   earlier than it (L2).
//   Later than R: it is not below low-water before R has ended (S1). So if it has committed, it is still in the chain, and there is no copy.
//   A version that has left the chain for a spilled run (S9) was there when R looked, or a spill was counted since. In either case nothing is
//   linked. So the claim's "stands in the chain" holds for it too: where it is in a run alone there is no copy.
//   A copy of an applied version is right while that version stands there alone, which the compare-and-swap checks.
//   Fill need not meet the entry that R examined: the argument holds for the key. A new entry has no last_read. The reads by R and others are
//   then in the bucket's floor, or the entry before it was sealed at or below low-water (R5, R6). The same holds for a writer that makes an
//   entry.
// Consequences.
//   A dropped table's copies belong to an id that no transaction asks for any more. A new incarnation of the DC changes no copy.
//   A scan takes no keys from here. If a gathered key's chain is a copy, that is what the DC has now, so newer than its answer (S5).
//   A TC that was superseded and does not know it yet answers from copies, as it does from versions, without the DC, which would refuse it. The lock
//   on the log's directory ensures that there is no such TC (X5).
//   Preconditions look at the head, so a copy answers them as well.
//   A transaction earlier than an uncommitted writer that replaced a copy asks the DC. So does the next reader if the writer aborts.
//
// The queue: entries that have held a copy, first in, first out, with a second chance for those read since they entered or were last examined. An
//   entry is in the queue once, while QUEUED is set. The thread that sets QUEUED pushes the entry on a stack of arrivals (push by compare-and-swap,
//   take all by exchange). Only the collector takes entries out, and then clears QUEUED. R5 removes no queued entry, so the queue's pointers are
//   valid. An entry whose copy a writer has replaced keeps its place: the written version becomes the copy once it is applied. A version that was
//   written and never read enters only while nothing must be evicted for it, and such copies are evicted first in, first out. So a heavy writer
//   takes nothing from readers.
// Memory: an entry and a version per copy, counted with their keys and values before they are made. An answer that does not fit in the budget is
//   not kept. The collector keeps some room free, so that is rare. A hit allocates and counts nothing; it marks the copy as used.
// A budget that is lowered holds as soon as the collector has evicted what exceeds it; answers are refused at once.
// Thread-safety: Fill, Replaced, Use, SetBudget and the figures from any thread; Refresh, Evict and Clear by the collector's.
// Ownership: the queue's links are in the entries; copies belong to their chains, and may outlive the cache.
#ifndef TC_MVCC_READ_CACHE_H_
#define TC_MVCC_READ_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/record_table.h"
#include "tc/mvcc/record_version.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {

class ReadCache {
 public:
  // `keep_written`: while there is room, every written version becomes a copy once applied, not only one that was written over a copy.
  ReadCache(uint64_t budget_bytes, bool keep_written, ReclamationDomain& domain, RecordTable& records);
  ~ReadCache();
  ReadCache(const ReadCache&) = delete;
  ReadCache& operator=(const ReadCache&) = delete;

  // Keeps the DC's answer; no value: the DC has no record. Returns true if the collector should make room.
  // REQUIRES: the transaction that asked is still open for low-water, and had raised and looked before it asked.
  // `spills`: taken before it looked; and it has found no spilled run (S9).
  bool Fill(uint64_t hash, TableId table, std::string_view key, std::optional<std::string_view> value,
            const SpillWatch& spills = {});

  // Replaces the applied version, and all below it, by a copy of it. Returns false, and does nothing, if another version is the newest, if the value
  // is paged out (S9), or if there is no room. An entry that is not queued has room only while nothing must be evicted, now or soon, and never for a
  // tombstone.
  // REQUIRES: a guard; the collector's thread.
  bool Refresh(RecordEntry& entry, const RecordVersion& applied);

  // Accounts for a copy that a writer has installed over. REQUIRES: the guard under which the writer found it.
  void Replaced(const RecordVersion& copy) {
    Release(copy.bytes());
    replaced_.fetch_add(1, std::memory_order_relaxed);
  }

  // Marks the copy as used by a reader.
  static void Use(const RecordVersion& copy) {
    if (!copy.used.load(std::memory_order_relaxed)) copy.used.store(true, std::memory_order_relaxed);
  }

  // Evicts copies until there is room, examining at most `max_entries` entries. Calls `on_unqueued` for each unqueued entry without a version.
  // True: there is more to evict.
  using OnUnqueued = absl::FunctionRef<void(RecordEntry*)>;
  bool Evict(size_t max_entries, OnUnqueued on_unqueued);
  // Evicts every copy that was there when it was called.
  void Clear(OnUnqueued on_unqueued);

  uint64_t budget_bytes() const { return budget_bytes_.load(std::memory_order_relaxed); }
  // Changes the budget. Returns true if the collector should evict. With a budget of 0 no answer is kept.
  bool SetBudget(uint64_t bytes);
  // Bytes of linked copies and queued entries.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t filled() const { return filled_.load(std::memory_order_relaxed); }
  uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }
  uint64_t refreshed() const { return refreshed_.load(std::memory_order_relaxed); }
  uint64_t replaced() const { return replaced_.load(std::memory_order_relaxed); }
  // Answers that were not kept because the budget was full.
  uint64_t no_room() const { return no_room_.load(std::memory_order_relaxed); }

 private:
  // Above it the collector is woken.
  uint64_t WakeBytes() const;
  // The collector evicts down to it.
  uint64_t KeepBytes() const;
  static uint64_t EntryBytes(size_t key_bytes) { return sizeof(RecordEntry) + key_bytes; }
  // Adds to bytes_. False, and nothing added, if the sum would exceed `limit`.
  bool Reserve(uint64_t bytes, uint64_t limit);
  // Subtracts bytes that Reserve has added.
  void Release(uint64_t bytes) {
    [[maybe_unused]] const uint64_t before = bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    DEUT_DCHECK(before >= bytes);
  }
  void Push(RecordEntry* entry);
  // Sets QUEUED and pushes it. False: it was set, or the entry is sealed.
  bool Queue(RecordEntry& entry);
  void DrainArrivals();
  RecordEntry* Pop();
  void Append(RecordEntry* entry);
  // Unqueues `entry`, which was taken out of the queue, and removes its copy.
  void EvictEntry(RecordEntry* entry, OnUnqueued on_unqueued);

  ReclamationDomain& domain_;
  RecordTable& records_;
  std::atomic<uint64_t> budget_bytes_;
  const bool keep_written_;
  TransactionRecord* const of_dc_;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> filled_{0};
  std::atomic<uint64_t> refreshed_{0};
  std::atomic<uint64_t> evicted_{0};
  std::atomic<uint64_t> replaced_{0};
  std::atomic<uint64_t> no_room_{0};
  std::atomic<RecordEntry*> arrivals_{nullptr};

  // Used by the collector's thread only.
  RecordEntry* first_ = nullptr;
  RecordEntry* last_ = nullptr;
};

}  // namespace deut::tc

#endif  // TC_MVCC_READ_CACHE_H_

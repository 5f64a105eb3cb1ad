// EntryRemover: removes record entries that hold no version (rules R5, R6). Unlinking, folding, spilling and the read
// cache pass it the entries that they have emptied.
//
// An entry whose last_read is above low-water is deferred: it waits in a list until low-water has passed its last_read.
// Each round retries some entries of the list, those that have waited longest first.
// When the list exceeds its limit, the remover raises the bucket's floor to the entry's last_read and removes the entry
//   at once. *Else:* under one old reader the list grows with every key that is read.
// A reader that finds its bucket's floor taken makes a deferred entry by itself (record_table.h) and passes it to Defer.
//   It arrives over a latch-free stack (push by compare-and-swap, take all by exchange).
// Invariant: `deferred` is set in an entry exactly while the entry is in the list or on its way to it. No such entry
//   is removed by another path, so the list's pointers are valid.
// Thread-safety: Defer, MayDefer, has_arrivals and the figures from any thread; all else by the collector's thread.
// Ownership: none of the entries, which the table owns.
#ifndef TC_MVCC_ENTRY_REMOVER_H_
#define TC_MVCC_ENTRY_REMOVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/record_table.h"

namespace deut::tc {

class EntryRemover {
 public:
  // `max_deferred`: limit of the list. It may be exceeded by the entries that arrive between two rounds.
  EntryRemover(ReclamationDomain& domain, RecordTable& records, size_t max_deferred)
      : domain_(domain), records_(records), max_deferred_(max_deferred) {}
  EntryRemover(const EntryRemover&) = delete;
  EntryRemover& operator=(const EntryRemover&) = delete;

  // Takes over a deferred entry (RecordTable::FindOrCreateDeferred).
  void Defer(RecordEntry* entry);
  // Whether the list has room for another deferred entry.
  bool MayDefer() const {
    return deferred_count_.load(std::memory_order_relaxed) + arriving_count_.load(std::memory_order_relaxed) <
           max_deferred_;
  }
  // True if an entry has arrived that TakeArrivals has not taken yet.
  bool has_arrivals() const { return arriving_.load(std::memory_order_seq_cst) != nullptr; }
  // Moves arrived entries to the list.
  void TakeArrivals();

  // Removes the entry, or defers it if its last_read is still needed. Does nothing if a version or a copy is there.
  // REQUIRES: a guard.
  void Remove(RecordEntry* entry, Timestamp low_water);
  // S9. As Remove, for an entry whose versions were spilled: its last_read stands for their timestamps. REQUIRES: a guard.
  void RemoveSpilled(RecordEntry* entry, Timestamp low_water);

  // True if no entry waits in the list.
  bool empty() const { return deferred_.empty(); }
  // Retries some entries: more if low-water has moved since the last call.
  void Retry(Timestamp low_water);
  // Retries every entry.
  void RetryAll(Timestamp low_water);
  // The latest last_read in the list. REQUIRES: the list is not empty.
  Timestamp LatestRead() const;
  // True if an entry in the list has a last_read at or before `read`.
  bool HoldsReadThrough(Timestamp read) const;

  // Figures.
  uint64_t deferred_entries() const { return deferred_count_.load(std::memory_order_relaxed); }
  // R6: reads, and last_reads of spilled keys, that were recorded as reads of every key of their bucket.
  uint64_t shared_floors() const { return shared_floors_.load(std::memory_order_relaxed); }

 private:
  // A deferred entry on its way into the list.
  struct Arriving {
    RecordEntry* entry;
    Arriving* next;
  };

  // R6: makes the bucket's floor, which names another key, a floor of every key of the bucket that includes this read.
  void ShareFloor(uint64_t hash, Timestamp read);
  void Append(RecordEntry* entry);
  // Retries the `count` entries that have waited longest. REQUIRES: there are at least `count`; a guard is held.
  void RetryOldest(size_t count, Timestamp low_water);

  ReclamationDomain& domain_;
  RecordTable& records_;
  const size_t max_deferred_;
  std::atomic<Arriving*> arriving_{nullptr};
  std::atomic<size_t> arriving_count_{0};
  std::atomic<uint64_t> deferred_count_{0};
  std::atomic<uint64_t> shared_floors_{0};

  // Used by the collector's thread only.
  std::deque<RecordEntry*> deferred_;
  Timestamp retried_at_;  // low-water at the last Retry
};

}  // namespace deut::tc

#endif  // TC_MVCC_ENTRY_REMOVER_H_

// OutcomeTable: the outcomes of transactions that were committed under a name, for clients that lost the answer to a commit.
//
// Shape: buckets of kSlots slots, each bucket a ring. A new entry takes the next slot and evicts the entry there (the bucket's oldest). Entries:
//   commit  committing -> committed | dropped (it did not commit after all)
//   fence   a client asked and no commit was found; -> answered (the asker was told so) | void (a commit was found after all)
// The race, ask against commit. Committer: *publish the commit entry, then look for a fence*; if it finds one, it does not commit. Asker:
//   *publish the fence, then look (again) for a commit entry*; if it finds one, it waits for that, which decides. All steps are sequentially
//   consistent, so at least one sees the other; if both do, the committer gives up, which the asker sees. So an id that was answered "not committed"
//   never commits. A commit entry takes precedence over any fence. An asker that finds another asker's fence still repeats the look for a commit
//   entry, because the other's look may not have happened yet.
// Eviction: the bucket's `horizon` is raised above a commit's timestamp *before* the entry is evicted, and read *after* the slots. So an asker that
//   does not find an id whose transaction cannot be older than the horizon knows that it was never there. `fence_horizon` does the same for fences:
//   a committer whose name may be older than it does not commit, because a client may have asked for it.
// Restarts: fences end with the process. No name that was made before this process's first timestamp commits in it (FenceHorizon).
// The log: commit records carry ids (NAMED COMMIT), and for their sake the log is kept beyond the redo start (RedoLogOptions::keep_time,
//   keep_bytes; a full disk ends that). Before the log is cut, the entries below the cut are forgotten here (ForgetBelow), and the horizon is logged.
//   So a start can rebuild the table from any log that is left.
// Model: integration/models/outcome.pml.
// Buckets are chosen by a hash with a secret key, drawn by each table, because clients choose ids. *Without it:* a client asks for invented ids that
//   share a bucket with another client's transactions. Their fences evict one another, which raises the bucket's `fence_horizon`, so that the other
//   client's open transactions abort when they commit.
// Bounds: max_outcomes entries of about kEntryBytes, and as many as the log keeps. Fences leave at the first cut after `window`, or by eviction.
// Progress: publishing is wait-free except for a compare-and-swap per new entry in the same slot. An asker waits for a commit that is being appended.
// Why no map of Abseil: it needs a lock, and knows no eviction that other threads can follow.
// Thread-safety: any thread; Recover before all other calls. Ownership: runtime and domain outlive it.
#ifndef TC_OUTCOMES_OUTCOME_TABLE_H_
#define TC_OUTCOMES_OUTCOME_TABLE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/transaction_id.h"
#include "common/coding/siphash.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "protocol/transaction_service.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

struct OutcomeTableOptions {
  size_t max_outcomes = size_t{1} << 20;
  Duration window = seconds(600);
  Timestamp first_timestamp{1};  // of this process
};

class OutcomeTable {
 public:
  static constexpr size_t kEntryBytes = 80;  // with the heap's overhead

  OutcomeTable(const OutcomeTableOptions& options, Runtime& runtime, ReclamationDomain& domain);
  ~OutcomeTable();
  OutcomeTable(const OutcomeTable&) = delete;
  OutcomeTable& operator=(const OutcomeTable&) = delete;

  void Recover(const RecoveredLog& recovered);

  class Entry;
  // Announces that a transaction is about to commit: must come before its commit record is appended. ABORTED: a client has asked for it, so it must
  // not commit. INVALID_ARGUMENT: its id has been used, or its name is younger than itself. On success Finish or Drop must follow.
  Result<Entry*> BeginCommit(const TransactionName& name, Timestamp timestamp);
  // The commit record is appended. Called before the transaction's slot is cleared (S2: until then the log is not cut below the record).
  void Finish(Entry* entry, Lsn commit_lsn);
  void Drop(Entry* entry);

  // The transaction's outcome. A committed one may not be durable yet. `next` is the timestamp that the next transaction draws.
  // INVALID_ARGUMENT: the name is younger than `next`. DEADLINE_EXCEEDED: the transaction is being committed.
  Result<OutcomeAnswer> Ask(const TransactionName& name, Timestamp next, Deadline deadline);

  // Called before the log is cut below `cut`. Returns the horizon to be logged first: ids of commits with earlier timestamps may be forgotten.
  Timestamp ForgetBelow(Lsn cut);

  uint64_t entries() const { return entries_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return entries() * kEntryBytes + (mask_ + 1) * sizeof(Bucket); }
  uint64_t asked() const { return asked_.load(std::memory_order_relaxed); }
  uint64_t fenced() const { return fenced_.load(std::memory_order_relaxed); }

 private:
  struct alignas(128) Bucket {
    static constexpr size_t kSlots = 12;
    std::atomic<uint64_t> slots[kSlots] = {};  // an entry's address, with a tag of its id above it; 0: none
    std::atomic<uint64_t> horizon{0};
    std::atomic<uint64_t> fence_horizon{0};
    std::atomic<uint32_t> next{0};
  };

  static constexpr int kTagShift = 48;  // an address has at most this many bits

  // An id with its hash, which is computed once for each call of a client.
  struct Hashed {
    TransactionId id;
    uint64_t hash = 0;
  };
  Hashed Hash(const TransactionId& id) const;
  // Lets a search skip most entries of other ids without dereferencing them.
  static uint64_t TagOf(uint64_t hash) { return hash & 0xFFFF; }
  static uint64_t WordOf(const Entry* entry);
  static Entry* EntryOf(uint64_t word) { return reinterpret_cast<Entry*>(word & ((uint64_t{1} << kTagShift) - 1)); }
  Bucket& BucketOf(const Hashed& id) { return buckets_[(id.hash >> 32) & mask_]; }
  static Bucket* FirstBucketIn(void* memory);
  // No name that was made before this process's first timestamp commits.
  uint64_t FenceHorizon(const Bucket& bucket) const {
    return std::max(bucket.fence_horizon.load(std::memory_order_seq_cst), first_timestamp_);
  }
  // REQUIRES for all of these: a guard is held.
  void Publish(Bucket& bucket, Entry* entry);
  void EvictSlot(Bucket& bucket, std::atomic<uint64_t>& slot, uint64_t seen, Entry* replacement, bool* done);
  // `is` is Entry::is_commit or Entry::is_fence.
  Entry* Find(Bucket& bucket, const Hashed& id, bool (Entry::*is)() const, const Entry* except = nullptr);
  void DropReference(Entry* entry);

  void SetFinal(Entry* entry, uint32_t state);
  // Waits until the commit entry is decided. True: committed, with `*answer` set; false: dropped. Drops the caller's reference.
  Result<bool> AwaitCommit(Entry* entry, Deadline deadline, OutcomeAnswer* answer);

  const Duration window_;
  Runtime& runtime_;
  ReclamationDomain& domain_;
  const SipHashKey key_;
  const size_t mask_;
  const uint64_t first_timestamp_;
  // The system hands out zeroed pages on first touch, so buckets take memory only where they are used.
  const std::unique_ptr<void, void (*)(void*)> memory_;
  Bucket* const buckets_;
  std::atomic<uint64_t> entries_{0}, asked_{0}, fenced_{0};
};

}  // namespace deut::tc

#endif  // TC_OUTCOMES_OUTCOME_TABLE_H_

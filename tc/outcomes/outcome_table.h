// OutcomeTable: what became of the transactions that were committed under an id, for clients whose answer was lost.
//
// Shape: buckets of kSlots slots, a ring each; who enters takes the next slot and puts out what is there (the bucket's oldest). Entries:
//   commit  committing -> committed | dropped (it did not commit after all)
//   fence   a question was asked and no commit found; -> answered (the asker was told so) | void (a commit was found after all)
// The race, ask against commit. Committer: *publish the commit entry, then look for a fence*; a fence found, it does not commit. Asker:
//   *publish the fence, then look (again) for a commit entry*; one found is waited for, and decides. All of it is sequentially consistent, so
//   at least one sees the other; if both do, the committer gives up, which the asker sees. So an id that was answered "not committed" never
//   commits. A commit entry comes before any fence: whose fence is seen may have been answered by a look that this one must repeat.
// Putting out: `horizon` of the bucket is raised above a commit's timestamp *before* it goes, and read *after* the slots: an asker that does not
//   find an id whose transaction cannot be older than the horizon knows that it was never there. `fence_horizon` does the same for fences: a
//   committer whose name may be older does not commit, as it may have been asked for.
// Lives: fences end with the process. No name that was made before this life's first timestamp commits in it (`fence_horizon` begins there).
// The log: commit records carry ids (NAMED COMMIT), and the log is kept beyond the redo start for their sake (RedoLogOptions::keep_time,
//   keep_bytes; a full disk ends that). Before it is cut, what lies below is forgotten here (Forget), and the horizon is logged; so the
//   table is rebuilt from whatever log there is.
// Model: integration/models/outcome.pml.
// Bounds: max_outcomes entries of about kEntryBytes, and what the log keeps. Fences go at the first cut after `window`, or with their bucket.
// Progress: publishing is wait-free but for a compare-and-swap per newcomer to the same slot. An asker waits for a commit that is being appended.
// Thread-safety: any thread; Recover before all others. Ownership: runtime and domain outlive it.
#ifndef TC_OUTCOMES_OUTCOME_TABLE_H_
#define TC_OUTCOMES_OUTCOME_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/transaction_id.h"
#include "common/runtime/runtime.h"
#include "common/sync/reclamation.h"
#include "protocol/transaction_service.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {

struct OutcomeTableOptions {
  size_t max_outcomes = size_t{1} << 20;
  Duration window = seconds(600);
  Timestamp first_timestamp{1};  // of this life
};

class OutcomeTable {
 public:
  static constexpr size_t kEntryBytes = 80;  // with what the heap adds

  OutcomeTable(const OutcomeTableOptions& options, Runtime& runtime, ReclamationDomain& domain);
  ~OutcomeTable();
  OutcomeTable(const OutcomeTable&) = delete;
  OutcomeTable& operator=(const OutcomeTable&) = delete;

  void Recover(const RecoveredLog& recovered);

  class Entry;
  // A transaction is about to commit: must come before its commit record is appended. ABORTED: it has been asked for, and must not commit.
  // INVALID_ARGUMENT: its id has been used, or its name is younger than itself. Otherwise Finish or Drop follows.
  Result<Entry*> BeginCommit(const TransactionName& name, Timestamp timestamp);
  // The commit record is appended. To be called before the transaction leaves the active ones (S2: until then the log is not cut below it).
  void Finish(Entry* entry, Lsn commit_lsn);
  void Drop(Entry* entry);

  // What became of it. A committed one may not be durable yet. `next` is the timestamp that the next transaction draws.
  // INVALID_ARGUMENT: the name is younger than that. DEADLINE_EXCEEDED: it is being committed.
  Result<OutcomeAnswer> Ask(const TransactionName& name, Timestamp next, Deadline deadline);

  // The log is going to be cut below `cut`. Answers the horizon to be logged before: ids of commits with earlier timestamps may be forgotten.
  Timestamp Forget(Lsn cut);

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

  static constexpr int kTagShift = 48;  // of an address less is used

  static uint64_t Mix(const TransactionId& id);
  // So that of other ids' entries most are passed by without a look at them.
  static uint64_t TagOf(const TransactionId& id) { return Mix(id) & 0xFFFF; }
  static uint64_t WordOf(const Entry* entry);
  static Entry* EntryOf(uint64_t word) { return reinterpret_cast<Entry*>(word & ((uint64_t{1} << kTagShift) - 1)); }
  Bucket& BucketOf(const TransactionId& id) { return buckets_[(Mix(id) >> 32) & mask_]; }
  // REQUIRES of these: a guard is held.
  void Publish(Bucket& bucket, Entry* entry);
  void PutOut(Bucket& bucket, std::atomic<uint64_t>& slot, uint64_t seen, Entry* replacement, bool* done);
  Entry* FindCommit(Bucket& bucket, const TransactionId& id, const Entry* except);
  Entry* FindFence(Bucket& bucket, const TransactionId& id);
  void DropReference(Entry* entry);

  void SetFinal(Entry* entry, uint32_t state);
  // The answer of a commit entry, once it has one; false: it was dropped. Drops the reference.
  Result<bool> AwaitCommit(Entry* entry, Deadline deadline, OutcomeAnswer* answer);

  const Duration window_;
  Runtime& runtime_;
  ReclamationDomain& domain_;
  size_t mask_;
  std::unique_ptr<Bucket[]> buckets_;
  std::atomic<uint64_t> entries_{0}, asked_{0}, fenced_{0};
};

}  // namespace deut::tc

#endif  // TC_OUTCOMES_OUTCOME_TABLE_H_

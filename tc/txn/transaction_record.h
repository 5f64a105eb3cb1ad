// TransactionRecord: the part of a transaction that other transactions see: its timestamp, its status word, its commit position, its write set.
// It is a leaf: versions and postings point to it, and it points to none of them except the posting that is part of it.
//
// Write set. It is made with the first key. It may be freed before the record: when the keys are in runs (S8), or no transaction needs them any
//   more. A thread that comes through a posting loads the pointer once and takes null for no keys. (R1 step 2: the pointer is stored before the
//   first key is counted, both sequentially consistent; a thread that sees no write set comes before that publication.)
// States of `status`, and which thread moves them:
//   active ─owner─► committing ─owner─► committed
//   active ─owner or reaper─► aborted            (R7: abort is this one compare-and-swap; versions and postings are unlinked later)
//   From committing only committed follows, or the end of the process (R9). The loser of the compare-and-swap from active obeys the state it
//   finds. `commit_lsn` is stored before `committed` (D4), so a thread that sees committed may read it.
// A thread that waits for the end of `committing` (R9) sets `awaited` and then waits on the status word. The committer stores the status, then
//   loads `awaited`, and wakes the waiters (both sequentially consistent).
// Lifetime (R7: the status outlives all versions and postings). `references` counts 1 for the owner and then the collector, 1 per version, 1 per
//   posting. The thread that unlinks a version or posting drops its reference. The thread that drops the last one retires the record through the
//   reclamation domain, so a reader that still holds a pointer under a guard is safe.
// The posting in the first range (most transactions write in one range only) is part of the record. It is linked at most once, never again after it
//   was unlinked, and is freed with the record, whose reference it held until then. So a walk of a list is as safe on it as on a posting that is
//   retired by itself.
// Thread-safety: any thread, within those rules.
#ifndef TC_TXN_TRANSACTION_RECORD_H_
#define TC_TXN_TRANSACTION_RECORD_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/sync/block_pool.h"
#include "common/sync/reclamation.h"
#include "tc/txn/bulk_bytes.h"
#include "tc/txn/write_set.h"

namespace deut::tc {

class Range;
class TransactionRecord;

// An element of a range's list (tc/mvcc/range_table.h). It stands for the keys that the transaction writes within the bounds of the range in which it
// was posted, wherever copies of it lie (P).
struct Posting : PoolAllocated {
  explicit Posting(TransactionRecord* of, const Range* in = nullptr) : transaction(of), origin(in) {}

  TransactionRecord* const transaction;
  // The range in which it was posted. Set before it is linked. Valid under a guard for a thread that has seen that the transaction is not collected:
  // until then the record holds a reference.
  const Range* origin;
  std::atomic<Posting*> next{nullptr};
};

enum class TransactionStatus : uint32_t { kActive, kCommitting, kCommitted, kAborted };

class TransactionRecord : public PoolAllocated {
 public:
  explicit TransactionRecord(Timestamp timestamp) : timestamp_(timestamp) {}
  ~TransactionRecord() { delete write_set_.load(std::memory_order_relaxed); }
  TransactionRecord(const TransactionRecord&) = delete;
  TransactionRecord& operator=(const TransactionRecord&) = delete;

  Timestamp timestamp() const { return timestamp_; }
  TransactionStatus status() const { return static_cast<TransactionStatus>(status_.load(std::memory_order_seq_cst)); }
  // REQUIRES: the caller has seen status() committed.
  Lsn commit_lsn() const { return Lsn{commit_lsn_.load(std::memory_order_relaxed)}; }

  // Both return true for the winner of the race from active.
  bool TryAbort() { return Move(TransactionStatus::kActive, TransactionStatus::kAborted); }
  bool TryStartCommit() { return Move(TransactionStatus::kActive, TransactionStatus::kCommitting); }
  // D4: the commit record's bytes are in the log buffer and its LSN is reserved.
  void FinishCommit(Lsn commit_lsn) {
    DEUT_DCHECK(status() == TransactionStatus::kCommitting);
    commit_lsn_.store(commit_lsn.value, std::memory_order_relaxed);
    status_.store(static_cast<uint32_t>(TransactionStatus::kCommitted), std::memory_order_seq_cst);
  }

  // R9. True if a thread may be waiting on the status word; the owner checks it after FinishCommit.
  void MarkAwaited() { awaited_.store(true, std::memory_order_seq_cst); }
  bool awaited() const { return awaited_.load(std::memory_order_seq_cst); }
  const std::atomic<uint32_t>& status_word() const { return status_; }

  // Calls `visit(const WriteItem&)` for every published item, if the write set still exists.
  template <typename Visit>
  void ForEachWrite(Visit&& visit) const {
    if (const WriteSet* const writes = write_set()) writes->ForEach(visit);
  }
  // Null: there is none yet, or it was freed. Valid under the guard that was held at the call.
  const WriteSet* write_set() const { return write_set_.load(std::memory_order_seq_cst); }
  WriteSet* write_set() { return write_set_.load(std::memory_order_seq_cst); }
  // Called by the owner only.
  WriteSet& MakeWriteSet() {
    WriteSet* writes = write_set_.load(std::memory_order_relaxed);
    if (writes == nullptr) {
      writes = new WriteSet;
      write_set_.store(writes, std::memory_order_seq_cst);
    }
    return *writes;
  }
  // Called by the collector only. REQUIRES: a guard.
  void ForgetWriteSet(ReclamationDomain& domain) {
    WriteSet* const writes = write_set_.exchange(nullptr, std::memory_order_seq_cst);
    if (writes != nullptr) domain.RetireObject(writes, sizeof(WriteSet) + writes->bytes());
  }

  void AddReference() { references_.fetch_add(1, std::memory_order_relaxed); }
  // For a thread that has found the record under a guard and holds no reference. False: the last one has been dropped already; then the caller sees
  // everything that was done before that (the keys are in runs).
  bool TryAddReference() {
    uint32_t seen = references_.load(std::memory_order_acquire);
    while (seen != 0) {
      if (references_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }
  // REQUIRES: a guard of `domain` is held.
  void DropReference(ReclamationDomain& domain) {
    const uint32_t before = references_.fetch_sub(1, std::memory_order_acq_rel);
    DEUT_DCHECK(before > 0);
    if (before == 1) domain.RetireObject(this, bytes());
  }

  // True if it has posted nothing and published no key, so that nothing has to be unlinked. Called by the owner only.
  bool nothing_published() const { return posted.empty() && write_set() == nullptr; }
  // Memory of the record, with its write set if that exists.
  size_t bytes() const {
    const WriteSet* const writes = write_set();
    return sizeof(*this) + (writes == nullptr ? 0 : sizeof(WriteSet) + writes->bytes());
  }

  // The posting that is part of the record; null: it has been linked. Called by the owner only.
  Posting* UnusedPosting() { return own_posting_.origin == nullptr ? &own_posting_ : nullptr; }
  bool Owns(const Posting* posting) const { return posting == &own_posting_; }

  // The ranges in which it has posted (P: their successors inherited it); each holds a reference to the range. Used by the owner until it hands the
  // finished record to the collector, which drops the references.
  absl::InlinedVector<Range*, 2> posted;
  uint64_t pinned_bytes = 0;  // S9: of record, write set, postings, versions, entries; used as `posted`
  std::unique_ptr<BulkBytes::Hold> bulk_hold;  // S9: of a bulk transaction; used as `posted`
  // Used by the collector only.
  TransactionRecord* next_finished = nullptr;
  // Set by the collector when the keys are in runs or no longer needed: from then on its postings are dead (they are unlinked in bulk, later).
  bool collected() const { return collected_.load(std::memory_order_acquire); }
  void set_collected() { collected_.store(true, std::memory_order_release); }

 private:
  bool Move(TransactionStatus from, TransactionStatus to) {
    auto expected = static_cast<uint32_t>(from);
    return status_.compare_exchange_strong(expected, static_cast<uint32_t>(to), std::memory_order_seq_cst);
  }

  const Timestamp timestamp_;
  std::atomic<uint32_t> status_{static_cast<uint32_t>(TransactionStatus::kActive)};
  std::atomic<bool> awaited_{false};
  std::atomic<bool> collected_{false};
  std::atomic<uint32_t> references_{1};
  std::atomic<uint64_t> commit_lsn_{0};
  std::atomic<WriteSet*> write_set_{nullptr};
  Posting own_posting_{this};
};

}  // namespace deut::tc

#endif  // TC_TXN_TRANSACTION_RECORD_H_

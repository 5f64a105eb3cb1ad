// TransactionRecord: what other transactions see of a transaction: its timestamp, its status word, its commit position, its write set.
// It is a leaf: versions and postings point to it, it points to nothing of theirs.
// The write set comes with the first key and may go before the record: when the transaction's keys are found elsewhere (S8: in runs) or nobody
//   needs them any more. Who comes through a posting loads it once and takes none for no keys. (R1 step 2: the pointer is stored before the first
//   key is counted, both sequentially consistent; who sees no write set comes before that publication.)
//
// States of `status`, and who moves them:
//   active ─owner─► committing ─owner─► committed
//   active ─owner or reaper─► aborted            (R7: abort is this one compare-and-swap; versions and postings are unlinked later)
//   From committing only committed follows, or the end of the process (R9). Whoever loses the compare-and-swap from active obeys
//   the state it finds. `commit_lsn` is stored before `committed` (D4), so whoever sees committed may read it.
// Whoever waits for the end of `committing` (R9) sets `awaited` and then waits on the status word; the committer stores the status, then looks at
//   `awaited`, and wakes them (both sequentially consistent).
// Lifetime (R7: the status outlives all versions and postings). `references` counts: 1 for the owner and then the collector, 1 per
//   version, 1 per posting. A version or posting drops its reference when it has been unlinked; whoever drops the last retires the
//   record through the reclamation domain, so readers that still hold a pointer under a guard are safe.
// The posting in the first range (most write in one only) is part of the record: linked once at most, never again after it was unlinked, and gone
//   with the record, whose reference it held until then. So who walks a list is as safe on it as on one that is retired by itself.
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

// In a list of a range's (tc/mvcc/range_table.h): it stands for what the transaction writes within the bounds of the range in which it was posted,
// wherever copies of it lie (P).
struct Posting : FromPool {
  explicit Posting(TransactionRecord* of, const Range* in = nullptr) : transaction(of), origin(in) {}

  TransactionRecord* const transaction;
  // Set before it is linked. Good, under a guard, for who has seen that the transaction is not collected: until then its record holds a reference.
  const Range* origin;
  std::atomic<Posting*> next{nullptr};
};

enum class TransactionStatus : uint32_t { kActive, kCommitting, kCommitted, kAborted };

class TransactionRecord : public FromPool {
 public:
  explicit TransactionRecord(Timestamp timestamp) : timestamp_(timestamp) {}
  ~TransactionRecord() { delete write_set_.load(std::memory_order_relaxed); }
  TransactionRecord(const TransactionRecord&) = delete;
  TransactionRecord& operator=(const TransactionRecord&) = delete;

  Timestamp timestamp() const { return timestamp_; }
  TransactionStatus status() const { return static_cast<TransactionStatus>(status_.load(std::memory_order_seq_cst)); }
  // REQUIRES: status() was seen to be committed.
  Lsn commit_lsn() const { return Lsn{commit_lsn_.load(std::memory_order_relaxed)}; }

  // True for the winner of the race from active.
  bool TryAbort() { return Move(TransactionStatus::kActive, TransactionStatus::kAborted); }
  bool TryStartCommit() { return Move(TransactionStatus::kActive, TransactionStatus::kCommitting); }
  // D4: the commit record's bytes are in the log buffer and its LSN is reserved.
  void FinishCommit(Lsn commit_lsn) {
    commit_lsn_.store(commit_lsn.value, std::memory_order_relaxed);
    status_.store(static_cast<uint32_t>(TransactionStatus::kCommitted), std::memory_order_seq_cst);
  }

  // R9. Whether somebody may be waiting on the status word; the owner asks after FinishCommit.
  void MarkAwaited() { awaited_.store(true, std::memory_order_seq_cst); }
  bool awaited() const { return awaited_.load(std::memory_order_seq_cst); }
  const std::atomic<uint32_t>& status_word() const { return status_; }

  // Calls `visit(const WriteItem&)` for what has been published and is still there.
  template <typename Visit>
  void ForEachWrite(Visit&& visit) const {
    if (const WriteSet* const writes = write_set()) writes->ForEach(visit);
  }
  // Null: none yet, or not any more. Good under the guard that was held at the call.
  const WriteSet* write_set() const { return write_set_.load(std::memory_order_seq_cst); }
  WriteSet* write_set() { return write_set_.load(std::memory_order_seq_cst); }
  // The owner's.
  WriteSet& MakeWriteSet() {
    WriteSet* writes = write_set_.load(std::memory_order_relaxed);
    if (writes == nullptr) {
      writes = new WriteSet;
      write_set_.store(writes, std::memory_order_seq_cst);
    }
    return *writes;
  }
  // The collector's. REQUIRES: a guard.
  void ForgetWriteSet(ReclamationDomain& domain) {
    WriteSet* const writes = write_set_.exchange(nullptr, std::memory_order_seq_cst);
    if (writes != nullptr) domain.RetireObject(writes, sizeof(WriteSet) + writes->bytes());
  }

  void AddReference() { references_.fetch_add(1, std::memory_order_relaxed); }
  // For who has found the record under a guard and holds no reference. False: the last one has been dropped already, and what was done before
  // that is seen (its keys are in runs).
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

  // It has posted nothing and published no key: nothing of it stands anywhere, to be taken out. The owner's question.
  bool left_nothing() const { return posted.empty() && write_set() == nullptr; }
  // With its write set, if that is there.
  size_t bytes() const {
    const WriteSet* const writes = write_set();
    return sizeof(*this) + (writes == nullptr ? 0 : sizeof(WriteSet) + writes->bytes());
  }

  // The one that is part of the record; null: it has been linked. The owner's.
  Posting* UnusedPosting() { return own_posting_.origin == nullptr ? &own_posting_ : nullptr; }
  bool Owns(const Posting* posting) const { return posting == &own_posting_; }

  // The ranges in which it has posted (P: their successors inherited it), each counted by a reference. The owner's until it hands the finished
  // record to the collector, who gives the references back.
  absl::InlinedVector<Range*, 2> posted;
  uint64_t pinned_bytes = 0;  // S9: counted for it: itself, write set, postings, versions, entries; as `posted`
  std::unique_ptr<BulkBytes::Hold> bulk_hold;  // S9: of a bulk transaction; as `posted`
  // The collector's own.
  TransactionRecord* next_finished = nullptr;
  // Set by the collector, when its keys are in runs or nobody needs them: its postings count as gone (they are unlinked in bulk, later).
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

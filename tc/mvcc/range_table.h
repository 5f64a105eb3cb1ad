// Logical ranges: the TC's disjoint partition of a table's key space, and per range the last read time and the postings of intents to
// update (paper, sections 2.3, 3.1-3.3; rules R1-R3, P, T1).
//
// Range. `last_read`: the latest timestamp of a transaction that *tried* to read the range (R2); only rises. `postings`: list of IX and SIX
//   postings, pushed by compare-and-swap at the head, in no order; unlinked by one sweeper at a time.
// R1 writer:  push posting ... publish key ... install ... then load last_read: later than ts -> abort.
// R2 reader:  raise last_read (compare-and-swap), then load the postings' head and walk.
//   In the total order either the writer's posting and publication precede the reader's look, or the reader's raise precedes the
//   writer's check. So the later of the two finds the other. Both sides are sequentially consistent; nothing weaker suffices.
// R3 SIX:     push posting, raise, walk, then check last_read <= ts.
// States of a range (P): made -> current -> sealed -> replaced. Sealing sets a bit in last_read (no later raise succeeds, so the value is
//   final), then one in the head of the postings (no later post succeeds; only collected ones leave). tc/mvcc/range_partition.h has the steps.
// The postings of a replaced range are dropped when no thread can see the range any more. The thread that frees it drops them, unless the
//   collector is sweeping the range: then the collector does. `sweeper_`: idle -> sweeping -> idle, or -> dropped for good.
// A posting holds one reference to its transaction record; a transaction's first posting is part of that record. Ranges are reference-counted: one
//   reference of the map it is in, one of every transaction record that names it in `posted`, and those of the collector's book. So while any of
//   them knows a range's address, it names that range alone. When the last reference is dropped, the range is retired.
// Map. An immutable sorted array of ranges, which it does not own.
// Thread-safety: any thread under a guard.
#ifndef TC_MVCC_RANGE_TABLE_H_
#define TC_MVCC_RANGE_TABLE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

class Range;
class RangePartition;

class Range {
 public:
  // `partition`: the owner; null in tests of single ranges. `copies`: counts the copied postings (P) that lie in ranges; null: not counted.
  Range(std::string low, std::string high, Timestamp last_read, const RangePartition* partition = nullptr,
        std::shared_ptr<std::atomic<uint64_t>> copies = nullptr)
      : low_(std::move(low)),
        high_(std::move(high)),
        partition_(partition),
        copies_(std::move(copies)),
        last_read_(last_read.value) {}
  ~Range();

  // [low, high); an empty high is above every key.
  bool Contains(std::string_view key) const { return key >= low_ && (high_.empty() || key < high_); }
  bool Overlaps(const Range& other) const {
    return (high_.empty() || other.low_ < high_) && (other.high_.empty() || low_ < other.high_);
  }
  const std::string& low() const { return low_; }
  const std::string& high() const { return high_; }
  const RangePartition* partition() const { return partition_; }

  Timestamp last_read() const { return Timestamp{last_read_.load(std::memory_order_seq_cst) & ~kSealed}; }
  // As last_read, but nothing if the range is sealed, because another range may have its keys by then (P). An unsealed range is current.
  std::optional<Timestamp> last_read_unless_sealed() const {
    const uint64_t seen = last_read_.load(std::memory_order_seq_cst);
    if ((seen & kSealed) != 0) return std::nullopt;
    return Timestamp{seen};
  }
  // R2: afterwards last_read is at least `timestamp`. False: the range is sealed.
  [[nodiscard]] bool RaiseLastRead(Timestamp timestamp);

  // R1 step 1. The caller owns the active transaction and posts it at most once per range. False: the range is sealed.
  [[nodiscard]] bool Post(TransactionRecord* transaction);

  // Calls `visit(TransactionRecord&)` for every posting that is linked when the call begins, until it returns false.
  template <typename Visit>
  void ForEachPosting(Visit&& visit) const {
    for (const Posting* p = first_posting(); p != nullptr; p = p->next.load(std::memory_order_seq_cst)) {
      if (!visit(*p->transaction)) return;
    }
  }
  // Prefetches the cache line on which writers and readers of the range meet.
  void Prefetch() const { __builtin_prefetch(&last_read_); }
  const Posting* first_posting() const { return First(postings_.load(std::memory_order_seq_cst)); }

  // Unlinks and retires the postings for whose transaction `gone(record)` is true. Does nothing if another thread is sweeping the range.
  // REQUIRES: a guard.
  template <typename Gone>
  void RemovePostings(ReclamationDomain& domain, Gone&& gone) {
    if (!StartSweep()) return;
    Posting* previous = nullptr;
    Posting* posting = First(postings_.load(std::memory_order_seq_cst));
    while (posting != nullptr) {
      Posting* const next = posting->next.load(std::memory_order_seq_cst);
      __builtin_prefetch(next);  // while the load of this posting's transaction is waited for
      if (!gone(*posting->transaction)) {
        previous = posting;
      } else if (previous != nullptr) {
        previous->next.store(next, std::memory_order_seq_cst);
        RetirePosting(posting, domain);
      } else if (UnlinkFirst(posting, next)) {
        RetirePosting(posting, domain);
      } else {
        // Another posting was pushed before it, or the head was marked: start over from the new head.
        posting = First(postings_.load(std::memory_order_seq_cst));
        continue;
      }
      posting = next;
    }
    EndSweep(domain);
  }

  // Approximate number of postings.
  uint64_t posting_count() const {
    const uint64_t removed = removed_.load(std::memory_order_relaxed);
    return std::max(posted() + copied_.load(std::memory_order_relaxed), removed) - removed;
  }
  // Number of postings ever pushed here, without copies; shows where the updates are. Only rises.
  uint64_t posted() const { return posted_.load(std::memory_order_relaxed); }
  // Counts a transaction that lost a conflict over this range (approximate).
  void CountConflict() { conflicts_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t conflicts() const { return conflicts_.load(std::memory_order_relaxed); }

  // P, for RangePartition. Seal first, then CloseToPosts; both are idempotent.
  bool sealed() const { return (last_read_.load(std::memory_order_seq_cst) & kSealed) != 0; }
  void Seal();
  void CloseToPosts();
  // For a range that is being made: nothing can be posted before TryFill.
  void StartUnfilled() { postings_.store(kUnfilled, std::memory_order_relaxed); }
  bool unfilled() const { return postings_.load(std::memory_order_seq_cst) == kUnfilled; }
  // Installs the list. False: the range has been filled already, and the caller still owns the list.
  bool TryFill(Posting* first, uint64_t count);
  // Drops all postings of a replaced range that no other thread can see. REQUIRES: a guard.
  void DropPostings(ReclamationDomain& domain);

  // REQUIRES: the caller holds a reference, or a guard under which it found the range in its partition's map.
  void AddReference() { references_.fetch_add(1, std::memory_order_relaxed); }
  // REQUIRES: a guard.
  void DropReference(ReclamationDomain& domain) { DropReferences(1, domain); }
  void DropReferences(uint32_t count, ReclamationDomain& domain) {
    if (references_.fetch_sub(count, std::memory_order_acq_rel) == count) domain.RetireObject(this);
  }

 private:
  static constexpr uint64_t kSealed = uint64_t{1} << 63;
  // Flags in the word of the head.
  static constexpr uintptr_t kMarked = 1;
  static constexpr uintptr_t kUnfilled = 2;
  enum Sweeper : uint32_t { kIdle, kSweeping, kDropped };

  static Posting* First(uintptr_t head) { return reinterpret_cast<Posting*>(head & ~(kMarked | kUnfilled)); }
  bool UnlinkFirst(Posting* first, Posting* next);
  void RetirePosting(Posting* posting, ReclamationDomain& domain);
  bool StartSweep();
  void EndSweep(ReclamationDomain& domain);
  void DropAll(ReclamationDomain& domain);

  const std::string low_;
  const std::string high_;
  const RangePartition* const partition_;
  const std::shared_ptr<std::atomic<uint64_t>> copies_;
  // On one cache line: a writer that posts loads last_read_ afterwards, and a reader that raises last_read_ loads the postings.
  alignas(64) std::atomic<uint64_t> last_read_;
  std::atomic<uintptr_t> postings_{0};
  std::atomic<uint64_t> posted_{0};
  std::atomic<uint32_t> references_{1};
  alignas(64) std::atomic<uint32_t> sweeper_{kIdle};
  std::atomic<uint64_t> removed_{0};
  std::atomic<uint64_t> copied_{0};
  std::atomic<uint64_t> conflicts_{0};
};

// All ranges of a table, ascending, without gaps: the first begins at the empty key, the last ends above every key.
// A dense array holds eight bytes of each bound, enough to tell most bounds apart: a search reads ranges only where these are equal.
class RangeMap {
 public:
  // REQUIRES: `ranges` are all ranges of a table, in order.
  explicit RangeMap(std::vector<Range*> ranges);

  size_t size() const { return ranges_.size(); }
  Range& at(size_t index) const { return *ranges_[index]; }
  const std::vector<Range*>& ranges() const { return ranges_; }
  // The range that contains the key.
  size_t IndexOf(std::string_view key) const;
  // The range that contains the keys just below `bound` (empty = the last range).
  size_t IndexBelow(std::string_view bound) const;
  // Retires all postings. REQUIRES: a guard; no transaction is open.
  void RemoveAllPostings(ReclamationDomain& domain) const;

 private:
  // Number of ranges, without the first, that begin before the key, or (`at`) before or at it.
  template <bool at>
  size_t CountBefore(std::string_view key) const;

  const std::vector<Range*> ranges_;
  std::string_view prefix_;  // of all bounds but the first, empty one; points into the last range
  std::vector<uint64_t>
      heads_;  // the first bytes behind the prefix of each bound but the first, as numbers that sort like them
};

}  // namespace deut::tc

#endif  // TC_MVCC_RANGE_TABLE_H_

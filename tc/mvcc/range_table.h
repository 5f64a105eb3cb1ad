// Logical ranges: the TC's disjoint partition of a table's key space, and per range the last read time and the postings of intents to
// update (paper, sections 2.3, 3.1-3.3; rules R1-R3, T1).
//
// Range. `last_read`: the latest timestamp at which somebody *tried* to read the range (R2); only rises. `postings`: list of
//   IX and SIX postings, pushed by compare-and-swap at the head, in no order; unlinked by the collector alone.
// R1 writer:  push posting ... publish key ... install ... then load last_read: later than ts -> abort.
// R2 reader:  raise last_read (compare-and-swap), then load the postings' head and walk.
//   In the total order either the writer's posting and publication precede the reader's look, or the reader's raise precedes the
//   writer's check. So whichever comes second finds the other. Both sides: sequentially consistent; nothing weaker will do.
// R3 SIX:     push posting, raise, walk, then check last_read <= ts.
// Map. An immutable sorted array of ranges per table behind one atomic pointer. A new map is swung in while no transaction is open
//   (Repartitioner); the old one, with its ranges, is retired through the reclamation domain.
// A posting holds one reference to its transaction record. Ownership: a range owns its postings, a map its ranges.
// Thread-safety: any thread under a guard; RemovePostings from one thread at a time, and not while a map is being exchanged.
#ifndef TC_MVCC_RANGE_TABLE_H_
#define TC_MVCC_RANGE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/txn/transaction_record.h"

namespace deut::tc {

struct Posting {
  TransactionRecord* const transaction;
  std::atomic<Posting*> next{nullptr};
};

class Range {
 public:
  Range(std::string low, std::string high, Timestamp last_read)
      : low_(std::move(low)), high_(std::move(high)), last_read_(last_read.value) {}
  ~Range();

  // [low, high); an empty high is above every key.
  const std::string& low() const { return low_; }
  const std::string& high() const { return high_; }

  Timestamp last_read() const { return Timestamp{last_read_.load(std::memory_order_seq_cst)}; }
  // R2: at least `timestamp` afterwards.
  void RaiseLastRead(Timestamp timestamp);

  // R1 step 1. The caller posts each transaction at most once per range.
  void Post(TransactionRecord* transaction);

  // Calls `visit(TransactionRecord&)` for every posting there is after the call began; stops when it answers false.
  template <typename Visit>
  void ForEachPosting(Visit&& visit) const {
    for (const Posting* p = postings_.load(std::memory_order_seq_cst); p != nullptr;
         p = p->next.load(std::memory_order_seq_cst)) {
      if (!visit(*p->transaction)) return;
    }
  }

  // Unlinks and retires the postings whose transaction `gone(record)` says is done with. REQUIRES: a guard; the collector's thread.
  template <typename Gone>
  void RemovePostings(ReclamationDomain& domain, Gone&& gone) {
    Posting* previous = nullptr;
    Posting* posting = postings_.load(std::memory_order_seq_cst);
    while (posting != nullptr) {
      Posting* const next = posting->next.load(std::memory_order_seq_cst);
      if (!gone(*posting->transaction)) {
        previous = posting;
      } else if (previous != nullptr) {
        previous->next.store(next, std::memory_order_seq_cst);
        RetirePosting(posting, domain);
      } else if (UnlinkFirst(posting, next)) {
        RetirePosting(posting, domain);
      } else {
        // Something was posted before it: start over from the new head (it is met again, now with a predecessor).
        posting = postings_.load(std::memory_order_seq_cst);
        continue;
      }
      posting = next;
    }
  }

  uint32_t posting_count() const { return count_.load(std::memory_order_relaxed); }

 private:
  bool UnlinkFirst(Posting* first, Posting* next);
  void RetirePosting(Posting* posting, ReclamationDomain& domain);

  const std::string low_;
  const std::string high_;
  alignas(64) std::atomic<uint64_t> last_read_;
  alignas(64) std::atomic<Posting*> postings_{nullptr};
  std::atomic<uint32_t> count_{0};
};

// All ranges of a table, ascending, without gaps: the first begins at the empty key, the last ends above every key.
class RangeMap {
 public:
  // `cuts`: ascending, distinct, non-empty keys.
  RangeMap(const std::vector<std::string>& cuts, Timestamp last_read);

  size_t size() const { return ranges_.size(); }
  Range& at(size_t index) const { return *ranges_[index]; }
  // The range that contains the key.
  size_t IndexOf(std::string_view key) const;
  // The range that contains the keys just below `bound` (empty = the last range).
  size_t IndexBelow(std::string_view bound) const;
  // The latest last_read of all ranges.
  Timestamp MaxLastRead() const;
  // Retires all postings. REQUIRES: a guard; no transaction is open (the map is being replaced, or the TC ends).
  void RemoveAllPostings(ReclamationDomain& domain) const;

 private:
  std::vector<std::unique_ptr<Range>> ranges_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_RANGE_TABLE_H_

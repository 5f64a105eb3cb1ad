// PostingBook: records the ranges in which postings of collected transactions are still linked, and unlinks them (rules S6, P).
//
// Postings are unlinked in bulk: from a range when enough of its postings are dead. So the cost of walking its list is in proportion to those
//   unlinked, for any backlog. Add makes the range due when that may be so. So a sweep examines the due ranges, not the whole book.
// P: a count for a range that has been replaced moves to its successors, which have copies of the postings. If a range is sealed after postings were
//   unlinked from it, it stays in the book: the thread that copied may have seen those postings before. Each sweep also examines a few ranges in
//   turn, and moves the counts of those that were replaced. Until then the book keeps the range, and the copies stay where they are.
// A range leaves the book only when CheckNextRanges comes to it, so each range of the book is in `check_queue_` once. The book holds at least one
//   reference to each of its ranges. It drops references that came with postings together: the counter is on the cache line that a posting writer
//   writes to.
// Thread-safety: one thread. Ownership: references, as above. REQUIRES at destruction: everything was swept.
#ifndef TC_MVCC_POSTING_BOOK_H_
#define TC_MVCC_POSTING_BOOK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/range_table.h"

namespace deut::tc {

class PostingBook {
 public:
  // Postings of collected transactions that a range may keep before they are unlinked.
  static constexpr uint32_t kSweepPostings = 16;
  // Ranges that one sweep examines in turn.
  static constexpr size_t kCheckedPerSweep = 32;

  explicit PostingBook(ReclamationDomain& domain) : domain_(domain) {}
  ~PostingBook();
  PostingBook(const PostingBook&) = delete;
  PostingBook& operator=(const PostingBook&) = delete;

  // Counts one more posting of a collected transaction in the range. Takes over the caller's reference to the range. REQUIRES: a guard.
  void Count(Range* range);
  // Unlinks the postings of due ranges, and of the next ranges of the check queue; with `all` those of every range.
  void Sweep(bool all);
  // T1: the table of these ranges is being freed. Drops the references to all of its ranges, including replaced ones.
  // REQUIRES: no further posting in them will be counted.
  void Forget(const RangePartition& partition);

  size_t ranges() const { return book_.size(); }

 private:
  struct DeadPostings {
    uint32_t postings = 0;    // of collected transactions, still linked
    uint32_t references = 0;  // to the range, held by the book
    bool due = false;         // the range is in due_
  };

  // Adds to the range's count and returns its entry. REQUIRES: for a new entry the caller adds a reference to it.
  DeadPostings& Add(Range* range, uint32_t postings);
  // Drops all references but `kept`. REQUIRES: a guard.
  void GiveBack(Range* range, DeadPostings* dead, uint32_t kept);
  // Unlinks the range's dead postings if that is worth it, or moves its count to its successors. True: the count was moved.
  bool UnlinkOrHandOn(Range* range, bool all);
  // Handles the next `count` ranges of the book, at most those in it at the call. True: a count was moved to successors.
  bool CheckNextRanges(size_t count, bool all);
  void CountInSuccessors(const Range& range, uint32_t postings);

  ReclamationDomain& domain_;
  absl::flat_hash_map<Range*, DeadPostings> book_;
  std::deque<Range*> check_queue_;
  std::vector<Range*> due_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_POSTING_BOOK_H_

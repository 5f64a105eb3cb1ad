// PostingBook: in which ranges postings of collected transactions still lie, and their unlinking (rules S6, P).
//
// Postings are unlinked in bulk: of a range when so many are gone that walking its list costs in proportion to what is unlinked, whatever the
//   backlog is. Who counts a posting makes the range due when that may be so, so a sweep looks at what is due, not at the whole book.
// P: what was counted for a range that has been replaced is counted for its successors, which have copies. A range that is sealed after
//   postings were unlinked from it remains in the book: who copies may have met them before. Whether a range of the book has been replaced
//   is looked at in turn, a few ranges a sweep: until then the book keeps it, and copies of what was counted remain where they are.
// A range leaves the book in its turn only, so each range of the book is once in `turns_`. Each holds references to its range, at least one; those
//   that come with postings are given back together, because the line that counts them is the one that who posts writes to.
// Thread-safety: one thread. Ownership: see above; REQUIRES at its end: everything was swept.
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
  // Ranges that are looked at in turn by one sweep.
  static constexpr size_t kTurns = 32;

  explicit PostingBook(ReclamationDomain& domain) : domain_(domain) {}
  ~PostingBook();
  PostingBook(const PostingBook&) = delete;
  PostingBook& operator=(const PostingBook&) = delete;

  // One more posting of the range is of a collected transaction. Takes over the caller's reference to the range. REQUIRES: a guard.
  void Count(Range* range);
  // Unlinks what is due, or (`all`) whatever there is.
  void Sweep(bool all);
  // T1: the table of these ranges goes. Gives back the references to all of its ranges, those that were replaced, too.
  // REQUIRES: no posting in them is counted any more.
  void Forget(const RangePartition& partition);

  size_t ranges() const { return book_.size(); }

 private:
  struct Gone {
    uint32_t postings = 0;    // of collected transactions, still linked
    uint32_t references = 0;  // to the range, that are the book's
    bool due = false;         // is in due_
  };

  // The range's entry; if it is new it wants a reference.
  Gone& Add(Range* range, uint32_t postings);
  // Gives back all references but `kept`. REQUIRES: a guard.
  void GiveBack(Range* range, Gone* gone, uint32_t kept);
  // Unlinks or hands on what is counted for the range, if that is worth it. True: it was handed on to its successors.
  bool LookAt(Range* range, bool all);
  // The next `turns` of those that were in the book at the call. True: something was handed on.
  bool TakeTurns(size_t turns, bool all);
  void CountInSuccessors(const Range& range, uint32_t postings);

  ReclamationDomain& domain_;
  absl::flat_hash_map<Range*, Gone> book_;
  std::deque<Range*> turns_;
  std::vector<Range*> due_;
};

}  // namespace deut::tc

#endif  // TC_MVCC_POSTING_BOOK_H_

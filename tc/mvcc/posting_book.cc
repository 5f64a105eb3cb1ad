#include "tc/mvcc/posting_book.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/range_partition.h"

namespace deut::tc {

PostingBook::~PostingBook() { DEUT_CHECK(book_.empty()); }

bool PostingBook::Add(Range* range, uint32_t postings) {
  const auto [entry, added] = book_.try_emplace(range);
  Gone& gone = entry->second;
  if (added) turns_.push_back(range);
  gone.postings += postings;
  if (gone.postings >= kSweepPostings && !std::exchange(gone.due, true)) due_.push_back(range);
  return added;
}

void PostingBook::Count(Range* range) {
  if (!Add(range, 1)) range->DropReference(domain_);  // the entry has one
}

void PostingBook::Sweep(bool all) {
  bool handed_on = false;
  do {  // again: what it was handed on to may have been replaced, too
    for (Range* const range : std::exchange(due_, {})) {
      book_.find(range)->second.due = false;
      LookAt(range, false);
    }
    handed_on = TakeTurns(all ? turns_.size() : kTurns, all);
  } while (all && handed_on);
}

bool PostingBook::TakeTurns(size_t turns, bool all) {
  bool handed_on = false;
  for (turns = std::min(turns, turns_.size()); turns > 0; --turns) {
    Range* const range = turns_.front();
    turns_.pop_front();
    if (LookAt(range, all)) handed_on = true;
    const auto entry = book_.find(range);
    if (entry->second.postings != 0 || entry->second.due) {
      turns_.push_back(range);
      continue;
    }
    book_.erase(entry);
    ReclamationDomain::Guard guard(domain_);
    range->DropReference(domain_);
  }
  return handed_on;
}

bool PostingBook::LookAt(Range* range, bool all) {
  DEUT_POINT("posting_book.look");
  const uint32_t gone = book_.find(range)->second.postings;
  if (gone == 0) return false;
  ReclamationDomain::Guard guard(domain_);
  if (range->sealed() && !range->partition()->Holds(*range)) {
    book_.find(range)->second.postings = 0;
    CountInSuccessors(*range, gone);
    return true;
  }
  if (!all && gone < std::max<uint64_t>(kSweepPostings, range->posting_count() / 2)) return false;
  range->RemovePostings(domain_, [](const TransactionRecord& record) {
    return record.collected() || DEUT_OMITTED("S6.posting_collected");
  });
  // Sealed: its copies may have what has just been unlinked here.
  if (!range->sealed() || DEUT_OMITTED("P.sealed_after")) book_.find(range)->second.postings = 0;
  return false;
}

void PostingBook::CountInSuccessors(const Range& range, uint32_t postings) {
  const RangeMap& map = range.partition()->map();
  const size_t last = map.IndexBelow(range.high());
  for (size_t i = map.IndexOf(range.low()); i <= last && !DEUT_OMITTED("P.count_copies"); ++i) {
    if (map.at(i).first_posting() == nullptr) continue;  // it was filled before it came into the map
    if (Add(&map.at(i), postings)) map.at(i).AddReference();
  }
}

}  // namespace deut::tc

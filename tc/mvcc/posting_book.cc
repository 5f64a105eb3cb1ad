#include "tc/mvcc/posting_book.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/range_partition.h"

namespace deut::tc {

PostingBook::~PostingBook() { DEUT_CHECK(book_.empty()); }

PostingBook::DeadPostings& PostingBook::Add(Range* range, uint32_t postings) {
  const auto [entry, added] = book_.try_emplace(range);
  DeadPostings& dead = entry->second;
  if (added) check_queue_.push_back(range);
  dead.postings += postings;
  if (dead.postings >= kSweepPostings && !std::exchange(dead.due, true)) due_.push_back(range);
  return dead;
}

void PostingBook::Count(Range* range) { ++Add(range, 1).references; }

void PostingBook::GiveBack(Range* range, DeadPostings* dead, uint32_t kept) {
  DEUT_CHECK(dead->references >= kept);
  const uint32_t more = dead->references - kept;
  dead->references = kept;
  if (more != 0) range->DropReferences(more, domain_);
}

void PostingBook::Sweep(bool all) {
  bool handed_on = false;
  do {  // again: the successors to which counts were moved may have been replaced, too
    for (Range* const range : std::exchange(due_, {})) {
      const auto entry = book_.find(range);
      DEUT_CHECK(entry != book_.end());  // a range leaves the book only when it is not due
      DeadPostings& dead = entry->second;
      dead.due = false;
      {
        ReclamationDomain::Guard guard(domain_);
        GiveBack(range, &dead, 1);
      }
      UnlinkOrHandOn(range, false);
    }
    handed_on = CheckNextRanges(all ? check_queue_.size() : kCheckedPerSweep, all);
  } while (all && handed_on);
  DEUT_CHECK(check_queue_.size() == book_.size());  // each range of the book is in the queue once
}

void PostingBook::Forget(const RangePartition& partition) {
  if (book_.empty()) return;
  const auto of_partition = [&](const Range* range) { return range->partition() == &partition; };
  std::erase_if(check_queue_, of_partition);
  std::erase_if(due_, of_partition);
  ReclamationDomain::Guard guard(domain_);
  absl::erase_if(book_, [&](auto& entry) {
    if (!of_partition(entry.first)) return false;
    GiveBack(entry.first, &entry.second, 0);
    return true;
  });
  DEUT_CHECK(check_queue_.size() == book_.size());
}

bool PostingBook::CheckNextRanges(size_t count, bool all) {
  bool handed_on = false;
  for (count = std::min(count, check_queue_.size()); count > 0; --count) {
    Range* const range = check_queue_.front();
    check_queue_.pop_front();
    if (UnlinkOrHandOn(range, all)) handed_on = true;
    const auto entry = book_.find(range);
    if (entry->second.postings != 0 || entry->second.due) {
      check_queue_.push_back(range);
      continue;
    }
    ReclamationDomain::Guard guard(domain_);
    GiveBack(range, &entry->second, 0);
    book_.erase(entry);
  }
  return handed_on;
}

bool PostingBook::UnlinkOrHandOn(Range* range, bool all) {
  DEUT_POINT("posting_book.look");
  DEUT_DCHECK(book_.find(range)->second.references > 0);  // else another range may be at its address by now
  const uint32_t dead = book_.find(range)->second.postings;
  if (dead == 0) return false;
  ReclamationDomain::Guard guard(domain_);
  if (range->sealed() && !range->partition()->Holds(*range)) {
    book_.find(range)->second.postings = 0;
    CountInSuccessors(*range, dead);
    return true;
  }
  if (!all && dead < std::max<uint64_t>(kSweepPostings, range->posting_count() / 2)) return false;
  range->RemovePostings(domain_, [](const TransactionRecord& record) {
    return record.collected() || DEUT_OMITTED("S6.posting_collected");
  });
  // If it is sealed, its copies may contain postings that were just unlinked here, so the count stays until it moves to the successors.
  if (!range->sealed() || DEUT_OMITTED("P.sealed_after")) book_.find(range)->second.postings = 0;
  return false;
}

void PostingBook::CountInSuccessors(const Range& range, uint32_t postings) {
  const RangeMap& map = range.partition()->map();
  const size_t last = map.IndexBelow(range.high());
  for (size_t i = map.IndexOf(range.low()); i <= last && DEUT_STEP("P.count_copies"); ++i) {
    if (map.at(i).first_posting() == nullptr) continue;  // it has no copies: it was filled before it came into the map
    DeadPostings& dead = Add(&map.at(i), postings);
    if (dead.references == 0) {
      map.at(i).AddReference();
      dead.references = 1;
    }
  }
}

}  // namespace deut::tc

#include "tc/mvcc/range_table.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {

Range::~Range() { DEUT_CHECK(First(postings_.load(std::memory_order_relaxed)) == nullptr); }

bool Range::RaiseLastRead(Timestamp timestamp) {
  uint64_t seen = last_read_.load(std::memory_order_seq_cst);
  while ((seen & kSealed) == 0 && seen < timestamp.value) {
    DEUT_POINT("range.raise.before_cas");
    if (DEUT_CAS_FAILS("range.raise.cas")) {
      seen = last_read_.load(std::memory_order_seq_cst);
      continue;
    }
    if (last_read_.compare_exchange_weak(seen, timestamp.value, std::memory_order_seq_cst)) return true;
  }
  return (seen & kSealed) == 0;
}

bool Range::Post(TransactionRecord* transaction) {
  uintptr_t head = postings_.load(std::memory_order_seq_cst);
  if ((head & kMarked) != 0) return false;
  auto* posting = new Posting(transaction, this);
  for (;;) {
    posting->next.store(First(head), std::memory_order_relaxed);
    DEUT_POINT("range.post.before_cas");
    if (DEUT_CAS_FAILS("range.post.cas")) {
      head = postings_.load(std::memory_order_seq_cst);
    } else if (postings_.compare_exchange_weak(head, reinterpret_cast<uintptr_t>(posting), std::memory_order_seq_cst)) {
      break;
    }
    if ((head & kMarked) != 0) {
      delete posting;
      return false;
    }
  }
  // The posting's own. Until now, and as long as the transaction is active, the owner's does.
  transaction->AddReference();
  posted_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Range::Seal() {
  if (!DEUT_OMITTED("P.seal")) last_read_.fetch_or(kSealed, std::memory_order_seq_cst);
}

void Range::Mark() {
  if (!DEUT_OMITTED("P.mark")) postings_.fetch_or(kMarked, std::memory_order_seq_cst);
}

bool Range::TryFill(Posting* first, uint64_t count) {
  uintptr_t unfilled = kUnfilled;
  // S9: counted before anybody can unlink one of them.
  const bool counts = copies_ != nullptr && !DEUT_OMITTED("S9.count_copies");
  if (counts) copies_->fetch_add(count, std::memory_order_relaxed);
  DEUT_POINT("range.fill.before_cas");
  if (DEUT_CAS_FAILS("range.fill.cas") ||
      !postings_.compare_exchange_strong(unfilled, reinterpret_cast<uintptr_t>(first), std::memory_order_seq_cst)) {
    if (counts) copies_->fetch_sub(count, std::memory_order_relaxed);
    return false;
  }
  copied_.store(count, std::memory_order_relaxed);
  return true;
}

bool Range::UnlinkFirst(Posting* first, Posting* next) {
  uintptr_t expected = postings_.load(std::memory_order_seq_cst);
  if (First(expected) != first) return false;
  DEUT_POINT("range.unlink.before_cas");
  const uintptr_t wanted = reinterpret_cast<uintptr_t>(next) | (expected & kMarked);
  return !DEUT_CAS_FAILS("range.unlink.cas") &&
         postings_.compare_exchange_strong(expected, wanted, std::memory_order_seq_cst);
}

void Range::RetirePosting(Posting* posting, ReclamationDomain& domain) {
  removed_.fetch_add(1, std::memory_order_relaxed);
  // A copy lies elsewhere than where it was posted. (The origin was alive when this range was filled, so it was at another address.)
  if (posting->origin != this && copies_ != nullptr && !DEUT_OMITTED("S9.count_copies")) {
    copies_->fetch_sub(1, std::memory_order_relaxed);
  }
  posting->transaction->DropReference(domain);
  domain.RetireObject(posting);
}

bool Range::StartSweep() {
  uint32_t idle = kIdle;
  return sweeper_.compare_exchange_strong(idle, kSweeping, std::memory_order_seq_cst);
}

void Range::EndSweep(ReclamationDomain& domain) {
  uint32_t sweeping = kSweeping;
  DEUT_POINT("range.end_sweep.before_cas");
  if (!sweeper_.compare_exchange_strong(sweeping, kIdle, std::memory_order_seq_cst)) DropAll(domain);
}

void Range::DropPostings(ReclamationDomain& domain) {
  if (sweeper_.exchange(kDropped, std::memory_order_seq_cst) == kIdle) DropAll(domain);
}

void Range::DropAll(ReclamationDomain& domain) {
  Posting* posting = First(postings_.exchange(kMarked, std::memory_order_seq_cst));
  while (posting != nullptr) {
    Posting* const next = posting->next.load(std::memory_order_relaxed);
    RetirePosting(posting, domain);
    posting = next;
  }
}

RangeMap::RangeMap(std::vector<Range*> ranges) : ranges_(std::move(ranges)) {
  DEUT_CHECK(!ranges_.empty() && ranges_.front()->low().empty() && ranges_.back()->high().empty());
  for (size_t i = 1; i < ranges_.size(); ++i) DEUT_DCHECK(ranges_[i - 1]->high() == ranges_[i]->low());
}

size_t RangeMap::IndexOf(std::string_view key) const {
  // The last range whose low is <= key; the first one's low is the empty key.
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), key,
                                      [](std::string_view k, const Range* range) { return k < range->low(); });
  return static_cast<size_t>(after - ranges_.begin()) - 1;
}

size_t RangeMap::IndexBelow(std::string_view bound) const {
  if (bound.empty()) return ranges_.size() - 1;
  const auto first = std::lower_bound(ranges_.begin(), ranges_.end(), bound,
                                      [](const Range* range, std::string_view k) { return range->low() < k; });
  return static_cast<size_t>(first - ranges_.begin()) - 1;
}

void RangeMap::RemoveAllPostings(ReclamationDomain& domain) const {
  for (Range* range : ranges_) range->RemovePostings(domain, [](const TransactionRecord&) { return true; });
}

}  // namespace deut::tc

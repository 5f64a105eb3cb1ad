#include "tc/mvcc/range_table.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {

Range::~Range() { DEUT_CHECK(postings_.load(std::memory_order_relaxed) == nullptr); }

void Range::RaiseLastRead(Timestamp timestamp) {
  uint64_t seen = last_read_.load(std::memory_order_seq_cst);
  while (seen < timestamp.value) {
    DEUT_POINT("range.raise.before_cas");
    if (DEUT_CAS_FAILS("range.raise.cas")) {
      seen = last_read_.load(std::memory_order_seq_cst);
      continue;
    }
    if (last_read_.compare_exchange_weak(seen, timestamp.value, std::memory_order_seq_cst)) return;
  }
}

void Range::Post(TransactionRecord* transaction) {
  transaction->AddReference();
  auto* posting = new Posting{transaction};
  Posting* head = postings_.load(std::memory_order_seq_cst);
  for (;;) {
    posting->next.store(head, std::memory_order_relaxed);
    DEUT_POINT("range.post.before_cas");
    if (DEUT_CAS_FAILS("range.post.cas")) {
      head = postings_.load(std::memory_order_seq_cst);
      continue;
    }
    if (postings_.compare_exchange_weak(head, posting, std::memory_order_seq_cst)) break;
  }
  count_.fetch_add(1, std::memory_order_relaxed);
}

bool Range::UnlinkFirst(Posting* first, Posting* next) {
  DEUT_POINT("range.unlink.before_cas");
  Posting* expected = first;
  return !DEUT_CAS_FAILS("range.unlink.cas") &&
         postings_.compare_exchange_strong(expected, next, std::memory_order_seq_cst);
}

void Range::RetirePosting(Posting* posting, ReclamationDomain& domain) {
  count_.fetch_sub(1, std::memory_order_relaxed);
  posting->transaction->DropReference(domain);
  domain.RetireObject(posting);
}

RangeMap::RangeMap(const std::vector<std::string>& cuts, Timestamp last_read) {
  ranges_.reserve(cuts.size() + 1);
  for (size_t i = 0; i <= cuts.size(); ++i) {
    DEUT_CHECK(i == 0 || (!cuts[i - 1].empty() && (i < 2 || cuts[i - 2] < cuts[i - 1])));
    ranges_.push_back(std::make_unique<Range>(i == 0 ? std::string() : cuts[i - 1],
                                              i == cuts.size() ? std::string() : cuts[i], last_read));
  }
}

size_t RangeMap::IndexOf(std::string_view key) const {
  // The last range whose low is <= key; the first one's low is the empty key.
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), key,
                       [](std::string_view k, const std::unique_ptr<Range>& range) { return k < range->low(); });
  return static_cast<size_t>(after - ranges_.begin()) - 1;
}

size_t RangeMap::IndexBelow(std::string_view bound) const {
  if (bound.empty()) return ranges_.size() - 1;
  const auto first =
      std::lower_bound(ranges_.begin(), ranges_.end(), bound,
                       [](const std::unique_ptr<Range>& range, std::string_view k) { return range->low() < k; });
  return static_cast<size_t>(first - ranges_.begin()) - 1;
}

Timestamp RangeMap::MaxLastRead() const {
  Timestamp latest;
  for (const auto& range : ranges_) latest = std::max(latest, range->last_read());
  return latest;
}

void RangeMap::RemoveAllPostings(ReclamationDomain& domain) const {
  for (const auto& range : ranges_) range->RemovePostings(domain, [](const TransactionRecord&) { return true; });
}

}  // namespace deut::tc

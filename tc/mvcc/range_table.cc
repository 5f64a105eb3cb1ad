#include "tc/mvcc/range_table.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

// The first eight bytes as a number: the lesser of two keys has the lesser number, or an equal one. (A short key is padded with zeros.)
uint64_t HeadOf(std::string_view bytes) {
  uint64_t head = 0;
  if (bytes.size() >= sizeof(head)) {
    std::memcpy(&head, bytes.data(), sizeof(head));
  } else if (!bytes.empty()) {
    std::memcpy(&head, bytes.data(), bytes.size());
  }
  return __builtin_bswap64(head);
}

}  // namespace

Range::~Range() {
  DEUT_CHECK(First(postings_.load(std::memory_order_relaxed)) == nullptr);
  // No thread changes the counters any more: each posting that came has left.
  DEUT_DCHECK(posted() + copied_.load(std::memory_order_relaxed) == removed_.load(std::memory_order_relaxed));
}

bool Range::RaiseLastRead(Timestamp timestamp) {
  DEUT_DCHECK((timestamp.value & kSealed) == 0);
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
  // A copy of a range's postings keeps that of a decided transaction only if its write set says so (P). So none is posted
  // after the commit has begun.
  DEUT_DCHECK(transaction->status() == TransactionStatus::kActive ||
              transaction->status() == TransactionStatus::kAborted);
  uintptr_t head = postings_.load(std::memory_order_seq_cst);
  if ((head & kMarked) != 0) return false;
  Posting* const own = transaction->UnusedPosting();
  Posting* const posting = own != nullptr ? own : new Posting(transaction);
  posting->origin = this;
  for (;;) {
    posting->next.store(First(head), std::memory_order_relaxed);
    DEUT_POINT("range.post.before_cas");
    if (DEUT_CAS_FAILS("range.post.cas")) {
      head = postings_.load(std::memory_order_seq_cst);
    } else if (postings_.compare_exchange_weak(head, reinterpret_cast<uintptr_t>(posting), std::memory_order_seq_cst)) {
      break;
    }
    if ((head & kMarked) != 0) {
      posting->origin = nullptr;
      if (own == nullptr) delete posting;
      return false;
    }
  }
  // The posting's own reference. Until here, and while the transaction is active, the owner's reference keeps the record.
  transaction->AddReference();
  posted_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Range::Seal() {
  if (DEUT_STEP("P.seal")) last_read_.fetch_or(kSealed, std::memory_order_seq_cst);
}

void Range::CloseToPosts() {
  if (DEUT_STEP("P.mark")) postings_.fetch_or(kMarked, std::memory_order_seq_cst);
}

bool Range::TryFill(Posting* first, uint64_t count) {
  DEUT_DCHECK((first == nullptr) == (count == 0));
  uintptr_t unfilled = kUnfilled;
  // S9: counted before another thread can unlink one of the copies.
  const bool counts = copies_ != nullptr && DEUT_STEP("S9.count_copies");
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
  // A copy lies in another range than its origin. (The origin was alive when this range was filled, so it was at another address.)
  if (posting->origin != this && copies_ != nullptr && DEUT_STEP("S9.count_copies")) {
    [[maybe_unused]] const uint64_t copies = copies_->fetch_sub(1, std::memory_order_relaxed);
    DEUT_DCHECK(copies > 0);  // TryFill counts it before it can be found
  }
  TransactionRecord& transaction = *posting->transaction;
  const bool own = transaction.Owns(posting);
  transaction.DropReference(domain);
  if (!own) domain.RetireObject(posting);
}

bool Range::StartSweep() {
  uint32_t idle = kIdle;
  return sweeper_.compare_exchange_strong(idle, kSweeping, std::memory_order_seq_cst);
}

void Range::EndSweep(ReclamationDomain& domain) {
  uint32_t sweeping = kSweeping;
  DEUT_POINT("range.end_sweep.before_cas");
  if (!sweeper_.compare_exchange_strong(sweeping, kIdle, std::memory_order_seq_cst)) {
    DEUT_DCHECK(sweeping == kDropped);  // one thread sweeps at a time, and nothing follows `dropped`
    DropAll(domain);
  }
}

void Range::DropPostings(ReclamationDomain& domain) {
  DEUT_DCHECK(sealed());
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
  for (size_t i = 1; i < ranges_.size(); ++i) {
    DEUT_DCHECK(ranges_[i - 1]->high() == ranges_[i]->low());
    DEUT_DCHECK(ranges_[i - 1]->low() < ranges_[i]->low());
  }
  if (ranges_.size() == 1) return;
  const std::string& last = ranges_.back()->low();
  const std::string& first = ranges_[1]->low();
  const auto differ = std::mismatch(first.begin(), first.end(), last.begin(), last.end());
  prefix_ = std::string_view(last).substr(0, static_cast<size_t>(differ.second - last.begin()));
  heads_.reserve(ranges_.size() - 1);
  for (size_t i = 1; i < ranges_.size(); ++i) {
    heads_.push_back(HeadOf(std::string_view(ranges_[i]->low()).substr(prefix_.size())));
  }
}

template <bool at>
size_t RangeMap::CountBefore(std::string_view key) const {
  if (heads_.empty()) return 0;
  const int order = key.substr(0, prefix_.size()).compare(prefix_);
  if (order != 0) return order < 0 ? 0 : heads_.size();
  const uint64_t head = HeadOf(key.substr(prefix_.size()));
  // All bounds before `count` have lesser heads. The loop has no branch on a comparison, which the processor could not predict.
  size_t count = 0;
  for (size_t left = heads_.size(); left != 0;) {
    const size_t half = left / 2;
    const bool less = heads_[count + half] < head;
    count = less ? count + half + 1 : count;
    left = less ? left - half - 1 : half;
  }
  if (count == heads_.size() || heads_[count] != head) return count;
  // Bounds with the same head are compared by all their bytes.
  const auto end = static_cast<size_t>(
      std::upper_bound(heads_.begin() + static_cast<ptrdiff_t>(count), heads_.end(), head) - heads_.begin());
  const auto begin = ranges_.begin() + 1;
  const auto after = std::partition_point(
      begin + static_cast<ptrdiff_t>(count), begin + static_cast<ptrdiff_t>(end), [&](const Range* range) {
        return at ? std::string_view(range->low()) <= key : std::string_view(range->low()) < key;
      });
  return static_cast<size_t>(after - begin);
}

// The last range whose low is <= key; the first one's low is the empty key.
size_t RangeMap::IndexOf(std::string_view key) const {
  const size_t index = CountBefore<true>(key);
  DEUT_DCHECK(at(index).Contains(key));
  return index;
}

size_t RangeMap::IndexBelow(std::string_view bound) const {
  const size_t index = bound.empty() ? ranges_.size() - 1 : CountBefore<false>(bound);
  DEUT_DCHECK(at(index).high().empty() || (!bound.empty() && bound <= at(index).high()));
  return index;
}

void RangeMap::RemoveAllPostings(ReclamationDomain& domain) const {
  for (Range* range : ranges_) range->RemovePostings(domain, [](const TransactionRecord&) { return true; });
}

}  // namespace deut::tc

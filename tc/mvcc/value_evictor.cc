#include "tc/mvcc/value_evictor.h"

#include <algorithm>
#include <functional>

#include "common/testing/test_points.h"
#include "tc/mvcc/page_out.h"

namespace deut::tc {
namespace {

// Entries handled under one guard: the values that they release are freed soon.
constexpr size_t kBatch = 256;
// Bounds a round to a few milliseconds.
constexpr size_t kPerRound = 16 << 10;

}  // namespace

void ValueEvictor::Add(Lsn commit, RecordEntry* entry, uint32_t value_bytes) {
  if (!options_.excess || value_bytes < kMinPagedOutBytes) return;
  queue_.push_back({commit, entry});
  queued_.store(queue_.size(), std::memory_order_relaxed);
}

bool ValueEvictor::FillBatch(Lsn collected, Lsn durable, size_t max_commits) {
  batch_.clear();
  while (!queue_.empty() && batch_.size() < max_commits) {
    const Queued& next = queue_.front();
    if (next.commit > collected || DEUT_OMITTED("S9.page_out_collected")) {
      if (next.commit >= durable && DEUT_STEP("S9.page_out_durable")) break;
      batch_.push_back(next);
    }
    queue_.pop_front();
  }
  // Sorted by entry, so that Run walks each chain once, however many of its versions are in the batch.
  std::ranges::sort(batch_, [](const Queued& a, const Queued& b) {
    return a.entry != b.entry ? std::less<>()(a.entry, b.entry) : a.commit < b.commit;
  });
  return !batch_.empty();
}

uint64_t ValueEvictor::Run(Lsn collected) {
  while (!queue_.empty() && queue_.front().commit <= collected && DEUT_STEP("S9.page_out_collected"))
    queue_.pop_front();
  uint64_t freed = 0;
  for (size_t left = std::min(queue_.size(), kPerRound); left > 0 && options_.excess() > freed;) {
    const Lsn durable = options_.durable();
    if (!FillBatch(collected, durable, std::min(left, kBatch))) break;
    left -= batch_.size();
    ReclamationDomain::Guard guard(domain_);
    for (size_t i = 0; i < batch_.size(); ++i) {
      const bool more = i + 1 < batch_.size() && batch_[i + 1].entry == batch_[i].entry;
      if (more) continue;
      const PagedOut paged = PageOut(*batch_[i].entry, durable, domain_);
      freed += paged.bytes;
      versions_.fetch_add(paged.versions, std::memory_order_relaxed);
      if (paged.retry_later) queue_.push_back(batch_[i]);
    }
  }
  queued_.store(queue_.size(), std::memory_order_relaxed);
  paged_bytes_.fetch_add(freed, std::memory_order_relaxed);
  return freed;
}

}  // namespace deut::tc

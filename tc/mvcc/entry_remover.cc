#include "tc/mvcc/entry_remover.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::tc {
namespace {

// Entries that one Retry retries after low-water moved: kMinRetried plus 1/kRetriedDivisor of the list.
constexpr size_t kMinRetried = 1024;
constexpr size_t kRetriedDivisor = 16;

Timestamp LastRead(const RecordEntry* entry) { return entry->word.Load().last_read(); }

}  // namespace

void EntryRemover::Defer(RecordEntry* entry) {
  auto* const arriving = new Arriving{.entry = entry, .next = arriving_.load(std::memory_order_relaxed)};
  arriving_count_.fetch_add(1, std::memory_order_relaxed);
  while (!arriving_.compare_exchange_weak(arriving->next, arriving, std::memory_order_seq_cst)) {
  }
}

void EntryRemover::TakeArrivals() {
  Arriving* arriving = arriving_.exchange(nullptr, std::memory_order_seq_cst);
  if (arriving == nullptr) return;
  size_t taken = 0;
  for (; arriving != nullptr; ++taken) {
    DEUT_DCHECK(arriving->entry->deferred);
    deferred_.push_back(arriving->entry);
    delete std::exchange(arriving, arriving->next);
  }
  // Added to the list's length before it is subtracted from the arrivals: MayDefer, which adds both, may count an entry
  // twice, but misses none.
  deferred_count_.store(deferred_.size(), std::memory_order_relaxed);
  [[maybe_unused]] const size_t counted = arriving_count_.fetch_sub(taken, std::memory_order_relaxed);
  DEUT_DCHECK(counted >= taken);  // Defer counts an entry before it pushes it
}

void EntryRemover::Append(RecordEntry* entry) {
  entry->deferred = true;
  deferred_.push_back(entry);
}

void EntryRemover::Remove(RecordEntry* entry, Timestamp low_water) {
  if (entry->deferred || records_.Remove(entry, low_water)) return;
  // A writer has installed a version, or a reader has cached a copy, whose eviction will call this again.
  if (const HeadWord::Value word = entry->word.Load(); word.head != nullptr || word.queued()) return;
  Append(entry);
  deferred_count_.store(deferred_.size(), std::memory_order_relaxed);
}

void EntryRemover::RemoveSpilled(RecordEntry* entry, Timestamp low_water) {
  // R6: raise the floor first. If the floor names another key, the entry is deferred, like one that a reader has made: a
  // floor of every key would abort writers of other keys, even of other tables. Spilling uses at most half of the list,
  // so that one spill does not force readers to share floors.
  const Timestamp read = LastRead(entry);
  const bool may_wait = deferred_.size() < max_deferred_ / 2 && DEUT_STEP("R6.spill_defers");
  if (!records_.TryRaiseFloor(entry->hash, read) && !may_wait) ShareFloor(entry->hash, read);
  Remove(entry, low_water);
}

void EntryRemover::ShareFloor(uint64_t hash, Timestamp read) {
  shared_floors_.fetch_add(1, std::memory_order_relaxed);
  records_.RaiseFloor(hash, read);
}

void EntryRemover::Retry(Timestamp low_water) {
  DEUT_CHECK(low_water >= retried_at_);  // low-water only rises
  ReclamationDomain::Guard guard(domain_);
  // Under an old reader the list may be as long as its limit, and no entry can leave. Then each round retries a few, in
  // turn.
  const bool moved = low_water != std::exchange(retried_at_, low_water);
  const size_t turns = moved ? kMinRetried + deferred_.size() / kRetriedDivisor : kMinRetried / 4;
  const size_t over = deferred_.size() - std::min(deferred_.size(), max_deferred_);
  RetryOldest(std::min(deferred_.size(), std::max(turns, over)), low_water);
}

void EntryRemover::RetryAll(Timestamp low_water) {
  ReclamationDomain::Guard guard(domain_);
  RetryOldest(deferred_.size(), low_water);
}

void EntryRemover::RetryOldest(size_t count, Timestamp low_water) {
  DEUT_CHECK(count <= deferred_.size());
  for (size_t n = count; n > 0; --n) {
    RecordEntry* const entry = deferred_.front();
    deferred_.pop_front();
    DEUT_DCHECK(entry->deferred);  // it is in the list once
    entry->deferred = false;
    const HeadWord::Value word = entry->word.Load();
    if (word.head != nullptr || word.queued()) continue;
    if (deferred_.size() >= max_deferred_ && DEUT_STEP("R6.over_budget") &&
        !records_.TryRaiseFloor(entry->hash, word.last_read())) {
      ShareFloor(entry->hash, word.last_read());  // R6: floor first
    }
    if (records_.Remove(entry, low_water) || entry->word.Load().head != nullptr) continue;
    Append(entry);
  }
  deferred_count_.store(deferred_.size(), std::memory_order_relaxed);
}

Timestamp EntryRemover::LatestRead() const { return std::ranges::max(deferred_ | std::views::transform(LastRead)); }

bool EntryRemover::HoldsReadThrough(Timestamp read) const {
  return std::ranges::any_of(deferred_, [&](Timestamp each) { return each <= read; }, LastRead);
}

}  // namespace deut::tc

#include "tc/mvcc/read_cache.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/version_chain.h"

namespace deut::tc {
namespace {

// Upper bound of the room that the collector keeps free. It is woken when half of the room is used up.
constexpr uint64_t kMaxRoomBytes = 4 << 20;
constexpr size_t kClearedUnderOneGuard = 1024;

uint64_t RoomBytes(uint64_t budget_bytes) { return std::min(budget_bytes / 8, kMaxRoomBytes); }

TransactionRecord* AlwaysCommitted() {
  auto* const record = new TransactionRecord(Timestamp{0});
  record->TryStartCommit();
  record->FinishCommit(Lsn{0});
  return record;
}

}  // namespace

ReadCache::ReadCache(uint64_t budget_bytes, bool keep_written, ReclamationDomain& domain, RecordTable& records)
    : domain_(domain),
      records_(records),
      budget_bytes_(budget_bytes),
      keep_written_(keep_written),
      of_dc_(AlwaysCommitted()) {}

ReadCache::~ReadCache() {
  ReclamationDomain::Guard guard(domain_);
  of_dc_->DropReference(domain_);
}

uint64_t ReadCache::WakeBytes() const {
  const uint64_t budget = budget_bytes();
  return budget - RoomBytes(budget) / 2;
}

uint64_t ReadCache::KeepBytes() const {
  const uint64_t budget = budget_bytes();
  return budget - RoomBytes(budget);
}

bool ReadCache::SetBudget(uint64_t bytes) {
  budget_bytes_.store(bytes, std::memory_order_relaxed);
  return this->bytes() > WakeBytes();
}

bool ReadCache::Reserve(uint64_t bytes, uint64_t limit) {
  uint64_t seen = bytes_.load(std::memory_order_relaxed);
  while (seen + bytes <= limit) {
    if (bytes_.compare_exchange_weak(seen, seen + bytes, std::memory_order_relaxed)) return true;
  }
  return false;
}

bool ReadCache::Fill(uint64_t hash, TableId table, std::string_view key, std::optional<std::string_view> value,
                     const SpillWatch& spills) {
  const uint64_t budget = budget_bytes();
  if (budget == 0) return false;
  const std::string_view copied = value.value_or(std::string_view());
  const uint64_t entry_bytes = EntryBytes(key.size());
  const uint64_t copy_bytes = sizeof(RecordVersion) + copied.size();
  if (!Reserve(entry_bytes + copy_bytes, budget)) {
    no_room_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  ReclamationDomain::Guard guard(domain_);
  RecordEntry* const entry = records_.FindOrCreate(hash, table, key);
  RecordVersion* const copy = RecordVersion::Create(of_dc_, 0, !value.has_value(), copied);
  HeadWord::Value seen;
  if (!InstallCopy(*entry, seen, nullptr, copy, domain_, spills)) {
    // A writer was there, or another reader; or the version there has been spilled; or the entry has been sealed. The next reader will try again.
    // If this call made the entry, the thread that has found it meanwhile takes care of it.
    RecordVersion::Destroy(copy, domain_);
    // S9: if only the spill was in the way, no other thread may know the entry, so it goes into the queue.
    const bool queued = spills.Changed() && Queue(*entry);
    Release(queued ? copy_bytes : entry_bytes + copy_bytes);
    return false;
  }
  filled_.fetch_add(1, std::memory_order_relaxed);
  if (seen.queued()) {
    Release(entry_bytes);
  } else {
    DEUT_POINT("read_cache.before_push");
    Push(entry);
  }
  return bytes() > WakeBytes();
}

bool ReadCache::Refresh(RecordEntry& entry, const RecordVersion& applied) {
  if (applied.paged_out || budget_bytes() == 0) return false;
  // Other threads may set QUEUED meanwhile; only this thread clears it.
  const bool queued = entry.word.Load().queued();
  if (!queued && (!keep_written_ || applied.tombstone)) return false;
  const uint64_t entry_bytes = queued ? 0 : EntryBytes(entry.key_bytes);
  const uint64_t copy_bytes = sizeof(RecordVersion) + applied.value().size();
  if (!Reserve(entry_bytes + copy_bytes, queued ? budget_bytes() : KeepBytes())) {
    if (queued) no_room_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  RecordVersion* const copy = RecordVersion::Create(of_dc_, 0, applied.tombstone, applied.value());
  HeadWord::Value seen;
  if (!InstallCopy(entry, seen, &applied, copy, domain_)) {
    RecordVersion::Destroy(copy, domain_);
    Release(entry_bytes + copy_bytes);
    return false;
  }
  refreshed_.fetch_add(1, std::memory_order_relaxed);
  if (!seen.queued()) {
    Push(&entry);
  } else if (!queued) {
    Release(entry_bytes);
  }
  return true;
}

bool ReadCache::Queue(RecordEntry& entry) {
  HeadWord::Value seen = entry.word.Load();
  while (!seen.dead() && !seen.queued()) {
    if (!entry.word.CompareExchange(seen, {seen.bits | HeadWord::kQueued, seen.head})) continue;
    Push(&entry);
    return true;
  }
  return false;
}

void ReadCache::Push(RecordEntry* entry) {
  RecordEntry* head = arrivals_.load(std::memory_order_relaxed);
  do {
    entry->next_queued = head;
  } while (!arrivals_.compare_exchange_weak(head, entry, std::memory_order_seq_cst));
}

void ReadCache::DrainArrivals() {
  RecordEntry* entry = arrivals_.exchange(nullptr, std::memory_order_seq_cst);
  RecordEntry* in_order = nullptr;
  while (entry != nullptr) {
    RecordEntry* const next = entry->next_queued;
    entry->next_queued = in_order;
    in_order = entry;
    entry = next;
  }
  while (in_order != nullptr) {
    RecordEntry* const next = in_order->next_queued;
    Append(in_order);
    in_order = next;
  }
}

void ReadCache::Append(RecordEntry* entry) {
  DEUT_DCHECK(entry->word.Load().queued());  // R5 keeps the entry, so that the queue's pointers are valid
  entry->next_queued = nullptr;
  (last_ != nullptr ? last_->next_queued : first_) = entry;
  last_ = entry;
}

RecordEntry* ReadCache::Pop() {
  DEUT_DCHECK(first_ != nullptr);
  RecordEntry* const entry = first_;
  first_ = entry->next_queued;
  if (first_ == nullptr) last_ = nullptr;
  return entry;
}

void ReadCache::EvictEntry(RecordEntry* entry, OnUnqueued on_unqueued) {
  const HeadWord::Value before = RemoveCopy(*entry, domain_);
  Release(EntryBytes(entry->key_bytes));
  if (before.head != nullptr && before.head->of_dc()) {
    Release(before.head->bytes());
    evicted_.fetch_add(1, std::memory_order_relaxed);
  } else if (before.head != nullptr) {
    return;  // a writer's version stands there; the entry leaves with it
  }
  on_unqueued(entry);
}

bool ReadCache::Evict(size_t max_entries, OnUnqueued on_unqueued) {
  if (bytes() <= KeepBytes()) return false;
  ReclamationDomain::Guard guard(domain_);
  DrainArrivals();
  for (size_t looked = 0; bytes() > KeepBytes() && first_ != nullptr; ++looked) {
    if (looked == max_entries) return true;
    RecordEntry* const entry = Pop();
    const RecordVersion* const head = entry->word.Load().head;
    if (head != nullptr && head->of_dc() && head->used.load(std::memory_order_relaxed)) {
      head->used.store(false, std::memory_order_relaxed);
      Append(entry);
      continue;
    }
    EvictEntry(entry, on_unqueued);
  }
  return false;
}

void ReadCache::Clear(OnUnqueued on_unqueued) {
  DrainArrivals();
  while (first_ != nullptr) {
    ReclamationDomain::Guard guard(domain_);
    for (size_t n = 0; n < kClearedUnderOneGuard && first_ != nullptr; ++n) EvictEntry(Pop(), on_unqueued);
  }
}

}  // namespace deut::tc

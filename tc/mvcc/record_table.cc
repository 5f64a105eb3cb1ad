#include "tc/mvcc/record_table.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "common/base/check.h"
#include "common/sync/block_pool.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/record_version.h"

namespace deut::tc {
namespace {

void FreeEntry(RecordEntry* entry) {
  const size_t bytes = sizeof(RecordEntry) + entry->key_bytes;
  entry->~RecordEntry();
  BlockPool::Free(entry, bytes);
}

// Sets the flag when it is freed: then every guard that was held when it was retired has been released.
struct Settling {
  explicit Settling(std::shared_ptr<std::atomic<bool>> flag) : settled(std::move(flag)) {}
  ~Settling() { settled->store(true, std::memory_order_seq_cst); }
  Settling(const Settling&) = delete;
  Settling& operator=(const Settling&) = delete;

  const std::shared_ptr<std::atomic<bool>> settled;
};

// The right to change links of entries, tried for once.
class StructureRight {
 public:
  explicit StructureRight(std::atomic<bool>& taken)
      : taken_(taken), held_(!taken.exchange(true, std::memory_order_seq_cst)) {}
  ~StructureRight() {
    if (held_) taken_.store(false, std::memory_order_seq_cst);
  }
  StructureRight(const StructureRight&) = delete;
  StructureRight& operator=(const StructureRight&) = delete;

  bool held() const { return held_; }

 private:
  std::atomic<bool>& taken_;
  const bool held_;
};

}  // namespace

RecordTable::RecordTable(ReclamationDomain& domain, uint32_t log2_buckets, Timestamp first)
    : domain_(domain),
      log2_buckets_(log2_buckets),
      mask_((uint64_t{1} << log2_buckets) - 1),
      buckets_(MakeBuckets(mask_ + 1), [](Bucket* buckets) { std::free(buckets); }),
      free_floors_below_(first.value),
      origin_(first.value) {
  DEUT_CHECK(log2_buckets <= 30);
}

// calloc: zeros are an empty bucket. The heap gets a block of this size from the system already zeroed, so a large table takes memory only where it
// is used.
RecordTable::Bucket* RecordTable::MakeBuckets(size_t count) {
  void* const buckets = std::calloc(count, sizeof(Bucket));
  DEUT_CHECK(buckets != nullptr);
  return static_cast<Bucket*>(buckets);
}

RecordTable::~RecordTable() {
  ReclamationDomain::Guard guard(domain_);
  for (uint64_t b = 0; b <= mask_; ++b) DestroyBucket(buckets_[b], 0, domain_);
}

void RecordTable::DestroyBucket(Bucket& bucket, size_t link, ReclamationDomain& domain) {
  const uintptr_t word = bucket.head.load(std::memory_order_relaxed);
  if (IsBranch(word)) {
    Branch* const branch = BranchOf(word);
    for (Bucket& each : branch->buckets) DestroyBucket(each, 1 - link, domain);
    delete branch;
    return;
  }
  for (RecordEntry* entry = EntryOf(word); entry != nullptr;) {
    RecordVersion* version = entry->word.Load().head;
    while (version != nullptr) {
      RecordVersion* older = version->older.load(std::memory_order_relaxed);
      RecordVersion::Retire(version, domain);
      version = older;
    }
    RecordEntry* next = entry->next[link].load(std::memory_order_relaxed);
    FreeEntry(entry);
    entry = next;
  }
}

RecordTable::Place RecordTable::Locate(uint64_t hash) const {
  Place place{&buckets_[hash & mask_], nullptr, 0, nullptr};
  for (;;) {
    const uintptr_t word = place.bucket->head.load(std::memory_order_seq_cst);
    if (!IsBranch(word)) {
      place.first = EntryOf(word);
      return place;
    }
    place.branch = BranchOf(word);
    place.bucket = &place.branch->buckets[IndexIn(hash, ShiftBelow(place.level))];
    ++place.level;
  }
}

void RecordTable::PrefetchFirst(uint64_t hash) const {
  const RecordEntry* const first = Locate(hash).first;
  if (first == nullptr) return;
  __builtin_prefetch(first);
  __builtin_prefetch(first + 1);  // its key
}

RecordEntry* RecordTable::FindIn(const Place& place, uint64_t hash, TableId table, std::string_view key,
                                 uint32_t* length) {
  const size_t link = place.link();
  for (RecordEntry* entry = place.first; entry != nullptr; entry = entry->next[link].load(std::memory_order_seq_cst)) {
    DEUT_POINT("record_table.walk");
    ++*length;
    if (entry->hash != hash || entry->table != table || entry->key() != key) continue;
    if (!entry->word.Load().dead() || DEUT_OMITTED("R5.dead_is_absent")) return entry;
  }
  return nullptr;
}

RecordEntry* RecordTable::Find(uint64_t hash, TableId table, std::string_view key) const {
  uint32_t length = 0;
  return FindIn(Locate(hash), hash, table, key, &length);
}

RecordEntry* RecordTable::Find(uint64_t hash, TableId table, std::string_view key, MissedLookup* absence) const {
  const Place place = Locate(hash);
  absence->floor_ = &place.bucket->floor;
  absence->head_ = &place.bucket->head;
  absence->seen_ = WordOf(place.first);
  uint32_t length = 0;
  return FindIn(place, hash, table, key, &length);
}

RecordEntry* RecordTable::FindOrCreate(uint64_t hash, TableId table, std::string_view key, bool* made_deferred) {
  DEUT_DCHECK(domain_.guard_held());
  RecordEntry* created = nullptr;
  for (;;) {
    const Place place = Locate(hash);
    uint32_t length = 0;
    if (RecordEntry* found = FindIn(place, hash, table, key, &length)) {
      if (created != nullptr) FreeEntry(created);
      return found;
    }
    if (created == nullptr) {
      void* memory = BlockPool::Allocate(sizeof(RecordEntry) + key.size());
      created = new (memory) RecordEntry(hash, table, static_cast<uint32_t>(key.size()));
      std::memcpy(reinterpret_cast<char*>(created + 1), key.data(), key.size());
      created->deferred = made_deferred != nullptr;
    }
    created->next[place.link()].store(place.first, std::memory_order_relaxed);
    DEUT_POINT("record_table.insert.before_cas");
    uintptr_t first = WordOf(place.first);
    if (DEUT_CAS_FAILS("record_table.insert.cas") ||
        !place.bucket->head.compare_exchange_strong(first, WordOf(created), std::memory_order_seq_cst)) {
      continue;
    }
    entries_.fetch_add(1, std::memory_order_relaxed);
    entry_bytes_.fetch_add(sizeof(RecordEntry) + key.size(), std::memory_order_relaxed);
    if (made_deferred != nullptr) *made_deferred = true;
    if (length >= kLongChain) Grow({place.bucket, created, place.level, place.branch});
    return created;
  }
}

// Only the thread that holds the StructureRight relinks or unlinks. So from `place.first` on the chain stays as it is; others insert before it only.
void RecordTable::Grow(const Place& place) {
  const uint32_t shift = ShiftBelow(place.level);
  if (shift + kBranchBits > kHashBits) return;
  if (place.branch != nullptr && !place.branch->settled->load(std::memory_order_seq_cst) &&
      DEUT_STEP("R5.grow_settled")) {
    return;
  }
  const StructureRight right(structure_);
  if (!right.held()) return;
  auto branch = std::make_unique<Branch>();
  const size_t old_link = place.link();
  uintptr_t head = place.bucket->head.load(std::memory_order_seq_cst);
  const RecordEntry* moved = nullptr;  // this entry and those behind it are linked into the branch already
  while (!IsBranch(head)) {
    for (RecordEntry* entry = EntryOf(head); entry != moved;
         entry = entry->next[old_link].load(std::memory_order_seq_cst)) {
      std::atomic<uintptr_t>& to = branch->buckets[IndexIn(entry->hash, shift)].head;
      entry->next[1 - old_link].store(EntryOf(to.load(std::memory_order_relaxed)), std::memory_order_seq_cst);
      to.store(WordOf(entry), std::memory_order_relaxed);
    }
    moved = EntryOf(head);
    DEUT_POINT("record_table.grow.before_cas");
    const uintptr_t grown = WordOf(branch.get());
    bool swung = !DEUT_CAS_FAILS("record_table.grow.cas") &&
                 place.bucket->head.compare_exchange_strong(head, grown, std::memory_order_seq_cst);
    if (!swung && DEUT_OMITTED("R5.grow_swap")) swung = place.bucket->head.exchange(grown) != grown;
    if (swung) {
      branches_.fetch_add(1, std::memory_order_relaxed);
      // Settling frees nothing: it reports when no thread walks the old chain any more. The table may be destroyed before. Its size is given as
      // kBatchBytes so that it does not wait for other garbage to be freed with.
      domain_.RetireObject(new Settling(branch.release()->settled), ReclamationDomain::kBatchBytes);
      return;
    }
    head = place.bucket->head.load(std::memory_order_seq_cst);
  }
}

HeadWord::Value RecordTable::RaiseLastRead(RecordEntry& entry, Timestamp timestamp) {
  DEUT_DCHECK((timestamp.value & HeadWord::kFlags) == 0);  // else the raise would seal the entry, or queue it
  HeadWord::Value seen = entry.word.Load();
  while (!seen.dead() && seen.last_read() < timestamp) {
    DEUT_POINT("record_table.raise.before_cas");
    if (DEUT_CAS_FAILS("record_table.raise.cas")) {
      seen = entry.word.Load();
      continue;
    }
    if (entry.word.CompareExchange(seen, seen.WithLastRead(timestamp))) break;
  }
  return seen;
}

void RecordTable::RaiseFloor(uint64_t hash, Timestamp timestamp) {
  std::atomic<uint64_t>& floor = Locate(hash).bucket->floor;
  DEUT_POINT("record_table.floor.located");
  Raise(floor, hash, timestamp);
}

bool RecordTable::TryRaiseFloor(uint64_t hash, Timestamp timestamp) {
  if (timestamp.value < free_floors_below_.load(std::memory_order_relaxed)) return true;  // the read stops no writer
  std::atomic<uint64_t>& floor = Locate(hash).bucket->floor;
  DEUT_POINT("record_table.floor.located");
  return TryRaise(floor, hash, timestamp);
}

void RecordTable::Raise(std::atomic<uint64_t>& floor, uint64_t hash, Timestamp timestamp) const {
  if (timestamp.value < free_floors_below_.load(std::memory_order_relaxed)) return;  // the read stops no writer
  for (;;) {
    // The origin is loaded before and after the word. Before: a word is compared only with a timestamp that was in the span when no older word was
    // left. After: if the timestamp is not in the span of the origin under which the word was written, the word is below it, whatever its low bits
    // look like.
    const bool in_span = InSpan(timestamp);
    DEUT_POINT("record_table.floor.before_load");
    uint64_t seen = floor.load(std::memory_order_seq_cst);
    if (!in_span && InSpan(timestamp) && DEUT_STEP("R6.span_again")) continue;
    const FloorWord word(seen);
    const bool comparable = seen != 0 && (in_span || word.any());
    if (comparable && word.Covers(hash, timestamp)) return;
    FloorWord by = FloorWord::OfKey(hash, timestamp);
    if (!in_span || !MayReplace(word, hash, timestamp)) {
      // The new word stands for reads of other keys as well.
      const bool later = comparable && word.DistanceFrom(timestamp) > 0 && DEUT_STEP("R6.later_of_both");
      by = FloorWord::OfAnyKey(later ? word.TimestampNear(timestamp) : timestamp);
    }
    if (Replace(floor, &seen, by)) return;
  }
}

void RecordTable::FreeFloorsBelow(Timestamp low_water) {
  uint64_t seen = free_floors_below_.load(std::memory_order_relaxed);
  while (seen < low_water.value &&
         !free_floors_below_.compare_exchange_weak(seen, low_water.value, std::memory_order_relaxed)) {
  }
}

bool RecordTable::SweepFloors(size_t buckets) {
  if (sweep_to_ == 0) {
    const uint64_t free_below = free_floors_below_.load(std::memory_order_relaxed);
    if (free_below - origin_.load(std::memory_order_relaxed) < FloorWord::kSpan / 4) return false;
    sweep_to_ = free_below;
    swept_ = 0;
    swept_floors_unseen_ = nullptr;
  }
  {
    ReclamationDomain::Guard guard(domain_);
    const uint64_t end = std::min<uint64_t>(mask_ + 1, swept_ + buckets);
    for (; swept_ < end; ++swept_) SweepFloors(buckets_[swept_], Timestamp{sweep_to_});
  }
  if (swept_ <= mask_) return true;
  if (swept_floors_unseen_ == nullptr) {
    swept_floors_unseen_ = std::make_shared<std::atomic<bool>>(false);
    ReclamationDomain::Guard guard(domain_);
    domain_.RetireObject(new Settling(swept_floors_unseen_), ReclamationDomain::kBatchBytes);
  }
  domain_.Collect();
  if (!swept_floors_unseen_->load(std::memory_order_seq_cst) && DEUT_STEP("R6.sweep_unseen")) return true;
  // The floors were swept below a low-water that was reached, and that is above the present origin.
  DEUT_CHECK(sweep_to_ > origin_.load(std::memory_order_relaxed));
  DEUT_CHECK(sweep_to_ <= free_floors_below_.load(std::memory_order_relaxed));
  // Last: a thread that sees this origin finds no older word, and no thread is about to replace one.
  origin_.store(std::exchange(sweep_to_, 0), std::memory_order_release);
  return false;
}

void RecordTable::SweepFloors(Bucket& bucket, Timestamp below) {
  const Timestamp origin{origin_.load(std::memory_order_relaxed)};
  uint64_t seen = bucket.floor.load(std::memory_order_seq_cst);
  // Seen from the origin, each word of a key has its true timestamp. No thread writes a word below low-water any more.
  while (seen != 0 && FloorWord(seen).TimestampNear(origin) < below && DEUT_STEP("R6.sweep")) {
    if (Replace(bucket.floor, &seen, FloorWord(0))) break;
  }
  const uintptr_t word = bucket.head.load(std::memory_order_seq_cst);
  if (!IsBranch(word)) return;
  for (Bucket& each : BranchOf(word)->buckets) SweepFloors(each, below);
}

template <typename Visit>
void RecordTable::ForEachFloor(uint64_t hash, Visit&& visit) const {
  const Bucket* bucket = &buckets_[hash & mask_];
  for (uint32_t level = 0;; ++level) {
    const uintptr_t word = bucket->head.load(std::memory_order_seq_cst);
    if (!IsBranch(word) || DEUT_STEP("R6.floors_on_the_way")) {
      if (!visit(FloorWord(bucket->floor.load(std::memory_order_seq_cst)))) return;
    }
    if (!IsBranch(word)) return;
    bucket = &BranchOf(word)->buckets[IndexIn(hash, ShiftBelow(level))];
  }
}

Timestamp RecordTable::Floor(uint64_t hash, Timestamp self) const {
  Timestamp latest{0};
  ForEachFloor(hash, [&](FloorWord floor) {
    if (floor.bits() == 0 || !floor.AppliesTo(hash)) return true;
    const int64_t above = floor.DistanceFrom(self);
    // If `self` is not in the span, every word of one key is below it. The origin is loaded after the word, so it is not older than the origin under
    // which the word was written.
    if (above > 0 && !floor.any() && !InSpan(self)) return true;
    const Timestamp read = floor.TimestampNear(self);
    if (above > 0 || read <= self) latest = std::max(latest, read);
    return true;
  });
  return latest;
}

bool RecordTable::FloorCovers(uint64_t hash, Timestamp read) const {
  if (read.value < free_floors_below_.load(std::memory_order_relaxed)) return true;
  const bool in_span = InSpan(read);
  bool covered = false;
  ForEachFloor(hash, [&](FloorWord floor) {
    covered = (floor.any() || in_span) && floor.Covers(hash, read);
    return !covered;
  });
  return covered;
}

bool RecordTable::Remove(RecordEntry* entry, Timestamp low_water) {
  DEUT_DCHECK(domain_.guard_held());
  const StructureRight right(structure_);
  if (!right.held()) return false;
  HeadWord::Value seen = entry->word.Load();
  for (;;) {
    if (seen.dead() || seen.head != nullptr || (seen.queued() && DEUT_STEP("S7.queued_stays"))) return false;
    if (DEUT_STEP("R5.check_last_read") && seen.last_read() > low_water &&
        !FloorCovers(entry->hash, seen.last_read())) {
      return false;
    }
    // The seal fails if a reader raised last_read or a writer installed since `seen` was loaded; then all conditions are checked again.
    DEUT_POINT("record_table.seal.before_cas");
    if (DEUT_OMITTED("R5.seal")) break;
    if (!DEUT_CAS_FAILS("record_table.seal.cas") &&
        entry->word.CompareExchange(seen, {seen.bits | HeadWord::kDead, nullptr})) {
      break;
    }
    seen = entry->word.Load();
  }
  DEUT_DCHECK(!entry->deferred);  // else the collector's list would keep a pointer to it
  Unlink(entry);
  const size_t bytes = sizeof(RecordEntry) + entry->key_bytes;
  // The thread that made the entry counts it after it has linked it, so both sums may be short by it for a moment.
  entries_.fetch_sub(1, std::memory_order_relaxed);
  entry_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  domain_.Retire(entry, [](void* p) { FreeEntry(static_cast<RecordEntry*>(p)); }, bytes);
  return true;
}

// No other thread relinks or unlinks, and others insert only at the bucket's head. So the predecessor of an entry, once found, stays its predecessor.
void RecordTable::Unlink(RecordEntry* entry) {
  const Place place = Locate(entry->hash);
  const size_t link = place.link();
  RecordEntry* const next = entry->next[link].load(std::memory_order_seq_cst);
  for (;;) {
    uintptr_t head = place.bucket->head.load(std::memory_order_seq_cst);
    if (EntryOf(head) == entry) {
      DEUT_POINT("record_table.unlink.before_cas");
      if (!DEUT_CAS_FAILS("record_table.unlink.cas") &&
          place.bucket->head.compare_exchange_strong(head, WordOf(next), std::memory_order_seq_cst)) {
        return;
      }
      continue;  // an insertion came first: the entry now has a predecessor
    }
    RecordEntry* before = EntryOf(head);
    for (RecordEntry* at = before; at != entry; at = at->next[link].load(std::memory_order_seq_cst)) {
      DEUT_DCHECK(at != nullptr);  // a sealed entry stays linked until this thread unlinks it
      before = at;
    }
    before->next[link].store(next, std::memory_order_seq_cst);
    return;
  }
}

}  // namespace deut::tc

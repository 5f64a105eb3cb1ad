#include "tc/mvcc/record_table.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/hash/hash.h"
#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/mvcc/record_version.h"

namespace deut::tc {

RecordTable::RecordTable(ReclamationDomain& domain, uint32_t log2_buckets)
    : domain_(domain), mask_((uint64_t{1} << log2_buckets) - 1), buckets_(std::make_unique<Bucket[]>(mask_ + 1)) {}

RecordTable::~RecordTable() {
  ReclamationDomain::Guard guard(domain_);
  for (uint64_t b = 0; b <= mask_; ++b) {
    RecordEntry* entry = buckets_[b].head.load(std::memory_order_relaxed);
    while (entry != nullptr) {
      RecordVersion* version = entry->word.Load().head;
      while (version != nullptr) {
        RecordVersion* older = version->older.load(std::memory_order_relaxed);
        RecordVersion::Retire(version, domain_);
        version = older;
      }
      RecordEntry* next = entry->next.load(std::memory_order_relaxed);
      entry->~RecordEntry();
      ::operator delete(entry);
      entry = next;
    }
  }
}

uint64_t RecordTable::Hash(TableId table, std::string_view key) { return absl::HashOf(table.value, key); }

RecordEntry* RecordTable::FindIn(RecordEntry* first, uint64_t hash, TableId table, std::string_view key) {
  for (RecordEntry* entry = first; entry != nullptr; entry = entry->next.load(std::memory_order_seq_cst)) {
    if (entry->hash != hash || entry->table != table || entry->key() != key) continue;
    if (!entry->word.Load().dead() || DEUT_OMITTED("R5.dead_is_absent")) return entry;
  }
  return nullptr;
}

RecordEntry* RecordTable::Find(uint64_t hash, TableId table, std::string_view key) const {
  return FindIn(BucketOf(hash).head.load(std::memory_order_seq_cst), hash, table, key);
}

RecordEntry* RecordTable::FindOrCreate(uint64_t hash, TableId table, std::string_view key) {
  Bucket& bucket = BucketOf(hash);
  RecordEntry* created = nullptr;
  RecordEntry* first = bucket.head.load(std::memory_order_seq_cst);
  for (;;) {
    if (RecordEntry* found = FindIn(first, hash, table, key)) {
      if (created != nullptr) {
        created->~RecordEntry();
        ::operator delete(created);
      }
      return found;
    }
    if (created == nullptr) {
      void* memory = ::operator new(sizeof(RecordEntry) + key.size());
      created = new (memory) RecordEntry(hash, table, static_cast<uint32_t>(key.size()));
      std::memcpy(reinterpret_cast<char*>(created + 1), key.data(), key.size());
    }
    created->next.store(first, std::memory_order_relaxed);
    DEUT_POINT("record_table.insert.before_cas");
    if (!DEUT_CAS_FAILS("record_table.insert.cas") &&
        bucket.head.compare_exchange_strong(first, created, std::memory_order_seq_cst)) {
      entries_.fetch_add(1, std::memory_order_relaxed);
      entry_bytes_.fetch_add(sizeof(RecordEntry) + key.size(), std::memory_order_relaxed);
      return created;
    }
    first = bucket.head.load(std::memory_order_seq_cst);
  }
}

HeadWord::Value RecordTable::RaiseLastRead(RecordEntry& entry, Timestamp timestamp) {
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
  std::atomic<uint64_t>& floor = BucketOf(hash).floor;
  uint64_t seen = floor.load(std::memory_order_seq_cst);
  while (seen < timestamp.value) {
    DEUT_POINT("record_table.floor.before_cas");
    if (DEUT_CAS_FAILS("record_table.floor.cas")) {
      seen = floor.load(std::memory_order_seq_cst);
      continue;
    }
    if (floor.compare_exchange_weak(seen, timestamp.value, std::memory_order_seq_cst)) return;
  }
}

Timestamp RecordTable::Floor(uint64_t hash) const {
  return Timestamp{BucketOf(hash).floor.load(std::memory_order_seq_cst)};
}

bool RecordTable::Remove(RecordEntry* entry, Timestamp low_water) {
  DEUT_DCHECK(domain_.held());
  Bucket& bucket = BucketOf(entry->hash);
  HeadWord::Value seen = entry->word.Load();
  for (;;) {
    if (seen.dead() || seen.head != nullptr) return false;
    if (!DEUT_OMITTED("R5.check_last_read") &&
        seen.last_read().value > std::max(low_water.value, bucket.floor.load(std::memory_order_seq_cst))) {
      return false;
    }
    DEUT_POINT("record_table.seal.before_cas");
    if (DEUT_OMITTED("R5.seal")) break;
    if (!DEUT_CAS_FAILS("record_table.seal.cas") &&
        entry->word.CompareExchange(seen, {seen.bits | HeadWord::kDead, nullptr})) {
      break;
    }
    seen = entry->word.Load();
  }
  Unlink(bucket, entry);
  entries_.fetch_sub(1, std::memory_order_relaxed);
  const size_t bytes = sizeof(RecordEntry) + entry->key_bytes;
  entry_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  domain_.Retire(
      entry,
      [](void* p) {
        static_cast<RecordEntry*>(p)->~RecordEntry();
        ::operator delete(p);
      },
      bytes);
  return true;
}

// Only this thread unlinks, and others insert only at the bucket's head, so an entry's predecessor, once found, stays its predecessor.
void RecordTable::Unlink(Bucket& bucket, RecordEntry* entry) {
  RecordEntry* const next = entry->next.load(std::memory_order_seq_cst);
  for (;;) {
    RecordEntry* before = bucket.head.load(std::memory_order_seq_cst);
    if (before == entry) {
      DEUT_POINT("record_table.unlink.before_cas");
      if (!DEUT_CAS_FAILS("record_table.unlink.cas") &&
          bucket.head.compare_exchange_strong(before, next, std::memory_order_seq_cst)) {
        return;
      }
      continue;  // an insertion came first: the entry now has a predecessor
    }
    while (before->next.load(std::memory_order_seq_cst) != entry) before = before->next.load(std::memory_order_seq_cst);
    before->next.store(next, std::memory_order_seq_cst);
    return;
  }
}

}  // namespace deut::tc

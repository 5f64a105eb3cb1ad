// RecordTable: the latch-free hash table of record entries: per record the last read time and the chain of versions the DC may not
// hold yet (paper, sections 2.4 and 3.2).
//
// States of an entry: live -> dead (sealed) -> unlinked -> retired. At most one live entry per key: insertion is a compare-and-swap on
//   the bucket's head after the whole chain has been looked at, and nothing is inserted elsewhere.
// R5 removal, by the collector alone: the entry holds no version and last_read <= max(low-water, the bucket's floor); seal by one
//   16-byte compare-and-swap to DEAD (it fails if a reader raised or a writer installed in between: then the entry stays); unlink;
//   retire. Every raise and install is a compare-and-swap on a word seen not DEAD, so it fails on a sealed entry and looks up again;
//   every look-up treats DEAD as absent.
// R6 floor: a read of a key without entry raises the bucket's floor instead of making one: raise, then look for the entry again, then
//   ask the DC. A writer installs, then checks the floor. In the total order either the reader's second look sees the writer's entry, or
//   the writer's check sees the floor. The price is a rare false conflict between keys of one bucket.
// Fixed number of buckets, set at construction. Thread-safety: look-ups and inserts from any thread under a guard of the
//   domain; Remove from one thread at a time.
// Ownership: entries belong to the table, versions to their chain.
#ifndef TC_MVCC_RECORD_TABLE_H_
#define TC_MVCC_RECORD_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/head_word.h"

namespace deut::tc {

struct RecordEntry {
  HeadWord word;
  std::atomic<RecordEntry*> next{nullptr};  // in the bucket
  const uint64_t hash;
  const TableId table;
  const uint32_t key_bytes;
  bool deferred = false;  // the collector's own: waits in its list of entries to be removed later

  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_bytes}; }

 private:
  friend class RecordTable;
  RecordEntry(uint64_t h, TableId t, uint32_t bytes) : hash(h), table(t), key_bytes(bytes) {}
};

class RecordTable {
 public:
  RecordTable(ReclamationDomain& domain, uint32_t log2_buckets);
  ~RecordTable();
  RecordTable(const RecordTable&) = delete;
  RecordTable& operator=(const RecordTable&) = delete;

  static uint64_t Hash(TableId table, std::string_view key);

  // The live entry of the key, or null. REQUIRES: a guard, for as long as the entry is used.
  RecordEntry* Find(uint64_t hash, TableId table, std::string_view key) const;
  RecordEntry* FindOrCreate(uint64_t hash, TableId table, std::string_view key);

  // Raises the entry's last_read to at least `timestamp` and answers the word as it was at that moment (its head is what the reader
  // looks at); a dead word means that the entry is gone: look up again.
  static HeadWord::Value RaiseLastRead(RecordEntry& entry, Timestamp timestamp);

  // R6. Raise is sequentially consistent and comes before the second look-up.
  void RaiseFloor(uint64_t hash, Timestamp timestamp);
  Timestamp Floor(uint64_t hash) const;

  // R5: removes the entry if it holds no version and nobody needs its last_read. False: it stays.
  // REQUIRES: a guard; the collector's thread.
  bool Remove(RecordEntry* entry, Timestamp low_water);

  size_t entries() const { return entries_.load(std::memory_order_relaxed); }
  size_t entry_bytes() const { return entry_bytes_.load(std::memory_order_relaxed); }
  size_t fixed_bytes() const { return (mask_ + 1) * sizeof(Bucket); }

 private:
  struct Bucket {
    std::atomic<RecordEntry*> head{nullptr};
    std::atomic<uint64_t> floor{0};
  };

  Bucket& BucketOf(uint64_t hash) const { return buckets_[hash & mask_]; }
  static RecordEntry* FindIn(RecordEntry* first, uint64_t hash, TableId table, std::string_view key);
  void Unlink(Bucket& bucket, RecordEntry* entry);

  ReclamationDomain& domain_;
  const uint64_t mask_;
  std::unique_ptr<Bucket[]> buckets_;
  std::atomic<size_t> entries_{0};
  std::atomic<size_t> entry_bytes_{0};
};

}  // namespace deut::tc

#endif  // TC_MVCC_RECORD_TABLE_H_

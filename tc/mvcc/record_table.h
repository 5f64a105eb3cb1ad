// RecordTable: the latch-free hash table of record entries: per record the last read time and the chain of versions the DC may not
// hold yet (paper, sections 2.4 and 3.2).
//
// States of an entry: live -> dead (sealed) -> unlinked -> retired. At most one live entry per key: insertion is a compare-and-swap on
//   the bucket's head after the whole chain has been looked at, and nothing is inserted elsewhere.
// R5 removal, by the collector alone: the entry holds no version, is not in the read cache's queue, and last_read <= max(low-water, the
//   bucket's floor); seal by one 16-byte compare-and-swap to DEAD (it fails if a reader raised or a writer installed in between: then the entry
//   stays); unlink; retire. Every raise and install is a compare-and-swap on a word seen not DEAD, so it fails on a sealed entry and looks up
//   again; every look-up treats DEAD as absent.
// R6 floor: a read of a key without entry raises the bucket's floor instead of making one: raise, then look for the entry again, then
//   ask the DC. A writer installs, then checks the floor. In the total order either the reader's second look sees the writer's entry, or
//   the writer's check sees the floor. The price is a rare false conflict between keys of one bucket.
//   The second look is one load where nothing has come: what is inserted changes the bucket's head, and so does a growth. The same head may have come
//   back, as what stood before it was unlinked meanwhile: that was dead by then. No entry is freed while the reader's guard is held, so behind the
//   same head there are the same entries or fewer, of which none is the key's; those that were dead stay dead.
// Growth. A bucket holds a chain of entries or leads to eight buckets of the next level. States: chain -> branch, once. Whoever has walked a long
//   chain to insert makes the branch, unless the structure is in somebody's hands (an unlinking, another growth): the next inserter will.
//   (1) The entries are linked into the new buckets by their other `next` (levels use the two in turns), while the old chain stays whole for who
//   walks it. (2) One compare-and-swap of the bucket's head, from the first entry to the branch. It loses to every insertion and then takes
//   the new entries over, too; an insertion that loses to it looks up again, in the branch. So a walk sees the key's entry if it was there
//   when the walk began, and an insertion is made only where the whole chain has been looked at. (3) A branch's own buckets may grow when all
//   guards that saw the chain it came from are gone (`settled`): only then is nobody on the links that they will use.
//   Floors stay where they are: a reader raises that of the bucket that it found no entry in, and a writer checks those of all buckets on its
//   way, so it sees a floor that was raised before or while the bucket grew.
//   Branches are never taken back: for each eight entries that once were there at the same time, at most one remains.
// Thread-safety: look-ups and inserts from any thread under a guard of the domain; Remove from one thread at a time. Nobody waits: a removal that
//   meets a growth is tried again later.
// Ownership: entries and branches belong to the table, versions to their chain.
#ifndef TC_MVCC_RECORD_TABLE_H_
#define TC_MVCC_RECORD_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "common/base/ids.h"
#include "common/sync/reclamation.h"
#include "tc/mvcc/head_word.h"
#include "tc/mvcc/record_hash.h"

namespace deut::tc {

struct RecordEntry {
  HeadWord word;
  std::array<std::atomic<RecordEntry*>, 2> next{};  // in its bucket, by the bucket's level: even, odd
  const uint64_t hash;
  const TableId table;
  const uint32_t key_bytes;
  bool deferred = false;               // the collector's own: waits in its list of entries to be removed later
  RecordEntry* next_queued = nullptr;  // in the read cache's queue; of who has set QUEUED, then of the collector

  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_bytes}; }

 private:
  friend class RecordTable;
  RecordEntry(uint64_t h, TableId t, uint32_t bytes) : hash(h), table(t), key_bytes(bytes) {}
};

class RecordTable {
 public:
  // Chains that are longer grow into a branch.
  static constexpr uint32_t kLongChain = 8;

  // `log2_buckets`: of the first level, 1 to 30.
  RecordTable(ReclamationDomain& domain, uint32_t log2_buckets);
  ~RecordTable();
  RecordTable(const RecordTable&) = delete;
  RecordTable& operator=(const RecordTable&) = delete;

  static uint64_t Hash(TableId table, std::string_view key) { return HashRecord(table, key); }

  // The key's bucket will be looked at soon.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&buckets_[hash & mask_]); }
  // So will the first of its entries. REQUIRES: a guard.
  void PrefetchFirst(uint64_t hash) const;

  // The live entry of the key, or null. REQUIRES: a guard, for as long as the entry is used.
  RecordEntry* Find(uint64_t hash, TableId table, std::string_view key) const;
  RecordEntry* FindOrCreate(uint64_t hash, TableId table, std::string_view key);

  // Where a look found no entry, and what it saw there. Good under the look's guard.
  class Absence {
    friend class RecordTable;
    std::atomic<uint64_t>* floor_ = nullptr;
    const std::atomic<uintptr_t>* head_ = nullptr;
    uintptr_t seen_ = 0;
  };
  // R6, the three steps of a read: as Find; if there is no entry, raise; look again.
  RecordEntry* Find(uint64_t hash, TableId table, std::string_view key, Absence* absence) const;
  static void RaiseFloor(const Absence& absence, Timestamp timestamp) { Raise(*absence.floor_, timestamp); }
  RecordEntry* FindAgain(const Absence& absence, uint64_t hash, TableId table, std::string_view key) const {
    if (absence.head_->load(std::memory_order_seq_cst) == absence.seen_) [[likely]]
      return nullptr;
    return Find(hash, table, key);
  }

  // Raises the entry's last_read to at least `timestamp` and answers the word as it was at that moment (its head is what the reader
  // looks at); a dead word means that the entry is gone: look up again.
  static HeadWord::Value RaiseLastRead(RecordEntry& entry, Timestamp timestamp);

  // R6. Raise is sequentially consistent and comes before the second look-up.
  void RaiseFloor(uint64_t hash, Timestamp timestamp);
  // The latest of all buckets on the way.
  Timestamp Floor(uint64_t hash) const;

  // R5: removes the entry if it holds no version and nobody needs its last_read. False: it stays, for that or because a bucket is just growing.
  // REQUIRES: a guard; the collector's thread.
  bool Remove(RecordEntry* entry, Timestamp low_water);

  size_t entries() const { return entries_.load(std::memory_order_relaxed); }
  size_t entry_bytes() const { return entry_bytes_.load(std::memory_order_relaxed); }
  // Of buckets, on all levels.
  size_t table_bytes() const {
    return (mask_ + 1) * sizeof(Bucket) + branches_.load(std::memory_order_relaxed) * sizeof(Branch);
  }
  uint64_t branches() const { return branches_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kBranchBits = 3;
  static constexpr uint32_t kHashBits = 64;

  // `head`: the first entry or null, or a branch: then the lowest bit is set.
  struct Bucket {
    std::atomic<uintptr_t> head{0};
    std::atomic<uint64_t> floor{0};
  };

  // A way through it touches one cache line: buckets do not straddle two.
  struct Branch {
    alignas(sizeof(Bucket)) std::array<Bucket, size_t{1} << kBranchBits> buckets;
    std::shared_ptr<std::atomic<bool>> settled = std::make_shared<std::atomic<bool>>(false);
  };
  static_assert(sizeof(Bucket) == 16 && std::is_trivially_destructible_v<Bucket>);

  // The bucket of a chain, as it was when its head was loaded.
  struct Place {
    Bucket* bucket;
    RecordEntry* first;
    uint32_t level;
    Branch* branch;  // that the bucket is in; null at level 0
    size_t link() const { return level % 2; }
  };

  static void Raise(std::atomic<uint64_t>& floor, Timestamp timestamp);
  static uintptr_t WordOf(const RecordEntry* entry) { return reinterpret_cast<uintptr_t>(entry); }
  static uintptr_t WordOf(const Branch* branch) { return reinterpret_cast<uintptr_t>(branch) | 1; }
  static bool IsBranch(uintptr_t word) { return (word & 1) != 0; }
  static RecordEntry* EntryOf(uintptr_t word) { return reinterpret_cast<RecordEntry*>(word); }
  static Branch* BranchOf(uintptr_t word) { return reinterpret_cast<Branch*>(word & ~uintptr_t{1}); }

  // The bits of the hash that choose among a branch's buckets, for a branch below a bucket of this level.
  uint32_t ShiftBelow(uint32_t level) const { return log2_buckets_ + level * kBranchBits; }
  static size_t IndexIn(uint64_t hash, uint32_t shift) { return (hash >> shift) % (size_t{1} << kBranchBits); }
  Place Locate(uint64_t hash) const;
  // `length`: of the chain, as far as it was walked.
  static RecordEntry* FindIn(const Place& place, uint64_t hash, TableId table, std::string_view key, uint32_t* length);
  void Grow(const Place& place);
  void Unlink(RecordEntry* entry);
  static void DestroyBucket(Bucket& bucket, size_t link, ReclamationDomain& domain);
  static Bucket* MakeBuckets(size_t count);

  ReclamationDomain& domain_;
  const uint32_t log2_buckets_;
  const uint64_t mask_;
  const std::unique_ptr<Bucket[], void (*)(Bucket*)> buckets_;
  std::atomic<bool> structure_{false};  // in somebody's hands: an unlinking, or a growth
  std::atomic<uint64_t> branches_{0};
  std::atomic<size_t> entries_{0};
  std::atomic<size_t> entry_bytes_{0};
};

}  // namespace deut::tc

#endif  // TC_MVCC_RECORD_TABLE_H_

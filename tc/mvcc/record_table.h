// RecordTable: the latch-free hash table of record entries: per record the last read time and the chain of versions the DC may not
// hold yet (paper, sections 2.4 and 3.2). The maps of Abseil need a lock, and move their elements when they grow.
//
// States of an entry: live -> dead (sealed) -> unlinked -> retired. At most one live entry per key: insertion is a compare-and-swap on the bucket's
//   head after the inserter has walked the whole chain, and nothing is inserted elsewhere.
// R5 removal, by the collector alone. The entry holds no version, is not in the read cache's queue, and its last_read is at or below low-water
//   or covered by the bucket's floor. Steps: seal by one 16-byte compare-and-swap to DEAD; unlink; retire. The seal fails if a reader raised or a
//   writer installed in between: then the entry stays. Every raise and install is a compare-and-swap on a word seen not DEAD, so it fails on a
//   sealed entry and looks up again. Every look-up treats DEAD as absent.
// R6 floor: a read of a key without an entry is remembered in the bucket's floor, which allocates nothing. A reader raises the floor, then looks for
//   the entry again, then asks the DC. A writer installs, then checks the floor. In the total order either the reader's second look sees the
//   writer's entry, or the writer's check sees the floor.
//   The floor remembers the reads of one key (floor_word.h), so a writer of another key does not conflict with it. A reader takes the floor over from
//   another key only if that key's last read is below low-water: then no writer is left that it would stop. Otherwise the reader makes a deferred
//   entry, which the collector removes once low-water has passed its last_read. *Else:* the later read of one key hides the read of another, whose
//   writer, between the two, is not stopped. Beyond the collector's limit of deferred entries the floor becomes one of all keys of the bucket,
//   with the later timestamp: that can only add aborts.
//   False conflicts: take a writer of W keys that is open while N reads of other keys arrive, with B buckets. It has about
//   W * min(N / 2B, 1) / 2^24 of them, as the tags must be equal, too. A million keys, 120,000 reads and 2^22 buckets give 0.001 in all;
//   one timestamp for the whole bucket gave 14,000.
//   A floor of one key has only the low bits of its timestamp. They suffice because each such word lies in [origin, origin + kSpan): a read beyond
//   that is remembered by an entry, or as one of any key. SweepFloors removes every word below low-water, waits until all guards that were held then
//   are released, and raises the origin to that low-water. A thread that has loaded the older origin writes a word that is valid above the new
//   one, too. Its reader is open, so low-water is not above its timestamp. A thread that has loaded an older word holds its guard until it has
//   replaced the word. So the word has not got the same bits from a later read. *Else:* a floor that no thread has replaced for 2^39 timestamps
//   passes for a later read. Then the new read is not stored, and a writer older than it is not stopped.
//   The second look is one load if nothing has changed: an insertion changes the bucket's head, and so does a growth. The same head may return, if an
//   entry before it was unlinked meanwhile: that entry was dead by then. No entry is freed while the reader's guard is held. So behind the same
//   head there are the same entries or fewer, and none is the key's. Dead entries stay dead.
// Growth. A bucket holds a chain of entries or leads to eight buckets of the next level. States: chain -> branch, once. A thread that has walked a
//   long chain to insert makes the branch. If another thread holds the right to change the structure (for an unlinking or another growth), the
//   next inserter will.
//   (1) The entries are linked into the new buckets by their other `next` (levels use the two alternately). The old chain stays whole for threads
//   that walk it. (2) One compare-and-swap of the bucket's head, from the first entry to the branch. It loses to every insertion and then takes
//   the new entries over, too; an insertion that loses to it looks up again, in the branch. So a walk sees the key's entry if it was there
//   when the walk began, and an insertion is made only after a walk of the whole chain. (3) A branch's own buckets may grow when all guards that
//   saw the chain it came from are released (`settled`). Only then does no thread follow the links that they will use.
//   Floors stay where they are. A reader raises the floor of the bucket in which it found no entry. A writer checks the floors of all buckets on
//   its way, so it sees a floor that was raised before or while the bucket grew.
//   Branches are never removed: at most one remains for each eight entries that were there at the same time.
// Thread-safety: look-ups and inserts from any thread under a guard of the domain. Remove, SweepFloors and floors raised for reads that have ended
//   from one thread at a time. No thread waits: a removal that meets a growth is retried later.
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
#include "common/testing/test_points.h"
#include "tc/mvcc/floor_word.h"
#include "tc/mvcc/head_word.h"
#include "tc/mvcc/record_hash.h"

namespace deut::tc {

struct RecordEntry {
  HeadWord word;
  std::array<std::atomic<RecordEntry*>, 2> next{};  // in its bucket; index: the bucket's level modulo 2
  const uint64_t hash;
  const TableId table;
  const uint32_t key_bytes;
  bool deferred =
      false;  // in the collector's list of deferred entries, or on its way; the collector's once the entry is visible
  RecordEntry* next_queued = nullptr;  // in the read cache's queue; of the thread that set QUEUED, then the collector

  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), key_bytes}; }

 private:
  friend class RecordTable;
  RecordEntry(uint64_t h, TableId t, uint32_t bytes) : hash(h), table(t), key_bytes(bytes) {}
};

class RecordTable {
 public:
  // Longer chains grow into a branch.
  static constexpr uint32_t kLongChain = 8;

  // `log2_buckets`: of the first level, 1 to 30. `first`: a timestamp such that no transaction is older.
  RecordTable(ReclamationDomain& domain, uint32_t log2_buckets, Timestamp first = {});
  ~RecordTable();
  RecordTable(const RecordTable&) = delete;
  RecordTable& operator=(const RecordTable&) = delete;

  static uint64_t Hash(TableId table, std::string_view key) { return HashRecord(table, key); }

  // Prefetches the key's bucket.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&buckets_[hash & mask_]); }
  // Prefetches the first entry of the key's bucket. REQUIRES: a guard.
  void PrefetchFirst(uint64_t hash) const;

  // The live entry of the key, or null. REQUIRES: a guard, for as long as the entry is used.
  RecordEntry* Find(uint64_t hash, TableId table, std::string_view key) const;
  RecordEntry* FindOrCreate(uint64_t hash, TableId table, std::string_view key) {
    return FindOrCreate(hash, table, key, nullptr);
  }
  // R6. As FindOrCreate. If this call made the entry, `*made` becomes true and the entry is deferred: the caller must pass it to Collector::Defer.
  RecordEntry* FindOrCreateDeferred(uint64_t hash, TableId table, std::string_view key, bool* made) {
    return FindOrCreate(hash, table, key, made);
  }

  // The place where a look-up found no entry, and the head that it saw there. Valid under the guard of the look-up.
  class MissedLookup {
    friend class RecordTable;
    std::atomic<uint64_t>* floor_ = nullptr;
    const std::atomic<uintptr_t>* head_ = nullptr;
    uintptr_t seen_ = 0;
  };
  // R6, the three steps of a read: Find; if there is no entry, remember the read; FindAgain.
  RecordEntry* Find(uint64_t hash, TableId table, std::string_view key, MissedLookup* absence) const;
  // False, and nothing done: the bucket remembers a read of another key that may still stop a writer, or the timestamp is too far above the origin.
  // REQUIRES: the timestamp's transaction is open.
  [[nodiscard]] bool RememberRead(const MissedLookup& absence, uint64_t hash, Timestamp timestamp) const {
    return TryRaise(*absence.floor_, hash, timestamp);
  }
  // Remembers the read, if need be as one of every key of the bucket. REQUIRES: as RememberRead, and the guard of the look-up is held.
  void RaiseFloor(const MissedLookup& absence, uint64_t hash, Timestamp timestamp) const {
    Raise(*absence.floor_, hash, timestamp);
  }
  RecordEntry* FindAgain(const MissedLookup& absence, uint64_t hash, TableId table, std::string_view key) const {
    if (absence.head_->load(std::memory_order_seq_cst) == absence.seen_) [[likely]]
      return nullptr;
    return Find(hash, table, key);
  }

  // Raises the entry's last_read to at least `timestamp`. Returns the word just before (the reader looks at its head). A dead word means that
  // the entry was removed: look up again.
  static HeadWord::Value RaiseLastRead(RecordEntry& entry, Timestamp timestamp);

  // R6. Remembers a read of the key. The raise is sequentially consistent and comes before the second look-up. REQUIRES: a guard; the transaction is
  // open, or the caller is the collector's thread.
  void RaiseFloor(uint64_t hash, Timestamp timestamp);
  // As RaiseFloor, for the collector, whose reads may have ended. False, and nothing done: only a floor of all keys could hold the read.
  [[nodiscard]] bool TryRaiseFloor(uint64_t hash, Timestamp timestamp);
  // The latest read of the key in the floors of the buckets on its way, if that is later than `self`; else some read that is not later, or 0.
  // REQUIRES: the transaction with this timestamp is open.
  Timestamp Floor(uint64_t hash, Timestamp self) const;
  // True if one of these floors covers this read.
  bool FloorCovers(uint64_t hash, Timestamp read) const;
  // From now on reads below `low_water` count as stopping no writer. REQUIRES: low-water has been that high.
  void FreeFloorsBelow(Timestamp low_water);
  // When the origin is far below FreeFloorsBelow's low-water, removes the floors below that low-water in the next `buckets` buckets. After all
  // buckets it raises the origin. True: the sweep is not finished. REQUIRES: no guard is held; the collector's thread.
  bool SweepFloors(size_t buckets);

  // R5: removes the entry if it holds no version and its last_read is no longer needed. False: it stays, because it is needed or a bucket is growing.
  // REQUIRES: a guard; the collector's thread.
  bool Remove(RecordEntry* entry, Timestamp low_water);

  size_t entries() const { return entries_.load(std::memory_order_relaxed); }
  size_t entry_bytes() const { return entry_bytes_.load(std::memory_order_relaxed); }
  // Bytes of the buckets on all levels.
  size_t table_bytes() const {
    return (mask_ + 1) * sizeof(Bucket) + branches_.load(std::memory_order_relaxed) * sizeof(Branch);
  }
  uint64_t branches() const { return branches_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kBranchBits = 3;
  static constexpr uint32_t kHashBits = 64;

  // `head`: the first entry, or null, or a branch; for a branch the lowest bit is set.
  struct Bucket {
    std::atomic<uintptr_t> head{0};
    std::atomic<uint64_t> floor{0};  // a FloorWord
  };

  // Aligned so that no bucket straddles a cache line: a walk through a branch touches one line.
  struct Branch {
    alignas(sizeof(Bucket)) std::array<Bucket, size_t{1} << kBranchBits> buckets;
    std::shared_ptr<std::atomic<bool>> settled = std::make_shared<std::atomic<bool>>(false);
  };
  static_assert(sizeof(Bucket) == 16 && std::is_trivially_destructible_v<Bucket>);

  // The bucket of a chain, and its first entry when the head was loaded.
  struct Place {
    Bucket* bucket;
    RecordEntry* first;
    uint32_t level;
    Branch* branch;  // the branch that contains the bucket; null at level 0
    size_t link() const { return level % 2; }
  };

  RecordEntry* FindOrCreate(uint64_t hash, TableId table, std::string_view key, bool* made_deferred);
  // True if a word of one key can hold the timestamp.
  bool InSpan(Timestamp timestamp) const {
    return timestamp.value - origin_.load(std::memory_order_acquire) < FloorWord::kSpan || DEUT_OMITTED("R6.span");
  }
  // True if a read of the key may overwrite the word, which does not cover it. REQUIRES: InSpan was true before the word was loaded.
  bool MayReplace(FloorWord seen, uint64_t hash, Timestamp timestamp) const {
    return seen.bits() == 0 || seen.HasTagOf(hash) ||
           seen.TimestampNear(timestamp).value < free_floors_below_.load(std::memory_order_relaxed) ||
           DEUT_OMITTED("R6.free_below");
  }
  bool TryRaise(std::atomic<uint64_t>& floor, uint64_t hash, Timestamp timestamp) const {
    if (!InSpan(timestamp)) [[unlikely]]
      return false;
    uint64_t seen = floor.load(std::memory_order_seq_cst);
    while (!FloorWord(seen).Covers(hash, timestamp)) {
      if (!MayReplace(FloorWord(seen), hash, timestamp)) [[unlikely]]
        return false;
      if (Replace(floor, &seen, FloorWord::OfKey(hash, timestamp))) break;
    }
    return true;
  }
  // On failure `*seen` becomes the present value.
  static bool Replace(std::atomic<uint64_t>& floor, uint64_t* seen, FloorWord by) {
    DEUT_POINT("record_table.floor.before_cas");
    if (DEUT_CAS_FAILS("record_table.floor.cas")) {
      *seen = floor.load(std::memory_order_seq_cst);
      return false;
    }
    return floor.compare_exchange_weak(*seen, by.bits(), std::memory_order_seq_cst);
  }
  void Raise(std::atomic<uint64_t>& floor, uint64_t hash, Timestamp timestamp) const;
  // Calls `visit` with the floors of all buckets on the way, until it returns false.
  template <typename Visit>
  void ForEachFloor(uint64_t hash, Visit&& visit) const;
  static uintptr_t WordOf(const RecordEntry* entry) { return reinterpret_cast<uintptr_t>(entry); }
  static uintptr_t WordOf(const Branch* branch) { return reinterpret_cast<uintptr_t>(branch) | 1; }
  static bool IsBranch(uintptr_t word) { return (word & 1) != 0; }
  static RecordEntry* EntryOf(uintptr_t word) { return reinterpret_cast<RecordEntry*>(word); }
  static Branch* BranchOf(uintptr_t word) { return reinterpret_cast<Branch*>(word & ~uintptr_t{1}); }

  // Shift that yields the hash bits that choose among a branch's buckets, for a branch below a bucket of this level.
  uint32_t ShiftBelow(uint32_t level) const { return log2_buckets_ + level * kBranchBits; }
  static size_t IndexIn(uint64_t hash, uint32_t shift) { return (hash >> shift) % (size_t{1} << kBranchBits); }
  Place Locate(uint64_t hash) const;
  // `*length` is increased by the number of entries walked.
  static RecordEntry* FindIn(const Place& place, uint64_t hash, TableId table, std::string_view key, uint32_t* length);
  void Grow(const Place& place);
  void SweepFloors(Bucket& bucket, Timestamp below);
  void Unlink(RecordEntry* entry);
  static void DestroyBucket(Bucket& bucket, size_t link, ReclamationDomain& domain);
  static Bucket* MakeBuckets(size_t count);

  ReclamationDomain& domain_;
  const uint32_t log2_buckets_;
  const uint64_t mask_;
  const std::unique_ptr<Bucket[], void (*)(Bucket*)> buckets_;
  // Both are at or below low-water. They seldom change, and are read together with the members above.
  std::atomic<uint64_t> free_floors_below_;
  std::atomic<uint64_t> origin_;        // at or below free_floors_below_, and not above any word of one key
  std::atomic<bool> structure_{false};  // a thread holds the right to change links: an unlinking, or a growth
  std::atomic<uint64_t> branches_{0};
  std::atomic<size_t> entries_{0};
  std::atomic<size_t> entry_bytes_{0};
  // Used by SweepFloors only.
  uint64_t sweep_to_ = 0;  // the next origin; 0: no sweep is in progress
  uint64_t swept_ = 0;     // buckets of the first level
  std::shared_ptr<std::atomic<bool>>
      swept_floors_unseen_;  // set when all guards are released under which a thread can have seen the floors that were swept
};

}  // namespace deut::tc

#endif  // TC_MVCC_RECORD_TABLE_H_

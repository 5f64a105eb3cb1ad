// WriteSet: the keys that one transaction is going to write or has written, in the order of publication. Any thread can read it while the owner
// appends. Scans gather from it (S5); the collector and the commit walk it.
//
// States and steps. Items live in chunks. An item is immutable from its publication on, except `version` and `entry`, which only the owner uses
//   before the transaction is final, and the collector afterwards. Publication is one sequentially consistent store of `count` after the item
//   is complete (R1 step 2: publish, then install, then check). A reader loads `count` (sequentially consistent) and reads the items below
//   it. There is one writer, so no compare-and-swap is needed.
// In key order (S8). The owner of a large set keeps its keys in sorted runs, which are merged as they grow, and a short unsorted tail. The index is
//   immutable, behind one pointer; the owner replaces it as it publishes, and retires the old one. A thread that looks for the keys within some
//   bounds loads the index, then `count`. Every item published before is in the runs, or in the tail between both. So no thread walks the whole
//   of a large set, whether its transaction is open or final.
// Keys are copies in the write set's own memory. They stay readable while the write set exists, even if the record table's entries are removed.
// Thread-safety: Publish by the owner only; everything else by any thread. Callers must keep the transaction record alive. ForEachIn needs a guard of
//   the domain, if Publish was given one.
// Ownership: of keys, items and index; none of versions and entries.
#ifndef TC_TXN_WRITE_SET_H_
#define TC_TXN_WRITE_SET_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/sync/block_pool.h"
#include "common/sync/reclamation.h"
#include "common/testing/test_points.h"

namespace deut::tc {

struct RecordEntry;
struct RecordVersion;

struct WriteItem {
  TableId table;
  std::string_view key;
  uint64_t hash = 0;
  // The owner's newest version of the key. Null for a key that is only declared (R11) or whose install failed.
  RecordVersion* version = nullptr;
  // The entry whose chain has the version. R5: it stays while a committed version is there.
  RecordEntry* entry = nullptr;
};

class WriteSet : public PoolAllocated {
 public:
  struct Key {
    TableId table;
    std::string_view key;
    uint64_t hash = 0;
  };
  // Most items of the tail. A smaller set has no index, and is walked.
  static constexpr uint32_t kTail = 64;

  WriteSet() {}  // leaves first_items_ unconstructed
  ~WriteSet() { delete index_.load(std::memory_order_relaxed); }
  WriteSet(const WriteSet&) = delete;
  WriteSet& operator=(const WriteSet&) = delete;

  // Owner only. The returned item keeps its address. REQUIRES: a guard of the domain, if one is given. Without a domain the set gets no index.
  WriteItem* Publish(TableId table, std::string_view key, uint64_t hash, ReclamationDomain* domain = nullptr) {
    const uint32_t index = count_.load(std::memory_order_relaxed);
    WriteItem* item = Reserve(index);
    std::construct_at(
        item, WriteItem{.table = table, .key = CopyKey(key), .hash = hash, .version = nullptr, .entry = nullptr});
    if (DEUT_OMITTED("R1.publish_order")) {
      count_.store(index + 1, std::memory_order_release);
    } else {
      count_.store(index + 1, std::memory_order_seq_cst);
    }
    if ((index + 1) % kTail == 0 && domain != nullptr) SortTail(*domain);
    return item;
  }

  uint32_t size() const { return count_.load(std::memory_order_seq_cst); }

  // Calls `visit(item)` for the items published before the call.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    WalkFrom(0, &first_, size(), visit);
  }

  // Calls `visit(key)` for keys of the table in [low, high) (an empty high is above every key): from each run at most the first `most` in scan
  // order, each once. From the tail it passes all.
  template <typename Visit>
  void ForEachIn(TableId table, std::string_view low, std::string_view high, bool ascending, size_t most,
                 Visit&& visit) const {
    const Index* const index = index_.load(std::memory_order_seq_cst);
    DEUT_POINT("write_set.index_loaded");
    const uint32_t count = size();
    const auto inside = [&](std::string_view key) { return key >= low && (high.empty() || key < high); };
    if (index != nullptr) {
      for (const auto& run : index->runs) {
        const auto begin = std::partition_point(run->begin(), run->end(), [&](const Key& key) {
          return key.table < table || (key.table == table && key.key < low);
        });
        const auto end = std::partition_point(begin, run->end(),
                                              [&](const Key& key) { return key.table == table && inside(key.key); });
        const auto taken =
            std::min<ptrdiff_t>(end - begin, static_cast<ptrdiff_t>(std::min<size_t>(most, PTRDIFF_MAX)));
        const auto first = ascending ? begin : end - taken;
        for (auto it = first; it != first + taken; ++it) visit(*it);
      }
    }
    if (index != nullptr && DEUT_OMITTED("S8.walk_tail")) return;
    WalkFrom(index == nullptr ? 0 : index->covered, index == nullptr ? &first_ : index->tail, count,
             [&](const WriteItem& item) {
               if (item.table == table && inside(item.key)) visit(Key{item.table, item.key, item.hash});
             });
  }

  // REQUIRES: size() is not 0.
  const WriteItem& first() const { return first_items_[0]; }
  // Prefetches what a walk reads first.
  void Prefetch() const {
    __builtin_prefetch(this);
    __builtin_prefetch(&first_items_[0]);
    __builtin_prefetch(&first_items_[1]);
  }

  // Memory of the items, their keys and the index (approximate).
  size_t bytes() const { return bytes_ + index_bytes_; }

 private:
  static constexpr uint32_t kFirstItems = 4;
  static constexpr uint32_t kChunkItems = 64;
  static constexpr size_t kKeyChunkBytes = 4096;

  struct Chunk {
    std::atomic<Chunk*> next{nullptr};
    std::vector<WriteItem> items;
  };
  struct Index {
    std::vector<std::shared_ptr<const std::vector<Key>>> runs;  // the largest first
    uint32_t covered = 0;                                       // number of items in the runs
    const Chunk* tail = nullptr;                                // the chunk of the last of these items
  };
  // A run is merged with the one before it if that has at most kTier times its keys.
  static constexpr size_t kTier = 4;

  // A key can be published repeatedly. Without duplicates a reader that takes the first few keys of a run sees that others follow.
  static void LeaveOutSame(std::vector<Key>* sorted) {
    if (DEUT_OMITTED("S8.run_keys_once")) return;
    const auto same = [](const Key& a, const Key& b) { return a.table == b.table && a.key == b.key; };
    sorted->erase(std::unique(sorted->begin(), sorted->end(), same), sorted->end());
  }
  static bool Before(const Key& a, const Key& b) { return a.table != b.table ? a.table < b.table : a.key < b.key; }

  // Visits the items from `begin` to `end`; `chunk` is the chunk of the item before `begin`.
  template <typename Visit>
  void WalkFrom(uint32_t begin, const Chunk* chunk, uint32_t end, Visit&& visit) const {
    for (uint32_t i = begin; i < end; ++i) {
      const uint32_t slot = i < kFirstItems ? i : (i - kFirstItems) % kChunkItems;
      if (i >= kFirstItems && slot == 0) chunk = chunk->next.load(std::memory_order_acquire);
      visit(i < kFirstItems ? first_items_[slot] : chunk->items[slot]);
    }
  }

  // Owner only: moves the items of the tail into the index.
  void SortTail(ReclamationDomain& domain) {
    const Index* const old = index_.load(std::memory_order_relaxed);
    auto index = std::make_unique<Index>();
    if (old != nullptr) *index = *old;
    auto run = std::make_shared<std::vector<Key>>();
    WalkFrom(index->covered, old == nullptr ? &first_ : index->tail, count_.load(std::memory_order_relaxed),
             [&](const WriteItem& item) { run->push_back(Key{item.table, item.key, item.hash}); });
    std::sort(run->begin(), run->end(), Before);
    LeaveOutSame(run.get());
    while (!index->runs.empty() && index->runs.back()->size() <= kTier * run->size()) {
      const std::vector<Key>& larger = *index->runs.back();
      auto merged = std::make_shared<std::vector<Key>>();
      merged->reserve(larger.size() + run->size());
      std::merge(larger.begin(), larger.end(), run->begin(), run->end(), std::back_inserter(*merged), Before);
      LeaveOutSame(merged.get());
      index->runs.pop_back();
      run = std::move(merged);
    }
    index->runs.push_back(std::move(run));
    index->covered = count_.load(std::memory_order_relaxed);
    index->tail = last_;
    index_bytes_ = index->covered * sizeof(Key);
    DEUT_POINT("write_set.index_built");
    index_.store(index.release(), std::memory_order_seq_cst);
    if (old != nullptr)
      domain.RetireObject(const_cast<Index*>(old), sizeof(Index) + old->runs.back()->size() * sizeof(Key));
  }

  WriteItem* Reserve(uint32_t index) {
    if (index < kFirstItems) return &first_items_[index];
    const uint32_t slot = (index - kFirstItems) % kChunkItems;
    if (slot == 0) {
      auto chunk = std::make_unique<Chunk>();
      chunk->items.resize(kChunkItems);
      bytes_ += sizeof(Chunk) + kChunkItems * sizeof(WriteItem);
      last_->next.store(chunk.get(), std::memory_order_release);
      last_ = chunk.get();
      chunks_.push_back(std::move(chunk));
    }
    return &last_->items[slot];
  }

  std::string_view CopyKey(std::string_view key) {
    if (key.size() > key_space_) {
      const size_t bytes = std::max(key.size(), keys_.empty() ? sizeof(first_keys_) : kKeyChunkBytes);
      if (keys_.empty() && key.size() <= sizeof(first_keys_) && !first_keys_used_) {
        first_keys_used_ = true;
        key_end_ = first_keys_;
        key_space_ = sizeof(first_keys_);
      } else {
        first_keys_used_ = true;
        keys_.push_back(std::make_unique<char[]>(bytes));
        bytes_ += bytes;
        key_end_ = keys_.back().get();
        key_space_ = bytes;
      }
    }
    std::memcpy(key_end_, key.data(), key.size());
    const std::string_view copy(key_end_, key.size());
    key_end_ += key.size();
    key_space_ -= key.size();
    return copy;
  }

  // Most sets have one item. The members that such a set uses lie together at its beginning, and items stay unconstructed until they are
  // published. So it is cheap to make, walk and free.
  std::atomic<uint32_t> count_{0};
  bool first_keys_used_ = false;
  std::atomic<const Index*> index_{nullptr};
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::unique_ptr<char[]>> keys_;
  union {
    std::array<WriteItem, kFirstItems> first_items_;
  };
  char first_keys_[128];
  char* key_end_ = nullptr;
  size_t key_space_ = 0;
  size_t bytes_ = 0;
  size_t index_bytes_ = 0;
  Chunk first_;
  Chunk* last_ = &first_;
};

}  // namespace deut::tc

#endif  // TC_TXN_WRITE_SET_H_

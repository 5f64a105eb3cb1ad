// WriteSet: the keys one transaction is going to write or has written, in the order of publication, readable by any thread while
// the owner appends. Scans gather from it (S5), the collector and the commit walk it.
//
// States and steps. Items live in chunks; an item is immutable from its publication on, except `version` and `superseded`, which
//   only the owner uses before the transaction is final, and the collector afterwards. Publication is one sequentially consistent
//   store of `count` after the item is complete (R1 step 2: publish, then install, then check). A reader loads `count`
//   (sequentially consistent) and reads the items below it; there is one writer, so nobody loses.
// In key order. Whoever scans may sort a large set once its transaction publishes no more: it builds a list of its own and installs it
//   by compare-and-swap from null; who loses takes the winner's. So a scan looks at the keys within its bounds, not at all of them.
// Keys are copies in the write set's own memory: they stay readable as long as the transaction record lives (R7), whatever becomes
//   of the record table's entries.
// Thread-safety: Publish by the owner only; Sort by any thread once the transaction is final; everything else by any thread. All keep the
//   transaction record alive.
#ifndef TC_TXN_WRITE_SET_H_
#define TC_TXN_WRITE_SET_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/testing/test_points.h"

namespace deut::tc {

struct RecordVersion;

struct WriteItem {
  TableId table;
  std::string_view key;
  uint64_t hash = 0;
  // The owner's newest version of the key; null for a key that is only declared (R11) or whose install failed.
  RecordVersion* version = nullptr;
};

class WriteSet {
 public:
  struct Key {
    TableId table;
    std::string_view key;
    uint64_t hash = 0;
  };
  // Smaller sets are walked.
  static constexpr uint32_t kWorthSorting = 48;

  WriteSet() = default;
  ~WriteSet() { delete sorted_.load(std::memory_order_relaxed); }
  WriteSet(const WriteSet&) = delete;
  WriteSet& operator=(const WriteSet&) = delete;

  // Owner only. The returned item stays where it is.
  WriteItem* Publish(TableId table, std::string_view key, uint64_t hash) {
    const uint32_t index = count_.load(std::memory_order_relaxed);
    WriteItem* item = Reserve(index);
    *item = WriteItem{.table = table, .key = CopyKey(key), .hash = hash, .version = nullptr};
    if (DEUT_OMITTED("R1.publish_order")) {
      count_.store(index + 1, std::memory_order_release);
    } else {
      count_.store(index + 1, std::memory_order_seq_cst);
    }
    return item;
  }

  uint32_t size() const { return count_.load(std::memory_order_seq_cst); }

  // Calls `visit(item)` for the items published before the call.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    const uint32_t count = size();
    const Chunk* chunk = &first_;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t slot = i < kFirstItems ? i : (i - kFirstItems) % kChunkItems;
      if (i >= kFirstItems && slot == 0) chunk = chunk->next.load(std::memory_order_acquire);
      visit(i < kFirstItems ? first_items_[slot] : chunk->items[slot]);
    }
  }

  // All keys by table and key; null until somebody has sorted them.
  const std::vector<Key>* sorted() const { return sorted_.load(std::memory_order_acquire); }
  // REQUIRES: the transaction is final.
  const std::vector<Key>& Sort() const {
    auto sorting = std::make_unique<std::vector<Key>>();
    sorting->reserve(size());
    ForEach([&](const WriteItem& item) { sorting->push_back(Key{item.table, item.key, item.hash}); });
    std::sort(sorting->begin(), sorting->end(),
              [](const Key& a, const Key& b) { return a.table != b.table ? a.table < b.table : a.key < b.key; });
    const std::vector<Key>* sorted = nullptr;
    while (sorted == nullptr) {
      DEUT_POINT("write_set.sort.before_cas");
      if (DEUT_CAS_FAILS("write_set.sort.cas")) {
        sorted = sorted_.load(std::memory_order_acquire);
      } else if (sorted_.compare_exchange_strong(sorted, sorting.get(), std::memory_order_acq_rel)) {
        return *sorting.release();
      }
    }
    return *sorted;
  }

  size_t bytes() const {
    const std::vector<Key>* const keys = sorted();
    return bytes_ + (keys == nullptr ? 0 : keys->capacity() * sizeof(Key));
  }

 private:
  static constexpr uint32_t kFirstItems = 4;
  static constexpr uint32_t kChunkItems = 64;
  static constexpr size_t kKeyChunkBytes = 4096;

  struct Chunk {
    std::atomic<Chunk*> next{nullptr};
    std::vector<WriteItem> items;
  };

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

  std::atomic<uint32_t> count_{0};
  bool first_keys_used_ = false;
  std::array<WriteItem, kFirstItems> first_items_;
  Chunk first_;
  Chunk* last_ = &first_;
  char first_keys_[128];
  char* key_end_ = nullptr;
  size_t key_space_ = 0;
  size_t bytes_ = 0;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::unique_ptr<char[]>> keys_;
  mutable std::atomic<const std::vector<Key>*> sorted_{nullptr};
};

}  // namespace deut::tc

#endif  // TC_TXN_WRITE_SET_H_

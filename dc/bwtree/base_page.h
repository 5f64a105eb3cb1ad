// BasePage: the consolidated part of a page: one contiguous allocation, immutable, keys sorted and searched in place.
//
// Layout (in memory only; native byte order except where said):
//   page     := header low high prefix pad8 head:u64{count} offset:u32{count + 1} entry{count}
//   entry    := record     in a leaf: exactly as protocol/record_batch.h has it, so that a scan copies runs of entries at once
//             | child      in an inner page
//   child    := key_bytes:u16 child:u32 key
// low, high: the page's bounds. prefix: what all compared keys have in common. head: the 8 bytes behind the prefix, big-endian,
// padded with zeros, so that most comparisons are of integers that lie together. offset: from the start of the entries; its
// top bit says tombstone; the last one is the end.
// The key of an inner page's first entry is the page's low key and is never compared (every key sent here is at or above it).
//
// Versions: a record carries its own version in its entry. Rule X1 would allow to give it up below the consolidation
// timestamp; nothing would be gained in memory, since an entry is in the format of the answer. Tombstones are what is
// given up; `flat` is the highest timestamp ever given up in this page.
// Thread-safety: immutable after Build. Ownership: one allocation; views into it live as long as it does.
#ifndef DC_BWTREE_BASE_PAGE_H_
#define DC_BWTREE_BASE_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "dc/bwtree/node.h"

namespace deut::dc {

// An entry on its way into a page. `data`: the key, and in a leaf the value behind it without a gap.
struct PageEntry {
  const char* data = nullptr;
  uint16_t key_bytes = 0;
  bool tombstone = false;    // leaf
  uint32_t value_bytes = 0;  // leaf
  Version version;           // leaf
  PageId child;              // inner

  std::string_view key() const { return {data, key_bytes}; }
  std::string_view value() const { return {data + key_bytes, value_bytes}; }
};

class BasePage : public Node {
 public:
  struct Spec {
    uint8_t level = 0;
    std::string_view low;   // empty: below every key
    std::string_view high;  // empty, and sibling none: above every key
    PageId sibling;
    Timestamp flat;
    absl::Span<const PageEntry> entries;  // strictly ascending keys in [low, high)
  };
  static Owned<BasePage> Build(const Spec& spec);

  uint32_t count() const { return count_; }
  size_t bytes() const { return bytes_; }
  std::string_view low() const { return {bounds(), low_bytes_}; }
  Timestamp flat() const { return flat_; }
  uint32_t tombstones() const { return tombstones_; }
  uint32_t live_records() const { return count_ - tombstones_; }

  std::string_view key(size_t i) const {
    const char* entry = entry_at(i);
    return {entry + entry_header_bytes(), KeyBytes(entry)};
  }
  // Leaf.
  PageEntry record(size_t i) const;
  bool tombstone(size_t i) const { return (offsets()[i] & kTombstoneBit) != 0; }
  // Leaf: the entries [begin, end) as they lie, which are records of a RecordBatch.
  std::string_view run(size_t begin, size_t end) const {
    return {entries() + offset(begin), offset(end) - offset(begin)};
  }
  // Bytes of the entries [begin, end).
  size_t run_bytes(size_t begin, size_t end) const { return offset(end) - offset(begin); }
  // Inner.
  PageId child(size_t i) const {
    uint32_t id;
    std::memcpy(&id, entry_at(i) + sizeof(uint16_t), sizeof(id));
    return PageId(id);
  }

  // The first entry whose key is >= key (> key for UpperBound); count() if there is none. In an inner page the first entry
  // counts as below every key.
  size_t LowerBound(std::string_view key) const { return Bound<false>(key); }
  size_t UpperBound(std::string_view key) const { return Bound<true>(key); }
  // The entry with this key; count() if there is none. Leaf.
  size_t Find(std::string_view key) const;

 private:
  BasePage() = default;

  static constexpr uint32_t kTombstoneBit = uint32_t{1} << 31;
  static constexpr size_t kRecordHeaderBytes = 18;
  static constexpr size_t kChildHeaderBytes = sizeof(uint16_t) + sizeof(uint32_t);

  template <bool kAbove>
  size_t Bound(std::string_view key) const;
  size_t first_compared() const { return is_leaf() ? 0 : 1; }

  const char* bounds() const { return reinterpret_cast<const char*>(this + 1); }
  const char* prefix() const { return bounds() + low_bytes_ + own_fence_.high_bytes; }
  const uint64_t* heads() const { return reinterpret_cast<const uint64_t*>(bounds() + bounds_bytes_); }
  const uint32_t* offsets() const { return reinterpret_cast<const uint32_t*>(heads() + count_); }
  const char* entries() const { return reinterpret_cast<const char*>(offsets() + count_ + 1); }
  size_t offset(size_t i) const { return offsets()[i] & ~kTombstoneBit; }
  const char* entry_at(size_t i) const { return entries() + offset(i); }
  size_t entry_header_bytes() const { return is_leaf() ? kRecordHeaderBytes : kChildHeaderBytes; }
  static uint16_t KeyBytes(const char* entry) {
    uint16_t bytes;
    std::memcpy(&bytes, entry, sizeof(bytes));
    return bytes;
  }

  Fence own_fence_;
  Timestamp flat_;
  uint64_t bytes_ = 0;
  uint32_t count_ = 0;
  uint32_t tombstones_ = 0;
  uint32_t low_bytes_ = 0;
  uint32_t prefix_bytes_ = 0;
  uint32_t bounds_bytes_ = 0;  // low, high, prefix and padding
};

// The bytes of `key` behind `skip` as an integer that sorts like them.
inline uint64_t KeyHead(std::string_view key, size_t skip) {
  uint64_t head = 0;
  const size_t left = key.size() > skip ? key.size() - skip : 0;
  if (left >= sizeof(head)) [[likely]] {
    std::memcpy(&head, key.data() + skip, sizeof(head));
  } else if (left != 0) {
    std::memcpy(&head, key.data() + skip, left);
  }
  return __builtin_bswap64(head);
}

}  // namespace deut::dc

#endif  // DC_BWTREE_BASE_PAGE_H_

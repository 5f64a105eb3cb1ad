// BasePage: the consolidated part of a page. It is one contiguous, immutable allocation; its keys are sorted and
// searched in place.
//
// Layout (in memory only; native byte order except where stated):
//   page   := header sample:u64{groups} low high prefix pad64 key_prefix:u64{groups * 8} offset:u32{count + 1}
//             entry{count}
//   entry  := record     in a leaf: exactly as protocol/record_batch.h has it, so that a scan copies runs of entries at once
//           | child      in an inner page
//   child  := key_bytes:u16 child:u32 key
// - low, high: the page's bounds.
// - prefix: the common prefix of all compared keys.
// - key_prefix: KeyPrefix64 of the key behind the prefix. A group of 8 key prefixes fills one cache line; the last
//   group is padded with all ones.
// - sample: the first key prefix of each group.
// - offset: from the start of the entries, in 29 bits. Its top bit marks a tombstone; the two below it say where the
//   page's image has the entry (StoredIn). The last one is the end.
// A search takes few cache misses. Header and samples lie together; the samples select the one line of key prefixes to
// read, and the key prefixes select the offset and its entry. Whole keys are compared only where key prefixes are
// equal.
// The key of an inner page's first entry is the page's low key and is never compared (every key sought here is at or
// above it).
//
// Versions: a record carries its own version in its entry. Rule X1 would allow the page to drop it below the
// consolidation timestamp. That would save no memory, since an entry has the format of the answer. The page drops
// tombstones only; `flat` is the highest timestamp ever dropped in this page.
// Thread-safety: immutable after Build. Ownership: one allocation; views into it live as long as the page.
#ifndef DC_BWTREE_BASE_PAGE_H_
#define DC_BWTREE_BASE_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "common/base/ids.h"
#include "dc/bwtree/node.h"

namespace deut::dc {

// A single entry. `data`: the key, followed in a leaf by the value, without a gap.
struct PageEntry {
  const char* data = nullptr;
  uint16_t key_bytes = 0;
  bool tombstone = false;  // leaf
  // Leaf: where the image has this version of the record.
  StoredIn stored_in = StoredIn::kBasePart;
  uint32_t value_bytes = 0;  // leaf
  Version version;           // leaf
  PageId child;              // inner

  std::string_view key() const { return {data, key_bytes}; }
  std::string_view value() const { return {data + key_bytes, value_bytes}; }
};

class BasePage : public Node {
 public:
  // The content from which a page is built, in ascending order of keys: runs of entries of older pages, and single
  // entries.
  class Content {
   public:
    // `at_most`: the image has all these entries in such a part, whatever they say of themselves.
    void AddRun(const BasePage& page, size_t begin, size_t end, StoredIn at_most = StoredIn::kNoPart);
    void Add(const PageEntry& entry);
    bool empty() const { return pieces_.empty(); }

   private:
    friend class BasePage;
    struct Piece {
      const BasePage* run = nullptr;  // null: the piece is `entry`
      uint32_t begin = 0;
      uint32_t end = 0;
      StoredIn at_most = StoredIn::kNoPart;
      PageEntry entry;

      size_t count() const { return run == nullptr ? 1 : end - begin; }
    };
    std::string_view key(size_t i) const;

    absl::InlinedVector<Piece, 32> pieces_;
    size_t count_ = 0;
  };

  struct Bounds {
    std::string_view low;   // empty: below every key
    std::string_view high;  // empty, and sibling none: above every key
    PageId sibling;
  };

  // Builds a stub: the bounds of a leaf whose content is on storage. `sibling` may be kUnknownPage.
  static Owned<BasePage> BuildStub(const Bounds& bounds);
  bool stub() const { return stub_ != 0; }

  const StoredState& stored() const { return stored_; }
  // True if a split or merge has changed the page's bounds or children since its image was written.
  bool restructured() const { return restructured_ != 0; }
  // Where the image says that records are gone of which the page has no trace, as of the page's building (RemovalsOf in
  // page_state.h). Until it is set: kNoPart, because no image has the page.
  StoredIn removals() const { return static_cast<StoredIn>(removals_); }
  // Set the state of the page's image. REQUIRE: the page is owned.
  void SetStored(uint64_t serial, StoredIn in) {
    stored_.serial = serial;
    stored_.in.store(in, std::memory_order_relaxed);
  }
  void SetRestructured(bool restructured) { restructured_ = restructured ? 1 : 0; }
  void SetRemovals(StoredIn in) { removals_ = static_cast<uint32_t>(in); }

  // The most bytes of all entries of a page.
  static constexpr size_t kMaxEntriesBytes = (size_t{1} << 29) - 1;
  // Builds a page. REQUIRES: strictly ascending keys in [low, high), and at most kMaxEntriesBytes.
  static Owned<BasePage> Build(uint8_t level, const Bounds& bounds, Timestamp flat, const Content& content);

  uint32_t count() const { return count_; }
  size_t bytes() const { return base_bytes; }
  // Bytes of the page's block.
  size_t block_bytes() const { return PageMemory::BytesOf(base_bytes); }
  std::string_view low() const { return {bounds(), low_bytes_}; }
  Timestamp flat() const { return flat_; }
  // Leaf: an upper bound of the entries' timestamps. An entry with exactly this timestamp may be gone, or may never
  // have existed.
  Timestamp newest() const { return newest_; }
  uint32_t tombstones() const { return tombstones_; }
  uint32_t live_records() const { return count_ - tombstones_; }

  std::string_view key(size_t i) const {
    const char* entry = entry_at(i);
    return {entry + entry_header_bytes(), KeyBytes(entry)};
  }
  // Leaf: returns the i-th record.
  PageEntry record(size_t i) const;
  bool tombstone(size_t i) const { return (offsets()[i] & kTombstoneBit) != 0; }
  // Leaf: where the image has the i-th entry, as of the page's building. Nothing of it counts while removals() is
  // kNoPart.
  StoredIn stored_in(size_t i) const { return static_cast<StoredIn>((offsets()[i] & kStoredInMask) >> kStoredInShift); }
  // Leaf: the bytes of the entries [begin, end), which are records of a RecordBatch.
  std::string_view run(size_t begin, size_t end) const { return {entries() + offset(begin), run_bytes(begin, end)}; }
  // Bytes of the entries [begin, end).
  size_t run_bytes(size_t begin, size_t end) const { return offset(end) - offset(begin); }
  // Inner: returns the i-th child.
  PageId child(size_t i) const {
    uint32_t id;
    std::memcpy(&id, entry_at(i) + sizeof(uint16_t), sizeof(id));
    return PageId(id);
  }

  // LowerBound returns the first entry whose key is >= `key`, UpperBound the first whose key is > `key`; count() if
  // there is none. In an inner page the first entry counts as below every key.
  size_t LowerBound(std::string_view key) const { return Bound<false>(key); }
  size_t UpperBound(std::string_view key) const { return Bound<true>(key); }
  // Leaf: returns the entry with this key; count() if there is none.
  size_t Find(std::string_view key) const;

  // Prefetches the lines that a search of the page reads first, without reading the page. Accepts any address, also
  // null.
  static void Prefetch(const void* page) {
    for (uintptr_t line = 0; line < 5; ++line)
      __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(page) + line * 64));
  }
  // The next two steps of a search for `key`: prefetch the line of key prefixes, then the entry. Each reads the lines
  // that the step before has prefetched.
  void PrefetchKeyPrefixes(std::string_view key) const;
  void PrefetchEntry(std::string_view key) const;
  // Prefetches the first entries. It reads the header.
  void PrefetchEntries() const {
    for (size_t line = 0; line < 4; ++line) __builtin_prefetch(entries() + line * 64);
  }

 private:
  BasePage() = default;

  static constexpr uint32_t kTombstoneBit = uint32_t{1} << 31;
  static constexpr int kStoredInShift = 29;
  static constexpr uint32_t kStoredInMask = uint32_t{3} << kStoredInShift;
  static constexpr uint32_t kOffsetMask = (uint32_t{1} << kStoredInShift) - 1;
  static_assert(kMaxEntriesBytes == kOffsetMask);
  static constexpr size_t kRecordHeaderBytes = 18;
  static constexpr size_t kChildHeaderBytes = sizeof(uint16_t) + sizeof(uint32_t);
  static constexpr size_t kGroup = 8;

  struct Sizes;
  static Sizes SizesOf(uint8_t level, const Bounds& bounds, const Content& content);
  void FillEntries(const Content& content);
  void FillKeyPrefixes(const Content& content);

  template <bool kAbove>
  size_t Bound(std::string_view key) const;
  // Computes the key prefix by which to search for the key. False: no key need be compared, and the key's position is
  // *place.
  bool KeyPrefixOf(std::string_view key, uint64_t* key_prefix, size_t* place) const;
  // The first group that starts at or above `key_prefix`. So the first entry at or above `key_prefix` is in the group
  // before, or is the group's first.
  size_t GroupOf(uint64_t key_prefix) const;
  // That entry, or the first entry that is compared if that is larger; perhaps count().
  size_t FirstAtLeast(uint64_t key_prefix, size_t group) const;
  size_t first_compared() const { return is_leaf() ? 0 : 1; }
  size_t groups() const { return (count_ + kGroup - 1) / kGroup; }

  const uint64_t* samples() const { return reinterpret_cast<const uint64_t*>(this + 1); }
  const char* bounds() const { return reinterpret_cast<const char*>(samples() + groups()); }
  const char* prefix() const { return bounds() + low_bytes_ + own_fence_.high_bytes; }
  const uint64_t* key_prefixes() const {
    return reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(this) + key_prefixes_at_);
  }
  const uint32_t* offsets() const { return reinterpret_cast<const uint32_t*>(key_prefixes() + groups() * kGroup); }
  const char* entries() const { return reinterpret_cast<const char*>(offsets() + count_ + 1); }
  size_t offset(size_t i) const { return offsets()[i] & kOffsetMask; }
  const char* entry_at(size_t i) const { return entries() + offset(i); }
  static constexpr size_t EntryHeaderBytes(uint8_t level) {
    return level == 0 ? kRecordHeaderBytes : kChildHeaderBytes;
  }
  size_t entry_header_bytes() const { return EntryHeaderBytes(level); }
  static uint16_t KeyBytes(const char* entry) {
    uint16_t bytes;
    std::memcpy(&bytes, entry, sizeof(bytes));
    return bytes;
  }

  uint32_t count_ = 0;
  uint16_t prefix_bytes_ = 0;  // lengths of keys, which have at most a few thousand bytes
  uint16_t low_bytes_ = 0;
  uint32_t key_prefixes_at_ = 0;  // offset from the start of the page
  // At most the number of entries. Each entry has a header, and all of them have less than 2^29 bytes, so 28 bits
  // suffice.
  uint32_t tombstones_ : 28 = 0;
  uint32_t removals_ : 2 = static_cast<uint32_t>(StoredIn::kNoPart);
  uint32_t stub_ : 1 = 0;
  uint32_t restructured_ : 1 = 0;
  Timestamp flat_;
  Timestamp newest_;
  Fence own_fence_;
  StoredState stored_;
};

static_assert(alignof(BasePage) <= PageMemory::kAlignment);

inline bool IsMostlyTombstones(const BasePage& page) { return page.tombstones() > page.count() / 2; }

}  // namespace deut::dc

#endif  // DC_BWTREE_BASE_PAGE_H_

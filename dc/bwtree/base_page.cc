#include "dc/bwtree/base_page.h"

#include <algorithm>
#include <bit>
#include <new>

#include "common/base/check.h"
#include "dc/bwtree/page_memory.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

static_assert(std::endian::native == std::endian::little, "entries are in the little-endian format of record_batch.h");

constexpr size_t kLineBytes = 64;

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const size_t limit = std::min(a.size(), b.size());
  size_t common = 0;
  while (common < limit && a[common] == b[common]) ++common;
  return common;
}

// Returns the first of `count` ascending numbers that is >= number. It has no branch that depends on the numbers.
size_t LowerBoundOf(const uint64_t* numbers, size_t count, uint64_t number) {
  size_t begin = 0;
  while (count > 1) {
    const size_t half = count / 2;
    begin += numbers[begin + half - 1] < number ? half : 0;
    count -= half;
  }
  return begin + ((count == 1 && numbers[begin] < number) ? 1 : 0);
}

template <typename T>
void Write(char*& to, const T& value) {
  std::memcpy(to, &value, sizeof(value));
  to += sizeof(value);
}

}  // namespace

void BasePage::Content::AddRun(const BasePage& page, size_t begin, size_t end, StoredIn at_most) {
  if (begin >= end) return;
  Piece piece;
  piece.run = &page;
  piece.begin = static_cast<uint32_t>(begin);
  piece.end = static_cast<uint32_t>(end);
  piece.at_most = at_most;
  pieces_.push_back(piece);
  count_ += end - begin;
}

void BasePage::Content::Add(const PageEntry& entry) {
  Piece piece;
  piece.entry = entry;
  pieces_.push_back(piece);
  ++count_;
}

// REQUIRES: i is the first entry, the second, or the last.
std::string_view BasePage::Content::key(size_t i) const {
  const auto at = [](const Piece& piece, size_t n) {
    return piece.run == nullptr ? piece.entry.key() : piece.run->key(piece.begin + n);
  };
  if (i + 1 == count_) return at(pieces_.back(), pieces_.back().count() - 1);
  return i < pieces_.front().count() ? at(pieces_.front(), i) : at(pieces_[1], 0);
}

struct BasePage::Sizes {
  size_t prefix = 0;
  size_t entries = 0;
  size_t up_to_bounds = 0;  // header, samples, low, high, prefix
  size_t key_prefixes = 0;
  size_t total = 0;
};

BasePage::Sizes BasePage::SizesOf(uint8_t level, const Bounds& bounds, const Content& content) {
  Sizes sizes;
  const size_t count = content.count_;
  const size_t first = level == 0 ? 0 : 1;
  if (count > first) sizes.prefix = CommonPrefix(content.key(first), content.key(count - 1));
  for (const Content::Piece& piece : content.pieces_) {
    sizes.entries += piece.run != nullptr ? piece.run->run_bytes(piece.begin, piece.end)
                                          : EntryHeaderBytes(level) + piece.entry.key_bytes + piece.entry.value_bytes;
  }
  DEUT_CHECK(sizes.entries <= kMaxEntriesBytes);
  const size_t groups = (count + kGroup - 1) / kGroup;
  sizes.up_to_bounds =
      sizeof(BasePage) + groups * sizeof(uint64_t) + bounds.low.size() + bounds.high.size() + sizes.prefix;
  sizes.key_prefixes = groups * kGroup * sizeof(uint64_t);
  // The alignment of the key prefixes takes at most one line.
  sizes.total = sizes.up_to_bounds + kLineBytes + sizes.key_prefixes + (count + 1) * sizeof(uint32_t) + sizes.entries;
  return sizes;
}

Owned<BasePage> BasePage::Build(uint8_t level, const Bounds& bounds, Timestamp flat, const Content& content) {
  static_assert(kRecordHeaderBytes == RecordBatch::kHeaderBytes);
  // The page keeps the lengths of its low key and its prefix in 16 bits.
  DEUT_DCHECK(std::max(bounds.low.size(), bounds.high.size()) <= kMaxKeyBytes);
  const Sizes sizes = SizesOf(level, bounds, content);
  char* memory = static_cast<char*>(PageMemory::Allocate(sizes.total));
  Owned<BasePage> page(new (memory) BasePage);
  page->base = page.get();
  page->fence = &page->own_fence_;
  page->kind = NodeKind::kBase;
  page->level = level;
  page->base_bytes = static_cast<uint32_t>(sizes.total);
  page->flat_ = flat;
  page->count_ = static_cast<uint32_t>(content.count_);
  page->low_bytes_ = static_cast<uint16_t>(bounds.low.size());
  page->prefix_bytes_ = static_cast<uint16_t>(sizes.prefix);
  const auto address = reinterpret_cast<uintptr_t>(memory) + sizes.up_to_bounds;
  page->key_prefixes_at_ = static_cast<uint32_t>(sizes.up_to_bounds + (kLineBytes - address % kLineBytes) % kLineBytes);

  char* to = const_cast<char*>(page->bounds());
  to = std::copy(bounds.low.begin(), bounds.low.end(), to);
  page->own_fence_ = Fence{to, static_cast<uint32_t>(bounds.high.size()), bounds.sibling};
  if (bounds.sibling != kNoPage) page->high_key_prefix = KeyPrefix64(bounds.high);
  to = std::copy(bounds.high.begin(), bounds.high.end(), to);
  if (sizes.prefix != 0) std::memcpy(to, content.key(page->first_compared()).data(), sizes.prefix);
  page->FillEntries(content);
  // The allocation has the size that SizesOf added up; FillEntries measures the entries by itself.
  DEUT_DCHECK(page->run_bytes(0, page->count()) == sizes.entries);
  page->FillKeyPrefixes(content);
  // The callers take entries from other pages, whose bounds may have been wider.
  DEUT_DCHECK(page->count() == 0 || (level == 0 ? page->key(0) >= bounds.low : page->key(0) == bounds.low));
  DEUT_DCHECK(page->count() == 0 || bounds.sibling == kNoPage || page->key(page->count() - 1) < bounds.high);
  return page;
}

Owned<BasePage> BasePage::BuildStub(const Bounds& bounds) {
  Owned<BasePage> page = Build(/*level=*/0, bounds, Timestamp(), Content());
  page->stub_ = 1;
  page->SetStored(/*serial=*/0, StoredIn::kDeltaPart);
  // It is not known here which keys the delta parts remove, so removals stay.
  page->SetRemovals(StoredIn::kDeltaPart);
  return page;
}

void BasePage::FillEntries(const Content& content) {
  auto* const offsets = const_cast<uint32_t*>(this->offsets());
  char* const entries = const_cast<char*>(this->entries());
  char* to = entries;
  size_t i = 0;
  for (const Content::Piece& piece : content.pieces_) {
    if (piece.run != nullptr) {
      // The offsets of a run move by one distance. It wraps around if the run comes to lie nearer to the front.
      const std::string_view run = piece.run->run(piece.begin, piece.end);
      const uint32_t* from = piece.run->offsets() + piece.begin;
      const uint32_t shift =
          static_cast<uint32_t>(to - entries) - static_cast<uint32_t>(piece.run->offset(piece.begin));
      const uint32_t at_most = static_cast<uint32_t>(piece.at_most) << kStoredInShift;
      for (size_t n = 0; n < piece.count(); ++n) {
        offsets[i + n] =
            ((from[n] & kOffsetMask) + shift) | (from[n] & kTombstoneBit) | std::min(from[n] & kStoredInMask, at_most);
      }
      if (piece.run->tombstones_ != 0) {
        for (size_t n = 0; n < piece.count(); ++n) tombstones_ += from[n] >> 31;
      }
      newest_ = std::max(newest_, piece.run->newest_);
      std::memcpy(to, run.data(), run.size());
      to += run.size();
      i += piece.count();
      continue;
    }
    const PageEntry& entry = piece.entry;
    offsets[i] = static_cast<uint32_t>(to - entries);
    Write(to, entry.key_bytes);
    if (is_leaf()) {
      offsets[i] |= static_cast<uint32_t>(entry.stored_in) << kStoredInShift;
      if (entry.tombstone) {
        offsets[i] |= kTombstoneBit;
        ++tombstones_;
      }
      newest_ = std::max(newest_, entry.version.timestamp);
      Write(to, entry.value_bytes);
      Write(to, entry.version.timestamp.value);
      Write(to, entry.version.sequence);
    } else {
      Write(to, entry.child.value);
    }
    const size_t data_bytes = size_t{entry.key_bytes} + entry.value_bytes;
    if (data_bytes != 0) std::memcpy(to, entry.data, data_bytes);
    to += data_bytes;
    ++i;
  }
  offsets[i] = static_cast<uint32_t>(to - entries);
}

void BasePage::FillKeyPrefixes(const Content& content) {
  auto* const key_prefixes = const_cast<uint64_t*>(this->key_prefixes());
  size_t i = 0;
  for (const Content::Piece& piece : content.pieces_) {
    if (piece.run == nullptr) {
      key_prefixes[i++] = KeyPrefix64(piece.entry.key(), prefix_bytes_);
    } else if (piece.run->prefix_bytes_ == prefix_bytes_) {
      std::memcpy(key_prefixes + i, piece.run->key_prefixes() + piece.begin, piece.count() * sizeof(uint64_t));
      // The first entry of an inner page has no key prefix there.
      if (!is_leaf() && piece.begin == 0) key_prefixes[i] = KeyPrefix64(piece.run->key(0), prefix_bytes_);
      i += piece.count();
    } else {
      for (size_t n = piece.begin; n < piece.end; ++n)
        key_prefixes[i++] = KeyPrefix64(piece.run->key(n), prefix_bytes_);
    }
  }
  // A search takes the first sample that is not below its key, so the numbers ascend: also the one of an entry that is
  // never compared, and the padding.
  if (!is_leaf() && count_ != 0) key_prefixes[0] = 0;
  for (; i < groups() * kGroup; ++i) key_prefixes[i] = UINT64_MAX;
  DEUT_DCHECK(std::is_sorted(key_prefixes, key_prefixes + groups() * kGroup));
  auto* const samples = const_cast<uint64_t*>(this->samples());
  for (size_t group = 0; group < groups(); ++group) samples[group] = key_prefixes[group * kGroup];
}

PageEntry BasePage::record(size_t i) const {
  const char* entry = entry_at(i);
  PageEntry record;
  record.key_bytes = KeyBytes(entry);
  std::memcpy(&record.value_bytes, entry + 2, sizeof(record.value_bytes));
  std::memcpy(&record.version.timestamp.value, entry + 6, sizeof(record.version.timestamp.value));
  std::memcpy(&record.version.sequence, entry + 14, sizeof(record.version.sequence));
  record.tombstone = tombstone(i);
  record.stored_in = stored_in(i);
  record.data = entry + kRecordHeaderBytes;
  return record;
}

inline bool BasePage::KeyPrefixOf(std::string_view key, uint64_t* key_prefix, size_t* place) const {
  const size_t first = first_compared();
  *place = count_;
  if (count_ <= first) return false;
  if (prefix_bytes_ != 0) {
    const size_t compared = std::min<size_t>(key.size(), prefix_bytes_);
    const int order = compared == 0 ? 0 : std::memcmp(key.data(), prefix(), compared);
    if (order < 0 || (order == 0 && key.size() < prefix_bytes_)) *place = first;
    if (order != 0 || key.size() < prefix_bytes_) return false;
  }
  *key_prefix = KeyPrefix64(key, prefix_bytes_);
  return true;
}

inline size_t BasePage::GroupOf(uint64_t key_prefix) const { return LowerBoundOf(samples(), groups(), key_prefix); }

inline size_t BasePage::FirstAtLeast(uint64_t key_prefix, size_t group) const {
  size_t begin = 0;
  if (group != 0) {
    begin = (group - 1) * kGroup;
    __builtin_prefetch(offsets() + begin);
    const uint64_t* const line = key_prefixes() + begin;
    size_t below = 0;
    for (size_t i = 0; i < kGroup; ++i) below += line[i] < key_prefix ? 1 : 0;
    begin += below;
  }
  return std::max(begin, first_compared());
}

void BasePage::PrefetchKeyPrefixes(std::string_view key) const {
  uint64_t key_prefix;
  size_t place;
  if (!KeyPrefixOf(key, &key_prefix, &place)) return;
  const size_t group = GroupOf(key_prefix);
  const size_t first = group == 0 ? 0 : (group - 1) * kGroup;
  __builtin_prefetch(key_prefixes() + first);
  __builtin_prefetch(offsets() + first);
}

void BasePage::PrefetchEntry(std::string_view key) const {
  uint64_t key_prefix;
  size_t place;
  if (!KeyPrefixOf(key, &key_prefix, &place)) return;
  place = FirstAtLeast(key_prefix, GroupOf(key_prefix));
  if (place >= count_) return;
  const char* const entry = entry_at(place);
  // Most records fit into three lines.
  for (size_t line = 0; line < 3; ++line) __builtin_prefetch(entry + line * kLineBytes);
}

template <bool kAbove>
size_t BasePage::Bound(std::string_view key) const {
  uint64_t key_prefix;
  size_t begin;
  if (!KeyPrefixOf(key, &key_prefix, &begin)) return begin;
  const uint64_t* const key_prefixes = this->key_prefixes();
  begin = FirstAtLeast(key_prefix, GroupOf(key_prefix));
  if (begin >= count_) return count_;
  if (key_prefixes[begin] != key_prefix) return begin;
  // Equal key prefixes do not decide: compare whole keys among them.
  size_t end = begin + 1;
  while (end < count_ && key_prefixes[end] == key_prefix) ++end;
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    const int order = this->key(middle).compare(key);
    if (kAbove ? order <= 0 : order < 0) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

template size_t BasePage::Bound<false>(std::string_view key) const;
template size_t BasePage::Bound<true>(std::string_view key) const;

size_t BasePage::Find(std::string_view key) const {
  const size_t i = LowerBound(key);
  return i < count_ && this->key(i) == key ? i : count_;
}

}  // namespace deut::dc

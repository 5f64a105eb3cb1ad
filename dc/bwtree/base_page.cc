#include "dc/bwtree/base_page.h"

#include <algorithm>
#include <bit>
#include <new>

#include "common/base/check.h"
#include "protocol/record_batch.h"

namespace deut::dc {
namespace {

static_assert(std::endian::native == std::endian::little, "entries are in the little-endian format of record_batch.h");

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const size_t limit = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(limit), b.begin()).first -
                             a.begin());
}

// The first of `count` ascending numbers that is >= number. Without branches that depend on the numbers.
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

Owned<BasePage> BasePage::Build(const Spec& spec) {
  static_assert(kRecordHeaderBytes == RecordBatch::kHeaderBytes);
  const size_t count = spec.entries.size();
  const size_t first = spec.level == 0 ? 0 : 1;
  const size_t prefix_bytes =
      count > first ? CommonPrefix(spec.entries[first].key(), spec.entries[count - 1].key()) : 0;
  const size_t bounds_bytes = (spec.low.size() + spec.high.size() + prefix_bytes + 7) & ~size_t{7};
  const size_t header_bytes = spec.level == 0 ? kRecordHeaderBytes : kChildHeaderBytes;
  size_t entries_bytes = 0;
  for (const PageEntry& entry : spec.entries) entries_bytes += header_bytes + entry.key_bytes + entry.value_bytes;
  DEUT_CHECK(entries_bytes < kTombstoneBit);
  const size_t bytes =
      sizeof(BasePage) + bounds_bytes + count * sizeof(uint64_t) + (count + 1) * sizeof(uint32_t) + entries_bytes;

  char* memory = static_cast<char*>(::operator new(bytes));
  Owned<BasePage> page(new (memory) BasePage);
  page->base = page.get();
  page->fence = &page->own_fence_;
  page->kind = NodeKind::kBase;
  page->level = spec.level;
  page->flat_ = spec.flat;
  page->bytes_ = bytes;
  page->count_ = static_cast<uint32_t>(count);
  page->low_bytes_ = static_cast<uint32_t>(spec.low.size());
  page->prefix_bytes_ = static_cast<uint32_t>(prefix_bytes);
  page->bounds_bytes_ = static_cast<uint32_t>(bounds_bytes);

  char* bounds = memory + sizeof(BasePage);
  bounds = std::copy(spec.low.begin(), spec.low.end(), bounds);
  page->own_fence_ = Fence{bounds, static_cast<uint32_t>(spec.high.size()), spec.sibling};
  bounds = std::copy(spec.high.begin(), spec.high.end(), bounds);
  if (prefix_bytes != 0) std::memcpy(bounds, spec.entries[first].data, prefix_bytes);

  auto* heads = reinterpret_cast<uint64_t*>(memory + sizeof(BasePage) + bounds_bytes);
  auto* offsets = reinterpret_cast<uint32_t*>(heads + count);
  char* const entries = reinterpret_cast<char*>(offsets + count + 1);
  char* to = entries;
  for (size_t i = 0; i < count; ++i) {
    const PageEntry& entry = spec.entries[i];
    heads[i] = i < first ? 0 : KeyHead(entry.key(), prefix_bytes);
    offsets[i] = static_cast<uint32_t>(to - entries);
    Write(to, entry.key_bytes);
    if (spec.level == 0) {
      if (entry.tombstone) {
        offsets[i] |= kTombstoneBit;
        ++page->tombstones_;
      }
      Write(to, entry.value_bytes);
      Write(to, entry.version.timestamp.value);
      Write(to, entry.version.sequence);
    } else {
      Write(to, entry.child.value);
    }
    const size_t data_bytes = size_t{entry.key_bytes} + entry.value_bytes;
    if (data_bytes != 0) std::memcpy(to, entry.data, data_bytes);
    to += data_bytes;
  }
  offsets[count] = static_cast<uint32_t>(to - entries);
  return page;
}

PageEntry BasePage::record(size_t i) const {
  const char* entry = entry_at(i);
  PageEntry record;
  record.key_bytes = KeyBytes(entry);
  std::memcpy(&record.value_bytes, entry + 2, sizeof(record.value_bytes));
  std::memcpy(&record.version.timestamp.value, entry + 6, sizeof(record.version.timestamp.value));
  std::memcpy(&record.version.sequence, entry + 14, sizeof(record.version.sequence));
  record.tombstone = tombstone(i);
  record.data = entry + kRecordHeaderBytes;
  return record;
}

template <bool kAbove>
size_t BasePage::Bound(std::string_view key) const {
  const size_t first = first_compared();
  if (count_ <= first) return count_;
  if (prefix_bytes_ != 0) {
    const size_t compared = std::min<size_t>(key.size(), prefix_bytes_);
    const int order = compared == 0 ? 0 : std::memcmp(key.data(), prefix(), compared);
    if (order < 0 || (order == 0 && key.size() < prefix_bytes_)) return first;
    if (order > 0) return count_;
  }
  const uint64_t head = KeyHead(key, prefix_bytes_);
  const uint64_t* heads = this->heads();
  size_t begin = first + LowerBoundOf(heads + first, count_ - first, head);
  if (begin == count_ || heads[begin] != head) return begin;
  // Heads that are equal do not decide: compare whole keys among them.
  size_t end = begin + 1;
  while (end < count_ && heads[end] == head) ++end;
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

#include "dc/page_store/segment_table.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut::dc {

SegmentTable::SegmentTable(ReclamationDomain& domain) : domain_(domain), directory_(new Directory()) {}

SegmentTable::~SegmentTable() {
  const Directory* directory = directory_.load();
  for (const auto& [index, chunk] : *directory) {
    for (const std::atomic<Entry*>& slot : chunk->slots) delete slot.load();
    delete chunk;
  }
  delete directory;
}

SegmentTable::Chunk* SegmentTable::FindChunk(const Directory& directory, uint64_t index) {
  const auto place = std::ranges::lower_bound(directory, index, {}, [](const auto& each) { return each.first; });
  return place != directory.end() && place->first == index ? place->second : nullptr;
}

const SegmentTable::Entry* SegmentTable::FindEntry(uint64_t number) const {
  DEUT_DCHECK(domain_.guard_held());
  const Chunk* chunk = FindChunk(*directory_.load(), number / kChunkSlots);
  return chunk == nullptr ? nullptr : chunk->slots[number % kChunkSlots].load();
}

void SegmentTable::Replace(const Directory* next) {
  // A reader finds its chunk by binary search.
  DEUT_DCHECK(std::ranges::is_sorted(*next, {}, [](const auto& each) { return each.first; }));
  const Directory* old = directory_.exchange(next);
  domain_.RetireObject(const_cast<Directory*>(old), sizeof(Directory) + old->size() * sizeof((*old)[0]));
}

void SegmentTable::Add(std::shared_ptr<Segment> segment) {
  const ReclamationDomain::Guard guard(domain_);
  const uint64_t number = segment->number, index = number / kChunkSlots;
  const Directory& directory = *directory_.load();
  Chunk* chunk = FindChunk(directory, index);
  Entry* entry = new Entry{std::move(segment)};
  size_.fetch_add(1, std::memory_order_relaxed);
  if (chunk != nullptr) {
    ++chunk->used;
    DEUT_CHECK(chunk->used <= kChunkSlots);
    DEUT_CHECK(chunk->slots[number % kChunkSlots].exchange(entry) == nullptr);
    return;
  }
  chunk = new Chunk();
  chunk->used = 1;
  chunk->slots[number % kChunkSlots].store(entry);
  auto* next = new Directory(directory);
  next->insert(std::ranges::lower_bound(*next, index, {}, [](const auto& each) { return each.first; }), {index, chunk});
  Replace(next);
}

bool SegmentTable::Remove(uint64_t number) {
  const ReclamationDomain::Guard guard(domain_);
  const uint64_t index = number / kChunkSlots;
  const Directory& directory = *directory_.load();
  Chunk* chunk = FindChunk(directory, index);
  if (chunk == nullptr) return false;
  Entry* entry = chunk->slots[number % kChunkSlots].exchange(nullptr);
  if (entry == nullptr) return false;
  DEUT_CHECK(entry->segment->number == number);
  DEUT_CHECK(chunk->used > 0);
  size_.fetch_sub(1, std::memory_order_relaxed);
  domain_.RetireObject(entry);
  if (--chunk->used != 0) return true;
  auto* next = new Directory(directory);
  std::erase_if(*next, [&](const auto& each) { return each.first == index; });
  Replace(next);
  domain_.RetireObject(chunk);
  return true;
}

std::shared_ptr<Segment> SegmentTable::Find(uint64_t number) const {
  const ReclamationDomain::Guard guard(domain_);
  const Entry* entry = FindEntry(number);
  DEUT_POINT("page_store.table.found");
  DEUT_DCHECK(entry == nullptr || entry->segment->number == number);
  return entry == nullptr ? nullptr : entry->segment;
}

std::vector<std::shared_ptr<Segment>> SegmentTable::Snapshot() const {
  std::vector<std::shared_ptr<Segment>> segments;
  ForEach([&](const std::shared_ptr<Segment>& segment) { segments.push_back(segment); });
  return segments;
}

}  // namespace deut::dc

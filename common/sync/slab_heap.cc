#include "common/sync/slab_heap.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kGranule = 32;
constexpr std::array<size_t, 3> kSpanBytes = SlabTables::kSpanBytes;
constexpr size_t kUnitBytes = SlabTables::kUnitBytes;
constexpr size_t kUnitsPerSlab = SlabTables::kUnitsPerSlab;

struct SizeClass {
  uint32_t block_bytes = 0;
  uint32_t span_kind = 0;
  uint32_t blocks = 0;  // of a span
};

// Computed at compile time.
struct Classes {
  std::array<SizeClass, SlabHeap::kClassCount> of{};
  size_t count = 0;
  size_t cached = 0;  // the first ones, whose blocks a Cache keeps

  constexpr size_t greatest() const { return of[count - 1].block_bytes; }
  constexpr void Add(size_t bytes, size_t span_kind) {
    of[count++] = {static_cast<uint32_t>(bytes), static_cast<uint32_t>(span_kind),
                   static_cast<uint32_t>(kSpanBytes[span_kind] / bytes)};
    if (bytes <= SlabHeap::Cache::kMaxBytes) cached = count;
  }
  // Adds the sizes into which a span can be divided nearly without a rest, from `most` blocks to `fewest`.
  // A size is left out if it is larger than the one before by less than a part of 1 / `steps`.
  constexpr void AddParts(size_t span_kind, size_t most, size_t fewest, size_t steps) {
    for (size_t parts = most; parts >= fewest; --parts) {
      size_t bytes = kSpanBytes[span_kind] / parts / kGranule * kGranule;
      if (span_kind != 0) {
        bytes = bytes / kLineBytes * kLineBytes;
        if (bytes / kLineBytes % 2 == 0) bytes -= kLineBytes;  // an odd number of lines; see the header
      }
      if (bytes >= greatest() + greatest() / steps || (parts == fewest && bytes > greatest())) Add(bytes, span_kind);
    }
  }
};

constexpr Classes MakeClasses() {
  Classes classes;
  for (size_t bytes = 64; bytes <= 512; bytes += kGranule) classes.Add(bytes, 0);
  classes.AddParts(/*span_kind=*/0, 127, 16, /*steps=*/16);
  classes.AddParts(/*span_kind=*/1, 31, 16, /*steps=*/32);
  classes.AddParts(/*span_kind=*/2, 63, 8, /*steps=*/32);
  return classes;
}
constexpr Classes kClasses = MakeClasses();
static_assert(kClasses.count == SlabHeap::kClassCount && kClasses.cached == SlabHeap::Cache::kClassCount);
static_assert(kClasses.count <= UINT8_MAX);

// Internal fragmentation: the smallest size above a class, and the rest of a span, waste at most an eighth. Below 288
// bytes, the granule of 32 bytes may waste more.
constexpr bool WasteIsBounded() {
  for (size_t c = 1; c < kClasses.count; ++c) {
    const SizeClass& of = kClasses.of[c];
    const size_t span = kSpanBytes[of.span_kind];
    if (of.block_bytes <= kClasses.of[c - 1].block_bytes || of.blocks > UINT16_MAX || of.blocks < 4) return false;
    if (of.block_bytes >= 288 && (of.block_bytes - kClasses.of[c - 1].block_bytes - 1) * 8 > of.block_bytes)
      return false;
    if ((span - size_t{of.blocks} * of.block_bytes) * 16 > span) return false;
  }
  return true;
}
static_assert(WasteIsBounded());

// The class of a size, by granules.
constexpr auto kClassOf = [] {
  std::array<uint8_t, kClasses.greatest() / kGranule + 1> class_of{};
  size_t c = 0;
  for (size_t granules = 0; granules < class_of.size(); ++granules) {
    while (kClasses.of[c].block_bytes < granules * kGranule) ++c;
    class_of[granules] = static_cast<uint8_t>(c);
  }
  return class_of;
}();

size_t ClassOf(size_t bytes) { return kClassOf[(bytes + kGranule - 1) / kGranule]; }

constexpr uint32_t CacheLimit(size_t size_class) {
  return std::clamp<uint32_t>(SlabHeap::Cache::kMaxClassBytes / kClasses.of[size_class].block_bytes, 8,
                              SlabHeap::Cache::kMaxBlocks);
}

// One block more than the limit of its class is there while Free flushes the class.
constexpr size_t MaxCachedBytes() {
  size_t bytes = 0;
  for (size_t c = 0; c < kClasses.cached; ++c) bytes += (CacheLimit(c) + size_t{1}) * kClasses.of[c].block_bytes;
  return bytes;
}

// The link of a free block, in its first word. Copied as bytes, because the owner's objects lay there, or will.
void* NextOf(const void* block) {
  void* next = nullptr;
  std::memcpy(static_cast<void*>(&next), block, sizeof(next));
  return next;
}
void SetNext(void* block, void* next) { std::memcpy(block, static_cast<const void*>(&next), sizeof(next)); }

// Only written under the mutex of the span's class.
void AddUsed(SlabTables::Span* span, int blocks) {
  span->used.store(static_cast<uint16_t>(span->used.load(std::memory_order_relaxed) + blocks),
                   std::memory_order_relaxed);
}

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

std::unique_ptr<SlabHeap> SlabHeap::Create(const Options& options) {
  std::unique_ptr<SlabTables> tables =
      SlabTables::Create(RoundUp(std::max<size_t>(options.reserved_bytes, 1), kGrowBytes));
  if (tables == nullptr) return nullptr;
  return std::unique_ptr<SlabHeap>(new SlabHeap(options, std::move(tables)));
}

SlabHeap::SlabHeap(const Options& options, std::unique_ptr<SlabTables> tables)
    : tables_(std::move(tables)), pool_(options.huge_pages, *tables_) {}

size_t SlabHeap::max_bytes() { return kClasses.greatest(); }
size_t SlabHeap::max_cached_bytes() {
  constexpr size_t kBytes = MaxCachedBytes();
  return kBytes;
}
size_t SlabHeap::BlockBytes(size_t bytes) { return kClasses.of[ClassOf(bytes)].block_bytes; }

// A span is aligned to its size within its slab.
SlabHeap::Span* SlabHeap::SpanOf(const void* block, size_t size_class) const {
  return &tables_->span((tables_->OffsetOf(block) & ~(kSpanBytes[kClasses.of[size_class].span_kind] - 1)) / kUnitBytes);
}
size_t SlabHeap::ClassOfBlock(const void* block) const {
  return tables_->unit_class(tables_->OffsetOf(block) / kUnitBytes).load(std::memory_order_relaxed);
}

void* SlabHeap::Allocate(size_t bytes, Cache* cache) {
  const size_t size_class = ClassOf(bytes);
  if (cache != nullptr && size_class < kClasses.cached) {
    Cache::List& list = cache->lists_[size_class];
    if (list.first == nullptr) [[unlikely]]
      return Refill(size_class, cache);
    void* const block = std::exchange(list.first, NextOf(list.first));
    --list.count;
    // The next block was perhaps freed long ago, and the next call reads its first word.
    if (list.first != nullptr) __builtin_prefetch(list.first, 1);
    return block;
  }
  void* block = nullptr;
  return TakeBlocks(size_class, {&block, 1}) == 0 ? nullptr : block;
}

void SlabHeap::Free(void* block, Cache* cache) {
  DEUT_DCHECK(Owns(block));
  const size_t size_class = ClassOfBlock(block);
  if (cache != nullptr && size_class < kClasses.cached) {
    Cache::List& list = cache->lists_[size_class];
    DEUT_DCHECK(list.first != block);  // it was freed twice
    SetNext(block, std::exchange(list.first, block));
    const uint32_t limit = CacheLimit(size_class);
    if (++list.count > limit) [[unlikely]]
      FlushAllBut(limit / 2, size_class, cache);
    return;
  }
  SetNext(block, nullptr);  // touches it outside the mutex
  Slab* leaving = nullptr;
  {
    ClassState& state = classes_[size_class];
    const MutexLock lock(state.mutex);
    leaving = PutBlock(block, size_class, state);
  }
  used_bytes_.fetch_sub(kClasses.of[size_class].block_bytes, std::memory_order_relaxed);
  if (leaving != nullptr) pool_.ReturnMemory(leaving);
}

void SlabHeap::Flush(Cache* cache) {
  for (size_t c = 0; c < kClasses.cached; ++c) FlushAllBut(0, c, cache);
}

__attribute__((noinline)) void* SlabHeap::Refill(size_t size_class, Cache* cache) {
  // The first one is returned.
  std::array<void*, Cache::kMaxBlocks / 2 + 1> blocks;
  const size_t count = TakeBlocks(size_class, std::span(blocks).first(CacheLimit(size_class) / 2 + 1));
  if (count == 0) return nullptr;
  // They are this thread's by now. Some were never used, so the first access to them may be a page fault.
  DEUT_POINT("slab_heap.before_link");
  Cache::List& list = cache->lists_[size_class];
  for (size_t i = 1; i < count; ++i) SetNext(blocks[i], std::exchange(list.first, blocks[i]));
  list.count = static_cast<uint32_t>(count - 1);
  return blocks[0];
}

size_t SlabHeap::TakeBlocks(size_t size_class, std::span<void*> blocks) {
  ClassState& state = classes_[size_class];
  for (bool grown = true;; grown = pool_.Grow()) {
    size_t count = 0;
    {
      const MutexLock lock(state.mutex);
      while (count < blocks.size()) {
        blocks[count] = TakeBlock(size_class, /*any=*/!grown, state);
        if (blocks[count] == nullptr) break;
        ++count;
      }
    }
    if (count != 0) used_bytes_.fetch_add(count * kClasses.of[size_class].block_bytes, std::memory_order_relaxed);
    if (count != 0 || !grown) return count;
  }
}

// Keeps the blocks that were freed last, which are probably still in the processor's cache.
__attribute__((noinline)) void SlabHeap::FlushAllBut(uint32_t kept, size_t size_class, Cache* cache) {
  Cache::List& list = cache->lists_[size_class];
  if (list.count <= kept) return;
  void* block = list.first;
  if (kept == 0) {
    list.first = nullptr;
  } else {
    void* last = block;
    for (uint32_t i = 1; i < kept; ++i) last = NextOf(last);
    block = NextOf(last);
    SetNext(last, nullptr);
  }
  list.count = kept;
  while (block != nullptr) {
    Slab* leaving = nullptr;
    uint64_t blocks = 0;
    {
      ClassState& state = classes_[size_class];
      const MutexLock lock(state.mutex);
      for (; block != nullptr && leaving == nullptr; ++blocks) {
        void* const next = NextOf(block);
        leaving = PutBlock(std::exchange(block, next), size_class, state);
      }
    }
    used_bytes_.fetch_sub(blocks * kClasses.of[size_class].block_bytes, std::memory_order_relaxed);
    if (leaving != nullptr) pool_.ReturnMemory(leaving);
  }
}

// Without the comparison of slabs, spans drain, but slabs do not. Among slabs with as many spans, the first one is
// preferred in every class. The figures may be old: they only decide where the next blocks lie.
SlabHeap::Span* SlabHeap::FullestSpan(ClassState& state) const {
  const auto used_spans = [this](const Span* span) {
    return tables_->SlabOfSpan(span).used_spans.load(std::memory_order_relaxed);
  };
  int moved = 0;
  for (uint8_t bin = kBins; bin-- > 0;) {
    Span* best = nullptr;
    int compared = 0;
    for (Span* span = state.bins[bin]; span != nullptr && compared < kCompared;) {
      Span* const next = span->next;
      if (Drains(span)) {
        if (++moved > kMaxMoved) return nullptr;  // a new span does as well, and the mutex is not held for long
        UnlinkSpan(span, state);
        LinkSpan(span, kDrainBin, state);
      } else {
        ++compared;
        const int difference = best == nullptr ? 1 : int{used_spans(span)} - int{used_spans(best)};
        if (difference > 0 || (difference == 0 && span < best)) best = span;
      }
      span = next;
    }
    if (best != nullptr) return best;
  }
  // Spans of a drain that has ended.
  Span* span = state.bins[kDrainBin];
  for (int compared = 0; span != nullptr && Drains(span); span = span->next) {
    if (++compared == kCompared) return nullptr;
  }
  return span;
}

void* SlabHeap::TakeBlock(size_t size_class, bool any, ClassState& state) {
  if (state.current != nullptr && Drains(state.current)) state.current = nullptr;
  if (state.current == nullptr) state.current = FullestSpan(state);
  if (state.current == nullptr) state.current = NewSpan(size_class);
  if (state.current == nullptr && any) state.current = state.bins[kDrainBin];
  Span* const span = state.current;
  if (span == nullptr) return nullptr;
  void* block = span->free;
  if (block != nullptr) {
    span->free = NextOf(block);
  } else {
    block = tables_->BlocksOf(span) + size_t{span->begun} * kClasses.of[size_class].block_bytes;
    ++span->begun;
  }
  AddUsed(span, 1);
  Rebin(span, size_class, state);
  return block;
}

SlabHeap::Slab* SlabHeap::PutBlock(void* block, size_t size_class, ClassState& state) {
  Span* const span = SpanOf(block, size_class);
  DEUT_DCHECK(span->used.load(std::memory_order_relaxed) != 0);
  DEUT_DCHECK(static_cast<size_t>(static_cast<char*>(block) - tables_->BlocksOf(span)) %
                  kClasses.of[size_class].block_bytes ==
              0);
  SetNext(block, std::exchange(span->free, block));
  AddUsed(span, -1);
  Rebin(span, size_class, state);
  // A block in use or in a cache keeps its span. Otherwise the memory would be divided anew under its owner.
  if (span->used.load(std::memory_order_relaxed) != 0 && DEUT_STEP("pool.span_unused")) return nullptr;
  UnlinkSpan(span, state);
  if (state.current == span) state.current = nullptr;
  return pool_.PutSpan(static_cast<uint8_t>(kClasses.of[size_class].span_kind), tables_->UnitOf(span));
}

void SlabHeap::UnlinkSpan(Span* span, ClassState& state) {
  if (span->bin == kNoBin) return;
  Span*& first = state.bins[span->bin];
  (span->previous != nullptr ? span->previous->next : first) = span->next;
  if (span->next != nullptr) span->next->previous = span->previous;
  span->bin = kNoBin;
}

void SlabHeap::LinkSpan(Span* span, uint8_t bin, ClassState& state) {
  span->bin = bin;
  span->previous = nullptr;
  span->next = std::exchange(state.bins[bin], span);
  if (span->next != nullptr) span->next->previous = span;
}

// Moves the span to the list of its occupancy.
void SlabHeap::Rebin(Span* span, size_t size_class, ClassState& state) {
  const uint32_t blocks = kClasses.of[size_class].blocks;
  const uint32_t quarter = blocks / 4;
  const uint32_t used = span->used.load(std::memory_order_relaxed);
  auto bin = static_cast<uint8_t>(used == blocks ? kNoBin
                                                 : (used >= quarter ? 1 : 0) + (used >= 2 * quarter ? 1 : 0) +
                                                       (used >= 3 * quarter ? 1 : 0));
  if (bin == span->bin) return;
  if (bin != kNoBin && Drains(span)) bin = kDrainBin;
  if (bin == span->bin) return;
  UnlinkSpan(span, state);
  if (bin != kNoBin) {
    LinkSpan(span, bin, state);
  } else if (state.current == span) {
    state.current = nullptr;
  }
}

SlabHeap::Span* SlabHeap::NewSpan(size_t size_class) {
  const auto kind = static_cast<uint8_t>(kClasses.of[size_class].span_kind);
  const size_t first = pool_.TakeSpan(kind);
  if (first == SlabPool::kNoUnit) return nullptr;
  // Other threads look at these units only for blocks of this span, which no thread has yet; or for ThinnestSlabs.
  for (size_t unit = first; unit < first + kSpanBytes[kind] / kUnitBytes; ++unit)
    tables_->unit_class(unit).store(static_cast<uint8_t>(size_class), std::memory_order_relaxed);
  Span* const span = &tables_->span(first);
  span->used.store(0, std::memory_order_relaxed);
  span->free = nullptr;
  span->begun = 0;
  span->bin = kNoBin;
  return span;
}

uint64_t SlabHeap::UsedBytesOf(size_t slab) const {
  if (tables_->slab(slab).used_spans.load(std::memory_order_relaxed) == 0) return 0;
  uint64_t bytes = 0;
  for (size_t unit = slab * kUnitsPerSlab; unit < (slab + 1) * kUnitsPerSlab; ++unit) {
    const uint64_t used = tables_->span(unit).used.load(std::memory_order_relaxed);
    if (used != 0) bytes += used * kClasses.of[tables_->unit_class(unit).load(std::memory_order_relaxed)].block_bytes;
  }
  return bytes;
}

std::vector<uint32_t> SlabHeap::ThinnestSlabs(size_t count) const {
  struct Used {
    uint64_t bytes;
    uint32_t slab;
  };
  std::vector<Used> used;
  const size_t touched = pool_.touched();
  for (size_t slab = 0; slab < touched; ++slab) {
    const uint64_t bytes = UsedBytesOf(slab);
    if (bytes != 0) used.push_back({bytes, static_cast<uint32_t>(slab)});
  }
  const auto thinner = [](const Used& a, const Used& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.slab > b.slab;
  };
  if (count < used.size()) {
    std::ranges::nth_element(used, used.begin() + static_cast<ptrdiff_t>(count), thinner);
    used.resize(count);
  }
  std::vector<uint32_t> slabs;
  for (const Used& one : used) slabs.push_back(one.slab);
  return slabs;
}

SlabHeap::Figures SlabHeap::figures() const {
  Figures figures;
  figures.used_bytes = used_bytes();
  figures.slab_bytes = pool_.slab_bytes();
  return figures;
}

uint64_t SlabHeap::free_bytes() const {
  const uint64_t slabs = pool_.slab_bytes();
  const uint64_t used = used_bytes();
  return slabs > used ? slabs - used : 0;
}

}  // namespace deut

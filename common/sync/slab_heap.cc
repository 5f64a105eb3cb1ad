#include "common/sync/slab_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kGranule = 32;
constexpr std::array<size_t, 3> kSpanBytes = {size_t{64} << 10, size_t{128} << 10, size_t{512} << 10};

struct Classes {
  std::array<SlabHeap::SizeClass, SlabHeap::kMaxClasses> of{};
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
static_assert(kClasses.count <= UINT8_MAX && kClasses.cached <= 64);

// Internal fragmentation: the smallest size above a class, and the rest of a span, waste at most an eighth. Below 288
// bytes, the granule of 32 bytes may waste more.
constexpr bool WasteIsBounded() {
  for (size_t c = 1; c < kClasses.count; ++c) {
    const SlabHeap::SizeClass& of = kClasses.of[c];
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

// The link of a free block, in its first word. Copied as bytes, because the owner's objects lay there, or will.
void* NextOf(const void* block) {
  void* next = nullptr;
  std::memcpy(&next, block, sizeof(next));
  return next;
}
void SetNext(void* block, void* next) { std::memcpy(block, &next, sizeof(next)); }

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

void* Map(size_t bytes, int protection) {
  void* const memory = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

std::unique_ptr<SlabHeap> SlabHeap::Create(const Options& options) {
  // Memory that the system gives at first use is all zeros: the state of a span or slab that was never used.
  static_assert(std::is_trivially_destructible_v<Span> && std::is_trivially_destructible_v<Slab>);
  const size_t bytes = RoundUp(std::max<size_t>(options.reserved_bytes, 1), kGrowBytes);
  const size_t units = bytes / kUnitBytes;
  const size_t table_bytes = units * (sizeof(Span) + 1) + bytes / kSlabBytes * sizeof(Slab);
  void* const tables = Map(table_bytes, PROT_READ | PROT_WRITE);
  if (tables == nullptr) return nullptr;
  auto* const all = static_cast<char*>(Map(bytes + kSlabBytes, PROT_NONE));
  if (all == nullptr) {
    ::munmap(tables, table_bytes);
    return nullptr;
  }
  const size_t before = RoundUp(reinterpret_cast<uintptr_t>(all), kSlabBytes) - reinterpret_cast<uintptr_t>(all);
  if (before != 0) ::munmap(all, before);
  if (before != kSlabBytes) ::munmap(all + before + bytes, kSlabBytes - before);
  return std::unique_ptr<SlabHeap>(new SlabHeap(options, all + before, bytes, tables, table_bytes));
}

SlabHeap::SlabHeap(const Options& options, char* base, size_t reserved_bytes, void* tables, size_t table_bytes)
    : options_(options),
      base_(base),
      reserved_bytes_(reserved_bytes),
      tables_(tables),
      table_bytes_(table_bytes),
      spans_(static_cast<Span*>(tables)),
      slabs_(reinterpret_cast<Slab*>(spans_ + reserved_bytes / kUnitBytes)),
      unit_class_(reinterpret_cast<uint8_t*>(slabs_ + reserved_bytes / kSlabBytes)) {}

SlabHeap::~SlabHeap() {
  ::munmap(base_, reserved_bytes_);
  ::munmap(tables_, table_bytes_);
}

size_t SlabHeap::max_bytes() { return kClasses.greatest(); }
size_t SlabHeap::BlockBytes(size_t bytes) { return kClasses.of[ClassOf(bytes)].block_bytes; }

// A span is aligned to its size within its slab.
SlabHeap::Span* SlabHeap::SpanOf(const void* block, size_t size_class) const {
  const auto offset = static_cast<size_t>(static_cast<const char*>(block) - base_);
  return &spans_[(offset & ~(kSpanBytes[kClasses.of[size_class].span_kind] - 1)) / kUnitBytes];
}
char* SlabHeap::BlocksOf(const Span* span) const { return base_ + static_cast<size_t>(span - spans_) * kUnitBytes; }
char* SlabHeap::MemoryOf(const Slab* slab) const { return base_ + static_cast<size_t>(slab - slabs_) * kSlabBytes; }
size_t SlabHeap::ClassOfBlock(const void* block) const {
  return unit_class_[static_cast<size_t>(static_cast<const char*>(block) - base_) / kUnitBytes];
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
  ClassState& state = classes_[size_class];
  const MutexLock lock(state.mutex);
  void* const block = TakeBlock(size_class, state);
  if (block != nullptr) CountUsed(kClasses.of[size_class].block_bytes, state);
  return block;
}

void SlabHeap::Free(void* block, Cache* cache) {
  DEUT_DCHECK(Owns(block));
  const size_t size_class = ClassOfBlock(block);
  if (cache != nullptr && size_class < kClasses.cached) {
    Cache::List& list = cache->lists_[size_class];
    SetNext(block, std::exchange(list.first, block));
    const uint32_t limit = CacheLimit(size_class);
    if (++list.count > limit) [[unlikely]]
      FlushAllBut(limit / 2, size_class, cache);
    return;
  }
  Slab* leaving = nullptr;
  {
    ClassState& state = classes_[size_class];
    const MutexLock lock(state.mutex);
    leaving = PutBlock(block, size_class, state);
    CountUsed(-int64_t{kClasses.of[size_class].block_bytes}, state);
  }
  if (leaving != nullptr) ReturnMemory(leaving);
}

void SlabHeap::Flush(Cache* cache) {
  for (size_t c = 0; c < kClasses.cached; ++c) FlushAllBut(0, c, cache);
}

__attribute__((noinline)) void* SlabHeap::Refill(size_t size_class, Cache* cache) {
  ClassState& state = classes_[size_class];
  Cache::List& list = cache->lists_[size_class];
  const MutexLock lock(state.mutex);
  void* const block = TakeBlock(size_class, state);
  if (block == nullptr) return nullptr;
  for (const uint32_t limit = CacheLimit(size_class) / 2; list.count < limit; ++list.count) {
    void* const more = TakeBlock(size_class, state);
    if (more == nullptr) break;
    SetNext(more, std::exchange(list.first, more));
  }
  CountUsed(int64_t{kClasses.of[size_class].block_bytes} * (list.count + 1), state);
  return block;
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
    {
      ClassState& state = classes_[size_class];
      const MutexLock lock(state.mutex);
      int64_t blocks = 0;
      for (; block != nullptr && leaving == nullptr; ++blocks) {
        void* const next = NextOf(block);
        leaving = PutBlock(std::exchange(block, next), size_class, state);
      }
      CountUsed(-blocks * kClasses.of[size_class].block_bytes, state);
    }
    if (leaving != nullptr) ReturnMemory(leaving);
  }
}

void SlabHeap::CountUsed(int64_t bytes, ClassState& state) {
  const int64_t used = state.used_bytes.load(std::memory_order_relaxed) + bytes;
  state.used_bytes.store(used, std::memory_order_relaxed);
  const int64_t uncounted = used - state.counted_bytes;
  if (uncounted < kCountedStep && uncounted > -kCountedStep) return;
  state.counted_bytes = used;
  used_bytes_.fetch_add(uncounted, std::memory_order_relaxed);
}

SlabHeap::Span* SlabHeap::FullestSpan(const ClassState& state) const {
  Span* best = nullptr;
  for (size_t bin = kBins; bin-- > 0 && best == nullptr;) best = state.bins[bin];
  if (best == nullptr) return nullptr;
  // Without the comparison of slabs, spans drain, but slabs do not. Among slabs with as many spans, the first one is
  // preferred in every class. The figures may be old: they only decide where the next blocks lie.
  const auto used_spans = [this](const Span* span) {
    return slabs_[static_cast<size_t>(span - spans_) / kUnitsPerSlab].used_spans.load(std::memory_order_relaxed);
  };
  int compared = 1;
  for (Span* span = best->next; span != nullptr && compared < kCompared; span = span->next, ++compared) {
    const int difference = int{used_spans(span)} - int{used_spans(best)};
    if (difference > 0 || (difference == 0 && span < best)) best = span;
  }
  return best;
}

void* SlabHeap::TakeBlock(size_t size_class, ClassState& state) {
  if (state.current == nullptr) state.current = FullestSpan(state);
  if (state.current == nullptr) state.current = NewSpan(size_class);
  Span* const span = state.current;
  if (span == nullptr) return nullptr;
  void* block = span->free;
  if (block != nullptr) {
    span->free = NextOf(block);
  } else {
    block = BlocksOf(span) + size_t{span->begun} * kClasses.of[size_class].block_bytes;
    ++span->begun;
  }
  ++span->used;
  Rebin(span, size_class, state);
  return block;
}

SlabHeap::Slab* SlabHeap::PutBlock(void* block, size_t size_class, ClassState& state) {
  Span* const span = SpanOf(block, size_class);
  DEUT_DCHECK(span->used != 0);
  DEUT_DCHECK(static_cast<size_t>(static_cast<char*>(block) - BlocksOf(span)) % kClasses.of[size_class].block_bytes ==
              0);
  SetNext(block, std::exchange(span->free, block));
  --span->used;
  Rebin(span, size_class, state);
  // A block in use or in a cache keeps its span. Otherwise the memory would be divided anew under its owner.
  if (span->used != 0 && DEUT_STEP("pool.span_unused")) return nullptr;
  UnlinkSpan(span, state);
  if (state.current == span) state.current = nullptr;
  return FreeSpan(span, size_class);
}

void SlabHeap::UnlinkSpan(Span* span, ClassState& state) {
  if (span->bin == kNoBin) return;
  Span*& first = state.bins[span->bin];
  (span->previous != nullptr ? span->previous->next : first) = span->next;
  if (span->next != nullptr) span->next->previous = span->previous;
  span->bin = kNoBin;
}

// Moves the span to the list of its occupancy.
void SlabHeap::Rebin(Span* span, size_t size_class, ClassState& state) {
  const uint32_t blocks = kClasses.of[size_class].blocks;
  const uint32_t quarter = blocks / 4;
  const uint32_t used = span->used;
  const auto bin = static_cast<uint8_t>(used == blocks ? kNoBin
                                                       : (used >= quarter ? 1 : 0) + (used >= 2 * quarter ? 1 : 0) +
                                                             (used >= 3 * quarter ? 1 : 0));
  if (bin == span->bin) return;
  UnlinkSpan(span, state);
  span->bin = bin;
  if (bin == kNoBin) {
    if (state.current == span) state.current = nullptr;
    return;
  }
  span->previous = nullptr;
  span->next = std::exchange(state.bins[bin], span);
  if (span->next != nullptr) span->next->previous = span;
}

SlabHeap::Span* SlabHeap::NewSpan(size_t size_class) {
  const auto kind = static_cast<uint8_t>(kClasses.of[size_class].span_kind);
  const MutexLock lock(pool_mutex_);
  Slab* slab = nullptr;
  if (partial_lists_[kind] != 0) {
    // The fullest one, so that emptier ones drain.
    slab = partial_[kind][static_cast<size_t>(std::bit_width(partial_lists_[kind])) - 1];
    UnlistSlab(slab);
  } else {
    slab = NewSlab(kind);
    if (slab == nullptr) return nullptr;
  }
  const auto index = static_cast<size_t>(std::countr_zero(slab->free_spans));
  slab->free_spans &= slab->free_spans - 1;
  slab->used_spans.fetch_add(1, std::memory_order_relaxed);
  if (slab->free_spans != 0) ListSlab(slab);
  const size_t units = kSpanBytes[kind] / kUnitBytes;
  const size_t first = static_cast<size_t>(slab - slabs_) * kUnitsPerSlab + index * units;
  std::fill_n(unit_class_ + first, units, static_cast<uint8_t>(size_class));
  return new (&spans_[first]) Span;
}

SlabHeap::Slab* SlabHeap::FreeSpan(Span* span, size_t size_class) {
  const size_t kind = kClasses.of[size_class].span_kind;
  const auto unit = static_cast<size_t>(span - spans_);
  const MutexLock lock(pool_mutex_);
  Slab* const slab = &slabs_[unit / kUnitsPerSlab];
  if (slab->free_spans != 0) UnlistSlab(slab);
  slab->free_spans |= uint32_t{1} << (unit % kUnitsPerSlab * kUnitBytes / kSpanBytes[kind]);
  if (slab->used_spans.fetch_sub(1, std::memory_order_relaxed) != 1) {
    ListSlab(slab);
    return nullptr;
  }
  --slabs_in_use_;
  const size_t wanted = std::max<size_t>(options_.min_spares, slabs_in_use_ / options_.slabs_per_spare);
  const size_t spares = spare_count_.load(std::memory_order_relaxed);
  slab->next = nullptr;
  if (spares < wanted) {
    slab->next = std::exchange(spares_, slab);
    spare_count_.store(spares + 1, std::memory_order_relaxed);
    return nullptr;
  }
  // The leaving slabs are in no list from here on, so that no thread allocates in one while its memory is returned.
  if (DEUT_OMITTED("pool.slab_out_first")) {
    slab->next = std::exchange(spares_, slab);
    spare_count_.store(spares + 1, std::memory_order_relaxed);
  } else if (spares > wanted) {  // since it was put there, other slabs have become empty
    slab->next = std::exchange(spares_, spares_->next);
    slab->next->next = nullptr;
    spare_count_.store(spares - 1, std::memory_order_relaxed);
  }
  return slab;
}

SlabHeap::Slab* SlabHeap::NewSlab(uint8_t span_kind) {
  Slab* slab = nullptr;
  if (spares_ != nullptr) {
    slab = std::exchange(spares_, spares_->next);
    spare_count_.store(spare_count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  } else {
    if (returned_ != nullptr) {
      slab = std::exchange(returned_, returned_->next);
    } else {
      if (untouched_ == accessible_ && !Grow()) return nullptr;
      slab = &slabs_[untouched_++];
    }
    free_at_growth_.store((3 * free_at_growth_.load(std::memory_order_relaxed) + ApproximateFreeBytes()) / 4,
                          std::memory_order_relaxed);
    slab_bytes_.fetch_add(kSlabBytes, std::memory_order_relaxed);
  }
  const size_t spans = kSlabBytes / kSpanBytes[span_kind];
  slab->free_spans = static_cast<uint32_t>((uint64_t{1} << spans) - 1);
  slab->span_kind = span_kind;
  ++slabs_in_use_;
  return slab;
}

bool SlabHeap::Grow() {
  if (accessible_ * kSlabBytes == reserved_bytes_) return false;
  char* const memory = base_ + accessible_ * kSlabBytes;
  if (::mprotect(memory, kGrowBytes, PROT_READ | PROT_WRITE) != 0) return false;
  // If the system refuses, the slabs consist of small pages.
  if (options_.huge_pages) (void)::madvise(memory, kGrowBytes, MADV_HUGEPAGE);
  accessible_ += kGrowBytes / kSlabBytes;
  return true;
}

// REQUIRES for both: the slab has used spans when it is listed; its figures have not changed since.
void SlabHeap::ListSlab(Slab* slab) {
  const size_t list = size_t{slab->used_spans.load(std::memory_order_relaxed)} - 1;
  Slab*& first = partial_[slab->span_kind][list];
  slab->previous = nullptr;
  slab->next = std::exchange(first, slab);
  if (slab->next != nullptr) slab->next->previous = slab;
  partial_lists_[slab->span_kind] |= uint32_t{1} << list;
}

void SlabHeap::UnlistSlab(Slab* slab) {
  const size_t list = size_t{slab->used_spans.load(std::memory_order_relaxed)} - 1;
  Slab*& first = partial_[slab->span_kind][list];
  (slab->previous != nullptr ? slab->previous->next : first) = slab->next;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
  if (first == nullptr) partial_lists_[slab->span_kind] &= ~(uint32_t{1} << list);
}

void SlabHeap::ReturnMemory(Slab* leaving) {
  DEUT_POINT("slab_heap.before_return");
  if (DEUT_OMITTED("pool.slab_out_first")) {
    (void)::madvise(MemoryOf(leaving), kSlabBytes, MADV_DONTNEED);
    return;
  }
  while (leaving != nullptr) {
    Slab* const slab = std::exchange(leaving, leaving->next);
    // The advice to use huge pages lasts. If the system refuses (locked memory), the slab keeps memory and content.
    (void)::madvise(MemoryOf(slab), kSlabBytes, MADV_DONTNEED);
    slab_bytes_.fetch_sub(kSlabBytes, std::memory_order_relaxed);
    const MutexLock lock(pool_mutex_);
    returned_count_.store(returned_count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    slab->next = std::exchange(returned_, slab);
  }
}

SlabHeap::Figures SlabHeap::figures() const {
  Figures figures;
  int64_t used = 0;
  for (size_t c = 0; c < kClasses.count; ++c) used += classes_[c].used_bytes.load(std::memory_order_relaxed);
  figures.used_bytes = static_cast<uint64_t>(std::max<int64_t>(used, 0));
  figures.slab_bytes = slab_bytes_.load(std::memory_order_relaxed);
  figures.spare_bytes = spare_count_.load(std::memory_order_relaxed) * kSlabBytes;
  figures.slabs_returned = returned_count_.load(std::memory_order_relaxed);
  return figures;
}

uint64_t SlabHeap::ApproximateUsedBytes() const {
  return static_cast<uint64_t>(std::max<int64_t>(used_bytes_.load(std::memory_order_relaxed), 0));
}

uint64_t SlabHeap::ApproximateFreeBytes() const {
  const uint64_t slabs = slab_bytes_.load(std::memory_order_relaxed);
  const uint64_t used = ApproximateUsedBytes();
  return slabs > used ? slabs - used : 0;
}

uint64_t SlabHeap::ApproximateLostBytes() const {
  return std::min(free_at_growth_.load(std::memory_order_relaxed), ApproximateFreeBytes());
}

}  // namespace deut

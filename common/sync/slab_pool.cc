#include "common/sync/slab_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"

namespace deut {
namespace {

constexpr size_t kUnitsPerSlab = SlabTables::kUnitsPerSlab;

}  // namespace

size_t SlabPool::TakeSpan(uint8_t span_kind) {
  const MutexLock lock(mutex_);
  Slab* slab = nullptr;
  if (partial_lists_[span_kind] != 0) {
    // The fullest one, so that emptier ones drain.
    slab = partial_[span_kind][static_cast<size_t>(std::bit_width(partial_lists_[span_kind])) - 1];
    UnlistSlab(slab);
  } else {
    slab = TakeSlab(span_kind);
    if (slab == nullptr) return kNoUnit;
  }
  const auto index = static_cast<size_t>(std::countr_zero(slab->free_spans));
  slab->free_spans &= slab->free_spans - 1;
  slab->used_spans.fetch_add(1, std::memory_order_relaxed);
  if (slab->free_spans != 0) ListSlab(slab);
  return tables_.IndexOf(slab) * kUnitsPerSlab + index * (SlabTables::kSpanBytes[span_kind] / SlabTables::kUnitBytes);
}

SlabPool::Slab* SlabPool::PutSpan(uint8_t span_kind, size_t unit) {
  const MutexLock lock(mutex_);
  Slab* const slab = &tables_.slab(unit / kUnitsPerSlab);
  if (IsListed(*slab)) UnlistSlab(slab);
  slab->free_spans |=
      uint32_t{1} << (unit % kUnitsPerSlab * SlabTables::kUnitBytes / SlabTables::kSpanBytes[span_kind]);
  const bool drains = slab->draining.load(std::memory_order_relaxed);
  if (slab->used_spans.fetch_sub(1, std::memory_order_relaxed) != 1) {
    if (!drains) ListSlab(slab);
    return nullptr;
  }
  --slabs_in_use_;
  slab->draining.store(false, std::memory_order_relaxed);
  const size_t wanted = std::max<size_t>(1, slabs_in_use_ / kSlabsPerSpare);
  if (spare_count_ < wanted && !drains) {
    AddSpare(slab);
    return nullptr;
  }
  // The leaving slabs are in no list from here on, so that no thread allocates in one while its memory is returned.
  slab->next = nullptr;
  if (DEUT_OMITTED("pool.slab_out_first")) {
    AddSpare(slab);
  } else if (spare_count_ > wanted) {  // since it was put there, other slabs have become empty
    slab->next = TakeSpare();
    slab->next->next = nullptr;
  }
  return slab;
}

void SlabPool::ReturnMemory(Slab* leaving) {
  DEUT_POINT("slab_heap.before_return");
  if (DEUT_OMITTED("pool.slab_out_first")) {
    (void)tables_.ReturnMemory(*leaving);
    return;
  }
  while (leaving != nullptr) {
    Slab* const slab = std::exchange(leaving, leaving->next);
    const bool returned = tables_.ReturnMemory(*slab);
    const MutexLock lock(mutex_);
    if (!returned) {
      AddSpare(slab);
      continue;
    }
    slab_bytes_.fetch_sub(SlabTables::kSlabBytes, std::memory_order_relaxed);
    slab->next = std::exchange(returned_, slab);
  }
}

bool SlabPool::Grow() {
  const MutexLock growing(grow_mutex_);
  size_t first = 0;
  {
    const MutexLock lock(mutex_);
    if (spares_ != nullptr || returned_ != nullptr || untouched_ != accessible_) return true;
    if (accessible_ == tables_.slabs()) return false;
    first = accessible_;
  }
  if (unasked_growths_ != 0) {
    --unasked_growths_;
    return false;
  }
  size_t slabs = std::min(kSlabsPerGrowth, tables_.slabs() - first);
  if (!tables_.Open(first, slabs, huge_pages_)) {
    slabs = 1;  // near the limit of the process, less may be granted
    if (!tables_.Open(first, slabs, huge_pages_)) {
      unasked_growths_ = kUnaskedGrowths;
      return false;
    }
  }
  const MutexLock lock(mutex_);
  accessible_ += slabs;
  return true;
}

SlabPool::Slab* SlabPool::TakeSlab(uint8_t span_kind) {
  Slab* slab = nullptr;
  if (spares_ != nullptr) {
    slab = TakeSpare();
  } else {
    if (returned_ != nullptr) {
      slab = std::exchange(returned_, returned_->next);
    } else {
      if (untouched_ == accessible_) return nullptr;
      slab = &tables_.slab(untouched_++);
    }
    slab_bytes_.fetch_add(SlabTables::kSlabBytes, std::memory_order_relaxed);
  }
  const size_t spans = SlabTables::kSlabBytes / SlabTables::kSpanBytes[span_kind];
  slab->free_spans = static_cast<uint32_t>((uint64_t{1} << spans) - 1);
  slab->span_kind = span_kind;
  ++slabs_in_use_;
  return slab;
}

void SlabPool::AddSpare(Slab* slab) {
  slab->next = std::exchange(spares_, slab);
  ++spare_count_;
}

SlabPool::Slab* SlabPool::TakeSpare() {
  --spare_count_;
  return std::exchange(spares_, spares_->next);
}

void SlabPool::ListSlab(Slab* slab) {
  const size_t list = size_t{slab->used_spans.load(std::memory_order_relaxed)} - 1;
  Slab*& first = partial_[slab->span_kind][list];
  slab->previous = nullptr;
  slab->next = std::exchange(first, slab);
  if (slab->next != nullptr) slab->next->previous = slab;
  partial_lists_[slab->span_kind] |= uint32_t{1} << list;
}

void SlabPool::UnlistSlab(Slab* slab) {
  const size_t list = size_t{slab->used_spans.load(std::memory_order_relaxed)} - 1;
  Slab*& first = partial_[slab->span_kind][list];
  (slab->previous != nullptr ? slab->previous->next : first) = slab->next;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
  if (first == nullptr) partial_lists_[slab->span_kind] &= ~(uint32_t{1} << list);
}

std::vector<uint32_t> SlabPool::BeginDrain(std::span<const uint32_t> slabs) {
  std::vector<uint32_t> marked;
  marked.reserve(slabs.size());
  for (const uint32_t index : slabs) {
    const MutexLock lock(mutex_);  // for one slab at a time, because there may be thousands
    Slab* const slab = &tables_.slab(index);
    if (slab->used_spans.load(std::memory_order_relaxed) == 0 || slab->draining.load(std::memory_order_relaxed))
      continue;
    if (IsListed(*slab)) UnlistSlab(slab);
    slab->draining.store(true, std::memory_order_relaxed);
    marked.push_back(index);
  }
  return marked;
}

void SlabPool::EndDrain(std::span<const uint32_t> slabs) {
  for (const uint32_t index : slabs) {
    const MutexLock lock(mutex_);
    Slab* const slab = &tables_.slab(index);
    // A slab that was emptied has lost its mark, whatever it is used for by now.
    if (slab->draining.exchange(false, std::memory_order_relaxed) && slab->free_spans != 0) ListSlab(slab);
  }
}

size_t SlabPool::touched() const {
  const MutexLock lock(mutex_);
  return untouched_;
}

}  // namespace deut

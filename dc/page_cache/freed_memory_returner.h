// FreedMemoryReturner: makes the allocator return freed memory to the system.
//
// Parts, images and pages of more than 64 KiB come and go, so the allocator keeps much of the freed memory in
// fragments. (The other pages lie in slabs, which return their memory by themselves: dc/bwtree/page_memory.h.) That
// would grow to several times the budget, above all where there are no slabs. So freed memory is returned when the
// process has grown by more than a sixteenth of the budget beyond the accounted bytes. The free room of slabs is on
// neither side of this comparison, whether it counts against the budget or not (memory_budget.h).
// Thread-safety: one thread. Ownership: borrows the runtime and the budget.
#ifndef DC_PAGE_CACHE_FREED_MEMORY_RETURNER_H_
#define DC_PAGE_CACHE_FREED_MEMORY_RETURNER_H_

#include <chrono>
#include <cstdint>
#include <functional>

#include "common/runtime/process_memory.h"
#include "common/runtime/runtime.h"
#include "dc/page_cache/memory_budget.h"

namespace deut::dc {

class FreedMemoryReturner {
 public:
  static constexpr Duration kInterval = std::chrono::milliseconds(100);
  // However small the budget is, growth by less than this is tolerated.
  static constexpr uint64_t kMinReturnedBytes = 16 << 20;

  // `resident_bytes`: returns the resident bytes of the process without the free room of slabs.
  FreedMemoryReturner(Runtime& runtime, const MemoryBudget& budget, std::function<uint64_t()> resident_bytes,
                      std::function<void()> return_freed = ReturnFreedMemory);
  FreedMemoryReturner(const FreedMemoryReturner&) = delete;
  FreedMemoryReturner& operator=(const FreedMemoryReturner&) = delete;

  // Measures the process at most once every kInterval, and returns freed memory if that is worth its time.
  void RunIfDue();

 private:
  // Resident bytes that are neither accounted nor free room of slabs.
  uint64_t Unaccounted() const;

  Runtime& runtime_;
  const MemoryBudget& budget_;
  const std::function<uint64_t()> resident_bytes_;
  const std::function<void()> return_freed_;
  MonotonicTime next_;
  uint64_t least_unaccounted_ = 0;  // minimum since freed memory was last returned
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_FREED_MEMORY_RETURNER_H_

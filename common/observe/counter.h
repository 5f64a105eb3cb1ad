// Counter: a count that many threads raise and few read. Most threads have a cell of their own (ThreadIndex), on a
// cache line that no other thread writes, and raise it by a load and a store. Threads that have none share one cell,
// and add to it atomically.
// Thread-safety: all methods from any thread.
#ifndef COMMON_OBSERVE_COUNTER_H_
#define COMMON_OBSERVE_COUNTER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/sync/thread_index.h"

namespace deut {

class Counter {
 public:
  void Add(uint64_t n = 1) {
    const uint32_t index = ThreadIndex::Get();
    std::atomic<uint64_t>& value = cells_[index].value;
    if (index != ThreadIndex::kNone) [[likely]] {
      value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    } else {
      value.fetch_add(n, std::memory_order_relaxed);
    }
  }

  // The sum includes every Add that happened before.
  uint64_t value() const {
    uint64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(64) Cell {
    std::atomic<uint64_t> value{0};
  };

  std::array<Cell, size_t{ThreadIndex::kMaxThreads} + 1> cells_{};
};

}  // namespace deut

#endif  // COMMON_OBSERVE_COUNTER_H_

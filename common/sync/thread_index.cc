#include "common/sync/thread_index.h"

#include <atomic>
#include <bit>

#include "common/testing/test_points.h"

namespace deut {
namespace {

constinit std::atomic<uint64_t> used_indexes{uint64_t{1} << ThreadIndex::kNone};
static_assert(ThreadIndex::kNone == 63);

}  // namespace

struct ThreadIndex::Keeper {
  ~Keeper() {
    const uint32_t index = index_;
    index_ = kNone;
    used_indexes.fetch_and(~(uint64_t{1} << index), std::memory_order_release);
  }
};

uint32_t ThreadIndex::Claim() {
  uint64_t seen = used_indexes.load(std::memory_order_relaxed);
  for (;;) {
    const int free = std::countr_one(seen);
    if (free == 64) return index_ = kNone;
    DEUT_POINT("thread_index.before_cas");
    if (DEUT_CAS_FAILS("thread_index.cas")) {
      seen = used_indexes.load(std::memory_order_relaxed);
      continue;
    }
    if (!used_indexes.compare_exchange_weak(seen, seen | (uint64_t{1} << free), std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
      continue;
    }
    index_ = static_cast<uint32_t>(free);
    static thread_local const Keeper keeper;
    return index_;
  }
}

}  // namespace deut

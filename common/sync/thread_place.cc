#include "common/sync/thread_place.h"

#include <atomic>
#include <bit>

#include "common/testing/test_points.h"

namespace deut {
namespace {

constinit std::atomic<uint64_t> taken{uint64_t{1} << ThreadPlace::kNone};
static_assert(ThreadPlace::kNone == 63);

}  // namespace

struct ThreadPlace::Keeper {
  ~Keeper() {
    const uint32_t place = place_;
    place_ = kNone;
    taken.fetch_and(~(uint64_t{1} << place), std::memory_order_release);
  }
};

uint32_t ThreadPlace::Claim() {
  uint64_t seen = taken.load(std::memory_order_relaxed);
  for (;;) {
    const int free = std::countr_one(seen);
    if (free == 64) return place_ = kNone;
    DEUT_POINT("thread_place.before_cas");
    if (DEUT_CAS_FAILS("thread_place.cas")) {
      seen = taken.load(std::memory_order_relaxed);
      continue;
    }
    if (!taken.compare_exchange_weak(seen, seen | (uint64_t{1} << free), std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      continue;
    }
    place_ = static_cast<uint32_t>(free);
    static thread_local const Keeper keeper;
    return place_;
  }
}

}  // namespace deut

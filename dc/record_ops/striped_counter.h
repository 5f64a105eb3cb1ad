// StripedCounter: a count that many threads raise and few read. Each thread adds to one of several lines, so that adding does not pass a
// cache line between threads. Thread-safety: all methods from any thread; value() is exact once the adding threads are quiet.
#ifndef DC_RECORD_OPS_STRIPED_COUNTER_H_
#define DC_RECORD_OPS_STRIPED_COUNTER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace deut::dc {

class StripedCounter {
 public:
  void Add(uint64_t n) { stripes_[OwnStripe()].value.fetch_add(n, std::memory_order_relaxed); }

  uint64_t value() const {
    uint64_t sum = 0;
    for (const Stripe& stripe : stripes_) sum += stripe.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  static constexpr size_t kStripes = 16;
  struct alignas(64) Stripe {
    std::atomic<uint64_t> value{0};
  };

  static size_t OwnStripe() {
    static thread_local char own;
    return (reinterpret_cast<uintptr_t>(&own) * 0x9e3779b97f4a7c15ull) >> 60;
  }

  std::array<Stripe, kStripes> stripes_;
};

}  // namespace deut::dc

#endif  // DC_RECORD_OPS_STRIPED_COUNTER_H_

// Histogram: the one type for latencies and other distributions. Log-linear buckets: exact below 64, then 64 buckets
// for each doubling, over all 64-bit values, in 30 KiB.
// Error: a percentile is never below the true one, and exceeds it by less than 1/64 of it. Count, sum, mean, min and
// max are exact.
// Unit: the recorder's; ToMicrosJson takes nanoseconds.
// None of the given libraries (Abseil, protobuf, gRPC) offers a histogram.
// Thread-safety: one thread records (or merges into it), at a cost of a few plain instructions. Meanwhile any thread
// may read or merge from it; it sees some recent state, whose parts may differ by a few records. Each thread has its
// own histogram and they are merged.
#ifndef COMMON_OBSERVE_HISTOGRAM_H_
#define COMMON_OBSERVE_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <string>

namespace deut {

class Histogram {
 public:
  Histogram() = default;
  Histogram(const Histogram& other) { Merge(other); }
  Histogram& operator=(const Histogram& other);

  void Record(uint64_t value) { RecordMany(value, 1); }
  void RecordMany(uint64_t value, uint64_t times);
  void Merge(const Histogram& other);
  void Clear();

  uint64_t count() const { return Load(count_); }
  uint64_t sum() const { return Load(sum_); }
  // 0 if nothing was recorded.
  uint64_t min() const { return count() == 0 ? 0 : Load(min_); }
  uint64_t max() const { return Load(max_); }
  double mean() const { return count() == 0 ? 0 : static_cast<double>(sum()) / static_cast<double>(count()); }
  // Returns the smallest value that at least `percent` of the records do not exceed. 0 if nothing was recorded.
  uint64_t Percentile(double percent) const;

  // Converts nanoseconds to microseconds: {"count":2,"mean":1.5,"p50":1.0,"p95":2.0,"p99":2.0,"p999":2.0,"max":2.0}.
  std::string ToMicrosJson() const;

 private:
  static constexpr uint32_t kSubBits = 6;
  static constexpr uint64_t kSub = uint64_t{1} << kSubBits;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) * kSub;
  using Cell = std::atomic<uint64_t>;

  static size_t BucketOf(uint64_t value) {
    if (value < kSub) return value;
    const auto shift = static_cast<uint32_t>(std::bit_width(value)) - kSubBits - 1;
    return (shift + 1) * kSub + ((value >> shift) - kSub);
  }
  // The largest value that falls into the bucket.
  static uint64_t LargestIn(size_t bucket);

  // Relaxed, because there is one writer and readers need only some recent value.
  static uint64_t Load(const Cell& cell) { return cell.load(std::memory_order_relaxed); }
  static void Add(Cell& cell, uint64_t n) { cell.store(Load(cell) + n, std::memory_order_relaxed); }

  Cell count_{0}, sum_{0}, min_{UINT64_MAX}, max_{0};
  std::array<Cell, kBuckets> buckets_{};
};

}  // namespace deut

#endif  // COMMON_OBSERVE_HISTOGRAM_H_

#include "common/observe/histogram.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace deut {

uint64_t Histogram::LargestIn(size_t bucket) {
  if (bucket < kSub) return bucket;
  const auto shift = static_cast<uint32_t>(bucket / kSub) - 1;
  const uint64_t low = (kSub + bucket % kSub) << shift;
  return low + ((uint64_t{1} << shift) - 1);
}

void Histogram::RecordMany(uint64_t value, uint64_t times) {
  if (times == 0) return;
  Add(buckets_[BucketOf(value)], times);
  Add(sum_, value * times);
  if (value < Load(min_)) min_.store(value, std::memory_order_relaxed);
  if (value > Load(max_)) max_.store(value, std::memory_order_relaxed);
  Add(count_, times);
}

void Histogram::Merge(const Histogram& other) {
  // The count is the sum of the buckets just read, so that percentiles of a merge made during recording are
  // consistent.
  uint64_t found = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    const uint64_t times = Load(other.buckets_[i]);
    if (times == 0) continue;
    Add(buckets_[i], times);
    found += times;
  }
  Add(count_, found);
  Add(sum_, Load(other.sum_));
  min_.store(std::min(Load(min_), Load(other.min_)), std::memory_order_relaxed);
  max_.store(std::max(Load(max_), Load(other.max_)), std::memory_order_relaxed);
}

void Histogram::Clear() {
  for (Cell& cell : buckets_) cell.store(0, std::memory_order_relaxed);
  count_.store(0, std::memory_order_relaxed);
  sum_.store(0, std::memory_order_relaxed);
  min_.store(UINT64_MAX, std::memory_order_relaxed);
  max_.store(0, std::memory_order_relaxed);
}

Histogram& Histogram::operator=(const Histogram& other) {
  if (this != &other) {
    Clear();
    Merge(other);
  }
  return *this;
}

uint64_t Histogram::Percentile(double percent) const {
  const uint64_t total = count();
  if (total == 0) return 0;
  const double wanted = std::ceil(std::clamp(percent, 0.0, 100.0) / 100.0 * static_cast<double>(total));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, total);
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += Load(buckets_[i]);
    if (seen >= rank) return std::min(LargestIn(i), max());
  }
  return max();
}

std::string Histogram::ToMicrosJson() const {
  const auto micros = [](auto nanos) { return static_cast<double>(nanos) / 1000.0; };
  return absl::StrFormat(R"({"count":%d,"mean":%.3f,"p50":%.3f,"p95":%.3f,"p99":%.3f,"p999":%.3f,"max":%.3f})", count(),
                         micros(mean()), micros(Percentile(50)), micros(Percentile(95)), micros(Percentile(99)),
                         micros(Percentile(99.9)), micros(max()));
}

}  // namespace deut

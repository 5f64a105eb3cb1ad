#include "dc/bench/bench_records.h"

#include <immintrin.h>

#include <numeric>
#include <utility>

namespace deut::dc::bench {

uint64_t SumOfBytes(std::string_view bytes) {
  __m256i sums = _mm256_setzero_si256();
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    const __m256i block = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes.data() + at));
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(block, _mm256_setzero_si256()));
  }
  alignas(32) uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
  uint64_t sum = lanes[0] + lanes[1] + lanes[2] + lanes[3];
  for (; at < bytes.size(); ++at) sum += static_cast<uint8_t>(bytes[at]);
  return sum;
}

uint64_t ChecksumOfRecord(uint64_t record) {
  const BenchKey key(record);
  const uint64_t time = uint64_t{4} * 255;  // bytes of half a timestamp and its complement
  const uint64_t header = std::string_view(key).size() + kValueBytes + time + 1;
  return header + SumOfBytes(key) + SumOfBytes(BenchValue(record, BenchTimestamp(1)));
}

ChecksumTable::ChecksumTable(uint64_t records) : sums_(records + 1) {
  for (uint64_t i = 0; i < records; ++i) {
    sums_[i + 1] = sums_[i] + ChecksumOfRecord(i);
    bytes_ += std::string_view(BenchKey(i)).size() + kValueBytes;
  }
}

std::vector<uint32_t> ShuffledRecords(uint64_t records, uint64_t seed) {
  std::vector<uint32_t> order(records);
  std::iota(order.begin(), order.end(), uint32_t{0});
  Random random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  return order;
}

}  // namespace deut::dc::bench

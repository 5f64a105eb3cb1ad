#include "dc/bench/bench_records.h"

#include <set>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "protocol/record_batch.h"

namespace deut::dc::bench {
namespace {

constexpr uint64_t kRecords = 5000;

TEST(BenchRecordsTest, KeysAscendAndSayWhoseTheyAre) {
  std::string last;
  std::set<size_t> lengths;
  for (uint64_t i = 0; i < kRecords; ++i) {
    const BenchKey key(i);
    EXPECT_LT(last, std::string_view(key));
    EXPECT_EQ(BenchKey::RecordOf(key), i);
    last = std::string_view(key);
    lengths.insert(last.size());
  }
  EXPECT_EQ(lengths.size(), kMaxTailBytes + 1);
}

TEST(BenchRecordsTest, ValuesOfOtherVersionsAndRecordsDiffer) {
  const BenchValue value(7, BenchTimestamp(1));
  EXPECT_EQ(std::string_view(value).size(), kValueBytes);
  EXPECT_NE(std::string_view(value), std::string_view(BenchValue(7, BenchTimestamp(2))));
  EXPECT_NE(std::string_view(value), std::string_view(BenchValue(8, BenchTimestamp(1))));
  EXPECT_LT(BenchTimestamp(1), BenchTimestamp(2));
}

TEST(BenchRecordsTest, TheChecksumOfAnAnswerIsKnownWhateverItsVersions) {
  const ChecksumTable checksums(kRecords);
  RecordBatch answer;
  for (uint64_t i = 100; i < 400; ++i) {
    const Timestamp timestamp = BenchTimestamp(static_cast<uint32_t>(i * i));
    answer.Append(BenchKey(i), BenchValue(i, timestamp), Version{timestamp, 1});
  }
  EXPECT_EQ(SumOfBytes(answer.bytes()), checksums.Of(100, 400));
  EXPECT_NE(SumOfBytes(answer.bytes()), checksums.Of(100, 401));
  std::string damaged = answer.bytes();
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_NE(SumOfBytes(damaged), checksums.Of(100, 400));
}

TEST(BenchRecordsTest, ShuffledRecordsAreAllThere) {
  const std::vector<uint32_t> order = ShuffledRecords(kRecords, 3);
  const std::set<uint32_t> all(order.begin(), order.end());
  EXPECT_EQ(all.size(), kRecords);
  EXPECT_EQ(*all.rbegin(), kRecords - 1);
  EXPECT_NE(order, ShuffledRecords(kRecords, 4));
}

}  // namespace
}  // namespace deut::dc::bench

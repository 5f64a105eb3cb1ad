#include "integration/bench/read_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "integration/ycsb/record.h"

namespace deut::bench {
namespace {

struct Pair {
  std::string key, value;
};

// Returns whole records, in the order of their keys.
std::vector<Pair> Records(size_t count) {
  std::vector<Pair> records(count);
  for (size_t i = 0; i < count; ++i) {
    ycsb::MakeKey(i, &records[i].key);
    ycsb::MakeValue(i, {.writer = 1, .sequence = static_cast<uint32_t>(i)}, records[i].key, 100, &records[i].value);
  }
  std::sort(records.begin(), records.end(), [](const Pair& a, const Pair& b) { return a.key < b.key; });
  return records;
}

void Scan(const std::vector<Pair>& records, uint32_t limit, ReadCheck* check) {
  check->BeginScan(records.empty() ? std::string_view("low") : records.front().key, limit);
  for (const Pair& record : records) check->Record(record.key, record.value);
  check->EndScan();
}

TEST(ReadCheckTest, WholeRecordsPass) {
  const std::vector<Pair> records = Records(200);
  ReadCheck check(/*check_every_value=*/true);
  check.Restart();
  check.Value(records[3].key, records[3].value);
  Scan(records, 200, &check);
  const Status status = check.Commit();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(check.records(), 201u);
}

TEST(ReadCheckTest, ADamagedValueIsNoticed) {
  std::vector<Pair> records = Records(2);
  records[0].value[50] ^= 1;
  ReadCheck check;
  check.Value(records[0].key, records[0].value);
  EXPECT_EQ(check.Commit().code(), ErrorCode::kCorruption);
  check.Restart();
  // A value of another key.
  check.Value(records[1].key, Records(2)[0].value);
  EXPECT_EQ(check.Commit().code(), ErrorCode::kCorruption);
  check.Restart();
  check.Missing(records[1].key);
  EXPECT_EQ(check.Commit().code(), ErrorCode::kCorruption);
}

TEST(ReadCheckTest, AThoroughScanNoticesAnyDamage) {
  for (size_t damaged = 0; damaged < 70; ++damaged) {
    std::vector<Pair> records = Records(70);
    records[damaged].value.back() ^= 1;
    ReadCheck check(/*check_every_value=*/true);
    Scan(records, 70, &check);
    EXPECT_EQ(check.Commit().code(), ErrorCode::kCorruption) << damaged;
  }
}

TEST(ReadCheckTest, EveryByteIsInTheChecksum) {
  const std::vector<Pair> records = Records(3);
  const auto checksum = [](const std::vector<Pair>& shown) {
    ReadCheck check;
    Scan(shown, 10, &check);
    (void)check.Commit();
    return check.checksum();
  };
  const uint64_t whole = checksum(records);
  EXPECT_EQ(whole, checksum(Records(3)));
  for (size_t record = 0; record < 3; ++record) {
    for (size_t byte = 0; byte < 100; ++byte) {
      std::vector<Pair> damaged = records;
      damaged[record].value[byte] ^= 0x10;
      EXPECT_NE(checksum(damaged), whole) << record << " " << byte;
    }
    for (size_t byte = 0; byte < ycsb::kKeyBytes; ++byte) {
      std::vector<Pair> damaged = records;
      damaged[record].key[byte] ^= 0x01;
      EXPECT_NE(checksum(damaged), whole) << record << " " << byte;
    }
  }
  std::vector<Pair> swapped = records;
  std::swap(swapped[1], swapped[2]);
  EXPECT_NE(checksum(swapped), whole);
  swapped = records;
  swapped.pop_back();
  EXPECT_NE(checksum(swapped), whole);
}

TEST(ReadCheckTest, AScanBeginsWithItsKeyAscendsAndEnds) {
  const std::vector<Pair> records = Records(4);
  ReadCheck check;
  check.BeginScan(records[1].key, 4);
  check.Record(records[2].key, records[2].value);
  check.EndScan();
  EXPECT_EQ(check.Commit().code(), ErrorCode::kCorruption) << "begins later";

  check.Restart();
  std::vector<Pair> twice = records;
  twice.insert(twice.begin() + 2, twice[1]);
  Scan(twice, 10, &check);
  EXPECT_EQ(check.Commit().code(), ErrorCode::kCorruption) << "shows a record twice";

  check.Restart();
  Scan(records, 3, &check);
  EXPECT_EQ(check.Commit().code(), ErrorCode::kCorruption) << "shows too many";

  check.Restart();
  Scan({}, 3, &check);
  EXPECT_EQ(check.Commit().code(), ErrorCode::kCorruption) << "shows nothing";
}

TEST(ReadCheckTest, RecordsOfARefusedAttemptDoNotCount) {
  std::vector<Pair> records = Records(2);
  ReadCheck once, repeated;
  once.Value(records[0].key, records[0].value);
  ASSERT_TRUE(once.Commit().ok());
  repeated.Restart();
  repeated.Missing(records[0].key);
  repeated.Value(records[1].key, records[1].value);
  repeated.Restart();
  repeated.Value(records[0].key, records[0].value);
  ASSERT_TRUE(repeated.Commit().ok());
  EXPECT_EQ(repeated.records(), 1u);
  EXPECT_EQ(repeated.checksum(), once.checksum());
}

}  // namespace
}  // namespace deut::bench

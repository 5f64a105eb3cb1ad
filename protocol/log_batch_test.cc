#include "protocol/log_batch.h"

#include <string>
#include <vector>

#include "common/runtime/random.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

LogEntryView Update(LogEntryKind kind, uint64_t lsn, uint32_t sequence, std::string_view key,
                    std::string_view value = {}) {
  LogEntryView entry;
  entry.kind = kind;
  entry.position = Position{Lsn(lsn), sequence};
  entry.timestamp = Timestamp(lsn * 10);
  entry.table = TableId(7);
  entry.key = key;
  entry.value = value;
  return entry;
}

LogEntryView LowWater(uint64_t lsn, uint64_t timestamp) {
  LogEntryView entry;
  entry.kind = LogEntryKind::kLowWater;
  entry.position = Position{Lsn(lsn), 0};
  entry.timestamp = Timestamp(timestamp);
  return entry;
}

LogBatch Batch(const std::vector<LogEntryView>& entries, Position from, Position to) {
  LogBatch batch;
  batch.from = from;
  batch.to = to;
  for (const LogEntryView& entry : entries) batch.Append(entry);
  return batch;
}

constexpr Position At(uint64_t lsn, uint32_t sequence) { return Position{Lsn(lsn), sequence}; }

TEST(LogBatchTest, GoldenBytes) {
  const LogBatch batch =
      Batch({Update(LogEntryKind::kPut, 0x0102, 3, "k", "vw"), LowWater(0x0203, 9)}, At(1, 1), At(0x0203, 0));
  const std::string expected(
      "\x01"
      "\x02\x01\x00\x00\x00\x00\x00\x00"
      "\x03\x00\x00\x00"
      "\x14\x0a\x00\x00\x00\x00\x00\x00"
      "\x07\x00\x00\x00"
      "\x01\x00"
      "\x02\x00\x00\x00"
      "kvw"
      "\x05"
      "\x03\x02\x00\x00\x00\x00\x00\x00"
      "\x00\x00\x00\x00"
      "\x09\x00\x00\x00\x00\x00\x00\x00",
      34 + 21);
  EXPECT_EQ(batch.entries, expected);
  EXPECT_EQ(batch.Checksum(), 2858424455u);
}

TEST(LogBatchTest, ChecksumCoversBoundsAndEntries) {
  const LogBatch batch = Batch({Update(LogEntryKind::kPut, 5, 1, "k", "v")}, At(1, 0), At(5, 1));
  const uint32_t checksum = batch.Checksum();
  LogBatch other = batch;
  other.from.commit.value ^= 1;
  EXPECT_NE(other.Checksum(), checksum);
  other = batch;
  other.from.sequence ^= 1;
  EXPECT_NE(other.Checksum(), checksum);
  other = batch;
  other.to.commit.value ^= 1;
  EXPECT_NE(other.Checksum(), checksum);
  other = batch;
  other.to.sequence ^= 1;
  EXPECT_NE(other.Checksum(), checksum);
  other = batch;
  other.durable.value ^= 1;
  EXPECT_NE(other.Checksum(), checksum);
  for (size_t i = 0; i < batch.entries.size(); ++i) {
    other = batch;
    other.entries[i] = static_cast<char>(other.entries[i] ^ 0x10);
    EXPECT_NE(other.Checksum(), checksum) << i;
  }
}

TEST(LogBatchTest, ReturnsTheAppendedRecords) {
  const std::vector<LogEntryView> entries = {Update(LogEntryKind::kCreateTable, 10, 1, "accounts"),
                                             Update(LogEntryKind::kPut, 20, 1, "a", ""),
                                             Update(LogEntryKind::kPut, 20, 2, "b", "value"),
                                             LowWater(30, 250),
                                             Update(LogEntryKind::kDelete, 40, 1, "a"),
                                             Update(LogEntryKind::kDropTable, 50, 1, "accounts")};
  const LogBatch batch = Batch(entries, At(5, 0), At(60, UINT32_MAX));
  ASSERT_TRUE(batch.Validate().ok()) << batch.Validate().ToString();
  size_t i = 0;
  for (LogBatch::Iterator it(batch); it.Valid(); it.Next(), ++i) {
    ASSERT_LT(i, entries.size());
    EXPECT_EQ(it.entry().kind, entries[i].kind);
    EXPECT_EQ(it.entry().position, entries[i].position);
    EXPECT_EQ(it.entry().timestamp, entries[i].timestamp);
    EXPECT_EQ(it.entry().key, entries[i].key);
    EXPECT_EQ(it.entry().value, entries[i].value);
    if (entries[i].kind != LogEntryKind::kLowWater) EXPECT_EQ(it.entry().table, entries[i].table);
  }
  EXPECT_EQ(i, entries.size());
  EXPECT_TRUE(Batch({}, At(5, 0), At(5, 0)).Validate().ok());
}

TEST(LogBatchTest, PositionsRiseAndLieWithinTheBounds) {
  const auto refused = [](const LogBatch& batch, std::string_view why) {
    const Status status = batch.Validate();
    EXPECT_EQ(status, ErrorCode::kCorruption) << why;
    EXPECT_NE(std::string(status.message()).find(why), std::string::npos) << status.ToString();
  };
  const auto put = [](uint64_t lsn, uint32_t sequence) { return Update(LogEntryKind::kPut, lsn, sequence, "k", "v"); };
  refused(Batch({}, At(6, 0), At(5, 0)), "before it starts");
  refused(Batch({put(5, 1)}, At(5, 1), At(9, 1)), "is not in");
  refused(Batch({put(10, 1)}, At(5, 1), At(9, 1)), "is not in");
  refused(Batch({put(8, 1), put(7, 1)}, At(5, 1), At(9, 1)), "goes down");
  refused(Batch({put(8, 2), put(8, 1)}, At(5, 1), At(9, 1)), "goes down");
  refused(Batch({put(8, 1), put(8, 1)}, At(5, 1), At(9, 1)), "two updates at position");
  refused(Batch({put(8, 1), LowWater(7, 1)}, At(5, 1), At(9, 1)), "goes down");
  EXPECT_TRUE(Batch({LowWater(7, 1), LowWater(7, 2), put(7, 1)}, At(5, 1), At(7, 1)).Validate().ok());
}

TEST(LogBatchTest, RefusesEntriesBeyondTheLimits) {
  const auto status = [](const LogEntryView& entry) { return Batch({entry}, At(0, 0), At(100, 0)).Validate(); };
  const std::string long_key(kMaxKeyBytes + 1, 'k');
  const std::string long_value(kMaxValueBytes + 1, 'v');
  const std::string long_name(kMaxTableNameBytes + 1, 'n');
  EXPECT_EQ(status(Update(LogEntryKind::kPut, 5, 1, "", "v")), ErrorCode::kCorruption);
  EXPECT_EQ(status(Update(LogEntryKind::kPut, 5, 1, long_key, "v")), ErrorCode::kCorruption);
  EXPECT_EQ(status(Update(LogEntryKind::kPut, 5, 1, "k", long_value)), ErrorCode::kCorruption);
  EXPECT_EQ(status(Update(LogEntryKind::kDelete, 5, 1, "k", "v")), ErrorCode::kCorruption);
  EXPECT_EQ(status(Update(LogEntryKind::kCreateTable, 5, 1, long_name)), ErrorCode::kCorruption);
  EXPECT_EQ(status(Update(LogEntryKind::kDropTable, 5, 1, "")), ErrorCode::kCorruption);
  EXPECT_EQ(status(Update(LogEntryKind::kPut, 5, 0, "k", "v")), ErrorCode::kCorruption);
  EXPECT_EQ(status(Update(LogEntryKind::kPut, 5, UINT32_MAX, "k", "v")), ErrorCode::kCorruption);
  LogEntryView timeless = Update(LogEntryKind::kPut, 5, 1, "k", "v");
  timeless.timestamp = Timestamp(0);
  EXPECT_EQ(status(timeless), ErrorCode::kCorruption);
  EXPECT_TRUE(status(Update(LogEntryKind::kPut, 5, 1, long_key.substr(1), long_value.substr(1))).ok());
  EXPECT_TRUE(status(Update(LogEntryKind::kCreateTable, 5, 1, long_name.substr(1))).ok());
  LogEntryView create = Update(LogEntryKind::kCreateTable, 5, 1, "t");
  for (const std::string_view options : {"", "\1", "\2", "\3"}) {
    create.value = options;
    EXPECT_TRUE(status(create).ok());
  }
  for (const std::string_view unknown : {std::string_view("\0", 1), std::string_view("\4"), std::string_view("\1\1")}) {
    create.value = unknown;
    EXPECT_EQ(status(create), ErrorCode::kCorruption);
  }
  LogEntryView drop = Update(LogEntryKind::kDropTable, 5, 1, "t");
  drop.value = "\2";
  EXPECT_EQ(status(drop), ErrorCode::kCorruption);
}

TEST(LogBatchTest, ATornOrChangedBatchIsRefusedOrWellFormed) {
  const LogBatch good = Batch(
      {Update(LogEntryKind::kPut, 20, 1, "abc", "value"), LowWater(30, 250), Update(LogEntryKind::kDelete, 40, 1, "a")},
      At(5, 0), At(60, 0));
  // A cut between entries leaves a shorter, well-formed batch. Only the checksum on the wire finds it.
  int well_formed = 0;
  for (size_t bytes = 0; bytes < good.entries.size(); ++bytes) {
    LogBatch torn = good;
    torn.entries.resize(bytes);
    well_formed += torn.Validate().ok() ? 1 : 0;
  }
  EXPECT_EQ(well_formed, 3);
  Random random(5);
  for (int i = 0; i < 20000; ++i) {
    LogBatch changed = good;
    const size_t at = random.Below(changed.entries.size());
    changed.entries[at] = static_cast<char>(random.Next());
    if (!changed.Validate().ok()) continue;
    size_t bytes = 0;
    for (LogBatch::Iterator it(changed); it.Valid(); it.Next())
      bytes += it.entry().key.size() + it.entry().value.size();
    EXPECT_LE(bytes, changed.entries.size());
  }
}

}  // namespace
}  // namespace deut

// A wrong answer ends the process: each check gets something wrong.
#include "dc/bench/bench_store.h"

#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/log_batch.h"

namespace deut::dc::bench {
namespace {

constexpr uint64_t kRecords = 300;

class BenchStoreTest : public ::testing::Test {
 protected:
  BenchStoreTest() {
    // The store has threads of its own.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    std::iota(all_.begin(), all_.end(), uint32_t{0});
    Open();
    store_->Put(all_, &thread_);
  }
  void Open() {
    store_.reset();
    store_ = std::make_unique<BenchStore>(*storage_, "/pages", /*memory_bytes=*/0, checksums_, kRecords);
  }
  // Applies an entry with a timestamp later than everything that the store writes here.
  void Apply(LogEntryKind kind, std::string_view key, std::string_view value) {
    LogBatch batch;
    batch.Append({.kind = kind,
                  .position = Position{Lsn(store_->log_bytes() + (1 << 20)), 1},
                  .timestamp = kLate,
                  .table = kBenchTable,
                  .key = key,
                  .value = value});
    ASSERT_TRUE(store_->operations().ApplyBatch(batch, Position()).ok());
  }
  Timestamp TimestampOf(uint64_t record) {
    RecordBatch answer;
    EXPECT_TRUE(store_->operations().Read(kBenchTable, BenchKey(record), &answer).ok());
    return RecordBatch::Iterator(answer).record().version.timestamp;
  }

  static constexpr Timestamp kLate = BenchTimestamp(1 << 20);
  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  const ChecksumTable checksums_{kRecords};
  std::vector<uint32_t> all_ = std::vector<uint32_t>(kRecords);
  std::unique_ptr<BenchStore> store_;
  BenchThread thread_{1};
};

TEST_F(BenchStoreTest, CorrectAnswersPassAndAreCounted) {
  EXPECT_EQ(thread_.work.operations, kRecords);
  EXPECT_EQ(thread_.work.record_bytes, checksums_.bytes());
  EXPECT_EQ(store_->log_bytes(), checksums_.bytes() + std::string_view("bench").size());

  BenchThread reader(1);
  for (uint64_t i = 0; i < kRecords; ++i) store_->Lookup(i, &reader);
  EXPECT_EQ(reader.work.operations, kRecords);
  EXPECT_EQ(reader.work.records, kRecords);
  EXPECT_GT(reader.work.record_bytes, checksums_.bytes());

  BenchThread scanner(1);
  store_->Scan(10, 5, &scanner);
  store_->Scan(kRecords - 3, 10'000, &scanner);
  EXPECT_EQ(scanner.work.operations, 2u);
  EXPECT_EQ(scanner.work.records, 5u + 3);
  store_->CheckAll(kRecords);

  // All checks pass for any mix of versions.
  BenchThread updater(1);
  store_->PutRandom(&updater);
  EXPECT_GT(updater.work.operations, kRecords);
  EXPECT_EQ(updater.work.records, 0u);
  for (uint64_t i = 0; i < kRecords; ++i) store_->Lookup(i, &reader);
  store_->Scan(0, kRecords, &scanner);
  store_->CheckAll(kRecords);

  store_->Delete(std::vector<uint32_t>{4, 5});
  store_->CheckAll(kRecords - 2);
}

TEST_F(BenchStoreTest, CountersOfTheComponent) {
  EXPECT_EQ(store_->Counter("checkpoints"), 0u);
  store_->Checkpoint();
  EXPECT_EQ(store_->Counter("checkpoints"), 1u);
  EXPECT_DEATH(store_->Counter("no such counter"), "found != counters.end");
}

TEST_F(BenchStoreTest, ALaterLifeWritesLaterVersions) {
  store_->Checkpoint();
  const Timestamp before = TimestampOf(7);
  Open();
  store_->CheckAll(kRecords);
  EXPECT_EQ(TimestampOf(7), before);
  store_->Put(std::vector<uint32_t>{7}, &thread_);
  EXPECT_LT(before, TimestampOf(7));
}

TEST_F(BenchStoreTest, AWrongByteIsFound) {
  std::string value(std::string_view(BenchValue(7, kLate)));
  value[50] = static_cast<char>(value[50] ^ 1);
  Apply(LogEntryKind::kPut, BenchKey(7), value);
  EXPECT_DEATH(store_->Lookup(7, &thread_), "ChecksumOfRecord");
  EXPECT_DEATH(store_->Scan(5, 10, &thread_), "checksum ==");
  EXPECT_DEATH(store_->CheckAll(kRecords), "BenchValue");
  store_->Scan(8, 10, &thread_);
}

TEST_F(BenchStoreTest, ARecordThatIsMissingIsFound) {
  Apply(LogEntryKind::kDelete, BenchKey(7), {});
  EXPECT_DEATH(store_->Lookup(7, &thread_), "answer.size\\(\\) == 1");
  EXPECT_DEATH(store_->Scan(5, 10, &thread_), "checksum ==");
  EXPECT_DEATH(store_->Scan(0, kRecords, &thread_), "got ==");
  EXPECT_DEATH(store_->CheckAll(kRecords), "found == records");
}

TEST_F(BenchStoreTest, ARecordTooManyIsFound) {
  // A key in front of the next record's key, which CheckAll cannot tell from a record's key before it compares the
  // whole key.
  Apply(LogEntryKind::kPut, std::string(std::string_view(BenchKey(7))) + "x", BenchValue(7, kLate));
  EXPECT_DEATH(store_->Scan(5, 10, &thread_), "checksum ==");
  EXPECT_DEATH(store_->CheckAll(kRecords), "BenchKey");
}

TEST_F(BenchStoreTest, AKeyThatIsTooShortIsFound) {
  Apply(LogEntryKind::kPut, "0", BenchValue(0, kLate));
  EXPECT_DEATH(store_->CheckAll(kRecords + 1), "kDigits");
}

TEST_F(BenchStoreTest, AnotherRecordsValueIsFound) {
  Apply(LogEntryKind::kPut, BenchKey(7), BenchValue(8, kLate));
  EXPECT_DEATH(store_->Lookup(7, &thread_), "ChecksumOfRecord");
  EXPECT_DEATH(store_->CheckAll(kRecords), "BenchValue");
}

TEST_F(BenchStoreTest, AnotherVersionsValueIsFound) {
  // The sum of its bytes is the same: only a comparison of all bytes detects it.
  Apply(LogEntryKind::kPut, BenchKey(7), BenchValue(7, BenchTimestamp(1)));
  store_->Lookup(7, &thread_);
  EXPECT_DEATH(store_->CheckAll(kRecords), "BenchValue");
}

}  // namespace
}  // namespace deut::dc::bench

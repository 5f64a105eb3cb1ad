// The number of logical ranges follows a table's size and its updates: from an empty table to a large one, under
// transactions, and back.
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "common/runtime/random.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"
#include "integration/product/embedded/embedded.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

constexpr uint64_t kRecords = 20'000;
constexpr uint64_t kRecordsPerRange = 100;

std::string KeyOf(uint64_t i) { return absl::StrFormat("k%08d", i); }

class RangesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.data_dir = dir_.path();
    options_.tc.log.segment_bytes = 16 << 20;
    options_.tc.log.ring_bytes = 16 << 20;
    options_.tc.memory.log2_record_buckets = 12;
    options_.tc.ranges.records_per_range = kRecordsPerRange;
    options_.tc.ranges.period = milliseconds(5);
    options_.dc.records.tree.leaf_page_bytes = 1024;
    options_.dc.records.tree.inner_page_bytes = 1024;
    // The DC subtracts deleted records from a table's count when it rewrites pages.
    options_.dc.records.merge_interval = milliseconds(10);
    options_.dc.checkpoints.interval = milliseconds(200);
    Open();
    const Result<TableId> table = store_->client().CreateTable("t");
    ASSERT_TRUE(table.ok()) << table.status().ToString();
    table_ = *table;
  }
  void Open() {
    store_.reset();
    Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = *std::move(opened);
  }
  void Put(uint64_t begin, uint64_t end) {
    const Status put = RunTransaction(store_->client(), {}, [&](Transaction& t) {
      for (uint64_t i = begin; i < end; ++i) DEUT_RETURN_IF_ERROR(t.Put(table_, KeyOf(i), std::string(20, 'v')));
      return Status::Ok();
    });
    ASSERT_TRUE(put.ok()) << put.ToString();
  }
  uint64_t Ranges() {
    const Result<ServiceStatus> status = store_->client().GetStatus();
    if (!status.ok()) return 0;
    for (const CounterValue& value : status->tc) {
      if (value.name == "ranges.table.t") return value.value;
    }
    return 0;
  }
  // Waits until the table has between `low` and `high` ranges, and returns the last number seen.
  uint64_t RangesBetween(uint64_t low, uint64_t high) {
    Runtime& runtime = RealRuntime();
    uint64_t ranges = Ranges();
    for (const Deadline end = runtime.Now() + seconds(100); (ranges < low || ranges > high) && runtime.Now() < end;) {
      runtime.SleepUntil(runtime.Now() + milliseconds(5));
      ranges = Ranges();
    }
    return ranges;
  }

  const testing::TempDir dir_;
  EmbeddedOptions options_;
  std::unique_ptr<Embedded> store_;
  TableId table_;
};

TEST_F(RangesTest, GrowWithTheTableAndShrinkWithIt) {
  EXPECT_EQ(Ranges(), 1u);
  for (uint64_t i = 0; i < kRecords; i += 200) Put(i, i + 200);
  constexpr uint64_t kWanted = kRecords / kRecordsPerRange;
  EXPECT_GE(RangesBetween(kWanted / 2, 2 * kWanted + 1), kWanted / 2);
  EXPECT_LE(Ranges(), 4 * kWanted);
  // A TC that starts splits the table into ranges at once, before it serves.
  Open();
  EXPECT_GE(Ranges(), kWanted / 2);
  for (uint64_t i = 0; i < kRecords; i += 1000) {
    const Status removed = RunTransaction(store_->client(), {}, [&](Transaction& t) {
      return t.RemoveRange(table_, KeyOf(i), KeyOf(i + 1000)).status();
    });
    ASSERT_TRUE(removed.ok()) << removed.ToString();
  }
  EXPECT_LE(RangesBetween(1, 4), 4u);
  OneShot scan(store_->client());
  scan.Scan(table_, {});
  ASSERT_TRUE(scan.Run().ok());
  EXPECT_EQ(scan.result(0).records.size(), 0u);
}

// By its size alone, the table would get one range.
TEST_F(RangesTest, MuchIsUpdatedInMoreRanges) {
  constexpr uint64_t kHot = 5000;
  options_.tc.ranges.records_per_range = 2 * kHot;
  Open();
  for (uint64_t i = 0; i < kHot; i += 200) Put(i, i + 200);
  Random random(1);
  Runtime& runtime = RealRuntime();
  TransactionOptions buffered;
  buffered.durability = Durability::kBuffered;
  for (const Deadline end = runtime.Now() + seconds(100); Ranges() < 3 && runtime.Now() < end;) {
    for (int i = 0; i < 500; ++i) {
      OneShot put(store_->client(), buffered);
      put.Put(table_, KeyOf(random.Below(kHot)), "w");
      ASSERT_TRUE(put.Run().ok());
    }
  }
  EXPECT_GE(Ranges(), 3u);
}

}  // namespace
}  // namespace deut

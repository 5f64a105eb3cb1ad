// Scans over many pages whose records were all deleted. The DC answers with batches that hold no record, and every
// kind of scan continues over them.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "integration/product/embedded/embedded.h"
#include "tc/client/one_scan.h"
#include "tc/client/one_shot.h"
#include "tc/client/retry.h"

namespace deut {
namespace {

std::string Key(int i) { return Concat("key", 100'000 + i); }

class EmptiedPagesTest : public ::testing::Test {
 protected:
  // Makes a table of `keys` records in leaves of at most `leaf_bytes`, and removes all records but the first and the
  // last. The emptied pages stay.
  void Open(int keys, uint32_t leaf_bytes) {
    EmbeddedOptions options;
    options.data_dir = "/store";
    options.dc.records.tree.leaf_page_bytes = leaf_bytes;
    options.dc.records.tree.leaf_chain_length = 4;
    options.dc.records.merge_interval = std::chrono::hours(1);
    Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options, RealRuntime(), *storage_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = *std::move(opened);
    table_ = *client().CreateTable("t");
    for (int i = 0; i < keys;) {
      Transaction transaction = *client().Begin();
      for (int n = 0; n < 1000; ++n, ++i) ASSERT_TRUE(transaction.Put(table_, Key(i), std::string(100, 'v')).ok());
      ASSERT_TRUE(transaction.Commit().ok());
    }
    Transaction transaction = *client().Begin();
    const Result<uint64_t> removed = transaction.RemoveRange(table_, Key(1), Key(keys - 1));
    ASSERT_TRUE(removed.ok()) << removed.status().ToString();
    ASSERT_TRUE(transaction.Commit().ok());
    WaitUntilApplied();
  }
  // Waits until the DC has applied everything, so that the TC holds nothing of the table any more.
  void WaitUntilApplied() {
    const MonotonicTime patience = RealRuntime().Now() + seconds(60);
    for (bool waits = true; waits;) {
      ASSERT_LT(RealRuntime().Now(), patience);
      const Result<ServiceStatus> status = store_->service().GetStatus(patience);
      ASSERT_TRUE(status.ok());
      for (const CounterValue& counter : status->tc) {
        if (counter.name == "collector.waiting_transactions") waits = counter.value != 0;
      }
      RealRuntime().Yield();
    }
  }
  uint64_t Pages() {
    const Result<ServiceStatus> status = store_->client().GetStatus();
    if (!status.ok()) return 0;
    for (const CounterValue& counter : status->dc) {
      if (counter.name == "pages") return counter.value;
    }
    return 0;
  }
  Client& client() { return store_->client(); }

  const std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  std::unique_ptr<Embedded> store_;
  TableId table_;
};

TEST_F(EmptiedPagesTest, EveryScanGetsToTheRecordsBehindThem) {
  constexpr int kKeys = 20'000;
  Open(kKeys, 1024);
  if (HasFatalFailure()) return;
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    SCOPED_TRACE(static_cast<int>(direction));
    const bool ascending = direction == Direction::kAscending;
    const std::vector<std::string> both =
        ascending ? std::vector<std::string>{Key(0), Key(kKeys - 1)} : std::vector<std::string>{Key(kKeys - 1), Key(0)};
    for (const uint64_t limit : {uint64_t{0}, uint64_t{2}}) {
      Transaction transaction = *client().Begin();
      Scanner scanner = transaction.OpenScanner(table_, {.direction = direction, .limit_records = limit});
      std::vector<std::string> keys;
      while (scanner.Next()) keys.emplace_back(scanner.key());
      EXPECT_TRUE(scanner.status().ok()) << scanner.status().ToString();
      EXPECT_EQ(keys, both);
    }
    // A one-shot scan whose message carries its commit, too. With `near` it finds the record before the emptied
    // pages, otherwise only the one behind them.
    for (const bool near : {true, false}) {
      Operation scan;
      scan.kind = OperationKind::kScan;
      scan.table = table_;
      scan.direction = direction;
      scan.limit_records = 1;
      const std::string low = near || !ascending ? "" : Key(1);
      const std::string high = near || ascending ? "" : Key(kKeys - 1);
      scan.low = low;
      scan.high = high;
      std::vector<OperationResult> results;
      const Result<CommitAnswer> ran = RunOneShot(client(), {}, {&scan, 1}, &results);
      ASSERT_TRUE(ran.ok()) << ran.status().ToString();
      ASSERT_EQ(results.size(), 1u);
      ASSERT_EQ(results[0].records.size(), 1u);
      EXPECT_EQ(RecordBatch::Iterator(results[0].records).record().key, near ? both[0] : both[1]);
    }
  }
}

// More pages than one call reads. A one-shot transaction, which is one call, tells where the rest begins. A scan that
// may go on does so by itself.
TEST_F(EmptiedPagesTest, OneCallReadsALimitedNumberOfThem) {
  constexpr int kKeys = 60'000;
  Open(kKeys, 256);
  if (HasFatalFailure()) return;
  constexpr uint64_t kPagesOfOneCall = uint64_t{64} * 256;
  ASSERT_GT(Pages(), kPagesOfOneCall + kPagesOfOneCall / 4);

  OneShot one_shot(client());
  one_shot.Scan(table_, {.low = Key(1), .limit_records = 1});
  ASSERT_TRUE(one_shot.Run().ok());
  EXPECT_TRUE(one_shot.result(0).records.empty());
  ASSERT_FALSE(one_shot.result(0).complete);
  EXPECT_GT(one_shot.result(0).resume, Key(1));
  EXPECT_LT(one_shot.result(0).resume, Key(kKeys - 1));

  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    SCOPED_TRACE(static_cast<int>(direction));
    OneScan scan(client(), table_, {.low = Key(1), .direction = direction});
    int records = 0;
    for (; scan.Next(); ++records) EXPECT_EQ(scan.key(), Key(kKeys - 1));
    EXPECT_TRUE(scan.status().ok()) << scan.status().ToString();
    EXPECT_EQ(records, 1);
    EXPECT_TRUE(scan.complete());
  }
  Transaction transaction = *client().Begin();
  const Result<ScanResult> all = transaction.Scan(table_, {});
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  EXPECT_TRUE(all->complete);
  EXPECT_EQ(all->records.size(), 2u);
  const Result<uint64_t> removed = transaction.RemoveRange(table_, "", "");
  ASSERT_TRUE(removed.ok()) << removed.status().ToString();
  EXPECT_EQ(*removed, 2u);
  EXPECT_TRUE(transaction.Commit().ok());
}

}  // namespace
}  // namespace deut

// Scans over many pages whose records were all deleted. The DC answers with batches that hold no record, and every
// kind of scan continues over them.
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
#include "tc/client/retry.h"

namespace deut {
namespace {

constexpr int kKeys = 20'000;

std::string Key(int i) { return Concat("key", 100'000 + i); }

TEST(EmptiedPagesTest, EveryScanGetsToTheRecordsBehindThem) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  EmbeddedOptions options;
  options.data_dir = "/store";
  options.dc.records.tree.leaf_page_bytes = 1024;
  options.dc.records.merge_interval = std::chrono::hours(1);  // emptied pages stay
  Result<std::unique_ptr<Embedded>> opened = Embedded::Open(options, RealRuntime(), *storage);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  Embedded& store = **opened;
  const TableId table = *store.client().CreateTable("t");
  for (int i = 0; i < kKeys;) {
    Transaction transaction = *store.client().Begin();
    for (int n = 0; n < 1000; ++n, ++i) ASSERT_TRUE(transaction.Put(table, Key(i), std::string(100, 'v')).ok());
    ASSERT_TRUE(transaction.Commit().ok());
  }
  {
    Transaction transaction = *store.client().Begin();
    const Result<uint64_t> removed = transaction.RemoveRange(table, Key(1), Key(kKeys - 1));
    ASSERT_TRUE(removed.ok()) << removed.status().ToString();
    ASSERT_TRUE(transaction.Commit().ok());
  }
  // Waits until the DC has applied everything, so that the TC holds nothing of the table any more.
  const MonotonicTime patience = RealRuntime().Now() + seconds(60);
  for (bool waits = true; waits;) {
    ASSERT_LT(RealRuntime().Now(), patience);
    const Result<ServiceStatus> status = store.service().GetStatus(patience);
    ASSERT_TRUE(status.ok());
    for (const CounterValue& counter : status->tc) {
      if (counter.name == "collector.waiting_transactions") waits = counter.value != 0;
    }
    RealRuntime().Yield();
  }

  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    SCOPED_TRACE(static_cast<int>(direction));
    const bool ascending = direction == Direction::kAscending;
    const std::vector<std::string> both =
        ascending ? std::vector<std::string>{Key(0), Key(kKeys - 1)} : std::vector<std::string>{Key(kKeys - 1), Key(0)};
    for (const uint64_t limit : {uint64_t{0}, uint64_t{2}}) {
      Transaction transaction = *store.client().Begin();
      Scanner scanner = transaction.OpenScanner(table, {.direction = direction, .limit_records = limit});
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
      scan.table = table;
      scan.direction = direction;
      scan.limit_records = 1;
      const std::string low = near || !ascending ? "" : Key(1);
      const std::string high = near || ascending ? "" : Key(kKeys - 1);
      scan.low = low;
      scan.high = high;
      std::vector<OperationResult> results;
      const Result<CommitAnswer> ran = RunOneShot(store.client(), {}, {&scan, 1}, &results);
      ASSERT_TRUE(ran.ok()) << ran.status().ToString();
      ASSERT_EQ(results.size(), 1u);
      ASSERT_EQ(results[0].records.size(), 1u);
      EXPECT_EQ(RecordBatch::Iterator(results[0].records).record().key, near ? both[0] : both[1]);
    }
  }
}

}  // namespace
}  // namespace deut

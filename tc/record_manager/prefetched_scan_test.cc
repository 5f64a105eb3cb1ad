// Transactions that are begun ahead for their first scan: what they see, which writers they refuse, and what happens
// to those that get no answer.
#include "tc/record_manager/prefetched_scan.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/random.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "protocol/record_batch.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/record_manager/read_ahead.h"

namespace deut::tc {
namespace {

constexpr TableId kTable = EngineFixture::kTable;

Operation ScanOf(std::string_view low, std::string_view high) {
  return {.kind = OperationKind::kScan, .table = kTable, .low = low, .high = high};
}

// Runs the transaction that was begun for this scan to its end.
std::string RunBegun(RecordManager& manager, PrefetchedScan& begun, Operation scan) {
  std::unique_ptr<Transaction> txn = begun.TakeTransaction();
  if (txn == nullptr) return "given up";
  std::string text, resume;
  for (bool more = true; more;) {
    OperationResult result;
    const Status status = manager.Scan(*txn, scan, &result, EngineFixture::Soon());
    if (!status.ok()) {
      manager.Abort(*txn, AbortReason::kFailedOperation);
      return StatusText(status);
    }
    for (RecordBatch::Iterator it(result.records); it.Valid(); it.Next()) {
      text += (text.empty() ? "" : " ") + std::string(it.record().key) + "=" + std::string(it.record().value);
    }
    more = !IsOver(scan, result);
    resume = result.resume;
    (scan.direction == Direction::kAscending ? scan.low : scan.high) = resume;
    scan.scan_sequence = result.scan_sequence;
  }
  EXPECT_TRUE(manager.Commit(*txn, EngineFixture::Soon()).ok());
  return text;
}

class PrefetchedScanTest : public ::testing::Test {
 protected:
  PrefetchedScanTest() { f_.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}, {"d", "0"}}); }
  ~PrefetchedScanTest() override { testing::SetPointHandler(nullptr); }

  std::unique_ptr<PrefetchedScan> Begin(const Operation& scan, const TransactionOptions& options = {}) {
    return ahead_.BeginScan(options, {&scan, 1});
  }
  void Ask() {
    ASSERT_TRUE(ahead_.Start());
    ahead_.Finish(EngineFixture::Soon());
  }
  std::string Run(PrefetchedScan& begun, const Operation& scan) { return RunBegun(*f_.manager, begun, scan); }
  void Put(std::string_view key, std::string_view value) {
    TestTransaction txn = f_.Begin();
    EXPECT_EQ(txn.Put(key, value), "ok");
    EXPECT_EQ(txn.Commit(), "ok");
  }

  EngineFixture f_;
  ReadAhead ahead_{*f_.engine};
};

TEST_F(PrefetchedScanTest, FirstBatchesAreAskedForTogetherAndOnce) {
  const uint64_t before = f_.dc->requests();
  const Operation all = ScanOf("", ""), some = ScanOf("b", "d");
  Operation down = ScanOf("", "d");
  down.direction = Direction::kDescending;
  down.limit_records = 2;
  const std::unique_ptr<PrefetchedScan> first = Begin(all), second = Begin(some), third = Begin(down);
  ASSERT_TRUE(first != nullptr && second != nullptr && third != nullptr);
  EXPECT_EQ(f_.dc->requests(), before);
  Ask();
  EXPECT_EQ(f_.dc->requests(), before + 3);
  EXPECT_EQ(Run(*third, down), "c=0 b=0");
  EXPECT_EQ(Run(*first, all), "a=0 b=0 c=0 d=0");
  EXPECT_EQ(Run(*second, some), "b=0 c=0");
  EXPECT_EQ(f_.dc->requests(), before + 3);
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  EXPECT_EQ(f_.engine->scan_ahead.used(), 0u);
  EXPECT_EQ(Run(*first, all), "given up");  // it has ended
}

TEST_F(PrefetchedScanTest, S4KeysOfTheTcAreGatheredBeforeTheDcIsAsked) {
  Put("b", "1");
  TestTransaction remove = f_.Begin();
  EXPECT_EQ(remove.Remove("c"), "ok");
  EXPECT_EQ(remove.Commit(), "ok");
  const Operation all = ScanOf("", "");
  const std::unique_ptr<PrefetchedScan> begun = Begin(all);
  ASSERT_NE(begun, nullptr);
  Ask();
  EXPECT_EQ(Run(*begun, all), "a=0 b=1 d=0");
}

// Updates that commit between the answer and the run are later. If the begun transaction did not count in the
// low-water, they would be at the DC and gone from the TC.
TEST_F(PrefetchedScanTest, S1ABegunTransactionCountsUntilItHasEnded) {
  Put("b", "1");
  const Operation all = ScanOf("", "");
  const std::unique_ptr<PrefetchedScan> begun = Begin(all);
  ASSERT_NE(begun, nullptr);
  Ask();
  Put("b", "2");
  Put("e", "2");
  f_.PumpAndCollect();
  EXPECT_EQ(Run(*begun, all), "a=0 b=1 c=0 d=0");
  EXPECT_EQ(f_.Contents(), "a=0 b=2 c=0 d=0 e=2");
}

// An earlier writer is refused from the beginning on, because it would come between the answer and the run.
TEST_F(PrefetchedScanTest, R2AnEarlierWriterThatComesLaterIsRefused) {
  TestTransaction earlier = f_.Begin();
  const Operation all = ScanOf("", "");
  const std::unique_ptr<PrefetchedScan> begun = Begin(all);
  ASSERT_NE(begun, nullptr);
  Ask();
  EXPECT_NE(earlier.Put("b", "1"), "ok");
  EXPECT_EQ(Run(*begun, all), "a=0 b=0 c=0 d=0");
}

TEST_F(PrefetchedScanTest, R8AWriterOnTheWayIsDecidedWhenTheScanComesThere) {
  TestTransaction writer = f_.Begin();
  EXPECT_EQ(writer.Put("c", "1"), "ok");
  const Operation all = ScanOf("", ""), from_there = ScanOf("c", "");
  // The writer is in the way at once. TryBegin does not wait, and leaves nothing behind.
  const uint32_t open = f_.active->open_transactions();
  EXPECT_EQ(Begin(from_there), nullptr);
  EXPECT_EQ(f_.active->open_transactions(), open);
  const std::unique_ptr<PrefetchedScan> first = Begin(all), second = Begin(all);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  Ask();
  EXPECT_EQ(Run(*first, all), "range-writer");
  EXPECT_EQ(writer.Commit(), "ok");
  EXPECT_EQ(Run(*second, all), "a=0 b=0 c=1 d=0");
}

TEST_F(PrefetchedScanTest, AScanGoesOnBeyondItsFirstAnswer) {
  f_.dc->set_scan_records(1);
  f_.SetRanges({"c"});
  Put("bb", "1");
  const Operation all = ScanOf("", "");
  const std::unique_ptr<PrefetchedScan> begun = Begin(all);
  ASSERT_NE(begun, nullptr);
  Ask();
  EXPECT_EQ(Run(*begun, all), "a=0 b=0 bb=1 c=0 d=0");
}

TEST_F(PrefetchedScanTest, X3ATransactionWithoutAnAnswerHasEnded) {
  const Operation all = ScanOf("", "");
  const std::unique_ptr<PrefetchedScan> begun = Begin(all);
  ASSERT_NE(begun, nullptr);
  f_.dc->LoseAsked(true);
  ASSERT_TRUE(ahead_.Start());
  EXPECT_FALSE(ahead_.Finish(EngineFixture::Soon()));
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  EXPECT_EQ(f_.engine->scan_ahead.used(), 0u);
  EXPECT_EQ(Run(*begun, all), "given up");
}

TEST_F(PrefetchedScanTest, ADcThatIsAwayIsNotWaitedFor) {
  const Operation all = ScanOf("", "");
  const std::unique_ptr<PrefetchedScan> begun = Begin(all);
  ASSERT_NE(begun, nullptr);
  f_.dc->set_error(Status(ErrorCode::kUnavailable, "away"));
  EXPECT_FALSE(ahead_.Start());
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  EXPECT_EQ(Run(*begun, all), "given up");
  f_.dc->set_error(Status::Ok());
}

TEST_F(PrefetchedScanTest, ATransactionThatIsNotRunHoldsNothing) {
  const Operation all = ScanOf("", "");
  {
    const std::unique_ptr<PrefetchedScan> asked = Begin(all);
    ASSERT_NE(asked, nullptr);
    Ask();
    const std::unique_ptr<PrefetchedScan> not_asked = Begin(all);
    ASSERT_NE(not_asked, nullptr);
    EXPECT_EQ(f_.active->open_transactions(), 2u);
    EXPECT_GT(f_.engine->scan_ahead.used(), 0u);
    f_.dc->set_error(Status(ErrorCode::kUnavailable, "away"));
    EXPECT_FALSE(ahead_.Start());
  }
  EXPECT_EQ(f_.active->open_transactions(), 0u);
  EXPECT_EQ(f_.engine->scan_ahead.used(), 0u);
}

TEST_F(PrefetchedScanTest, NotEveryTransactionIsBegun) {
  const Operation all = ScanOf("", "");
  const auto refused = [&](const TransactionOptions& options, const std::vector<Operation>& operations) {
    const std::unique_ptr<PrefetchedScan> begun = ahead_.BeginScan(options, operations);
    return begun == nullptr && f_.active->open_transactions() == 0;
  };
  TransactionOptions snapshot;
  snapshot.isolation = Isolation::kSnapshot;
  EXPECT_TRUE(refused(snapshot, {all}));
  EXPECT_TRUE(refused(EngineFixture::Declaring({"a"}), {all}));
  EXPECT_TRUE(refused({}, {}));
  EXPECT_TRUE(refused({}, {{.kind = OperationKind::kGet, .table = kTable, .key = "a"}, all}));
  EXPECT_TRUE(refused({}, {all, {.kind = OperationKind::kPut, .table = kTable, .key = "a"}}));
  Operation other = all;
  other.for_update = true;
  EXPECT_TRUE(refused({}, {other}));
  EXPECT_TRUE(refused({}, {all, other}));
  other = all;
  other.scan_sequence = 1;
  EXPECT_TRUE(refused({}, {other}));
  other = all;
  other.table = TableId(99);
  EXPECT_TRUE(refused({}, {other}));
  EXPECT_TRUE(refused({}, {ScanOf("c", "b")}));
  const std::string long_bound(kMaxKeyBytes + 2, 'k');
  EXPECT_TRUE(refused({}, {ScanOf("", long_bound)}));
  {
    ScanAheadShare hog;
    hog.Resize(f_.engine->scan_ahead, (256 << 20) - 1);
    EXPECT_TRUE(refused({}, {all}));
  }
  EXPECT_FALSE(refused({}, {all, {.kind = OperationKind::kGet, .table = kTable, .key = "a"}, all}));
}

TEST_F(PrefetchedScanTest, NoMoreThanFitsIsBegunAtOnce) {
  const Operation all = ScanOf("", "");
  std::vector<std::unique_ptr<PrefetchedScan>> begun;
  for (size_t i = 0; i < ReadAhead::kMaxScans; ++i) {
    begun.push_back(Begin(all));
    ASSERT_NE(begun.back(), nullptr);
  }
  EXPECT_EQ(Begin(all), nullptr);
  Ask();
  for (const auto& scan : begun) EXPECT_EQ(Run(*scan, all), "a=0 b=0 c=0 d=0");
}

// Writers move amounts from key to key. Scanners begin several scans at once and run them later, while the DC applies
// what it may. Every sum is the same.
TEST(PrefetchedScanStressTest, EveryScanSeesOneMoment) {
  constexpr int kKeys = 40, kScans = 400;
  EngineFixture f;
  std::vector<std::pair<std::string, std::string>> load;
  for (int i = 0; i < kKeys; ++i) load.emplace_back("k" + std::to_string(10 + i), "100");
  f.Load(load);
  f.SetRanges({"k20", "k35"});
  std::atomic<int> scanned{0}, written{0};
  std::atomic<bool> over{false};
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint64_t w = 0; w < 2; ++w) {
    threads.push_back(RealRuntime().StartThread("writer", [&, w] {
      Random random(w + 1);
      while (!over.load()) {
        // Limits the writers. Otherwise they write more than is collected, and no scan finds a moment without a
        // writer.
        if (written.fetch_add(1) >= 8 * (scanned.load() + 1)) {
          written.fetch_sub(1);
          RealRuntime().Yield();
          continue;
        }
        TestTransaction txn = f.Begin();
        const std::string from = load[random.Below(kKeys)].first, to = load[random.Below(kKeys)].first;
        const std::string a = txn.Get(from);
        if (!txn.open() || from == to) continue;
        const std::string b = txn.Get(to);
        if (!txn.open()) continue;
        if (txn.Put(from, std::to_string(std::stoi(a) - 1)) != "ok") continue;
        if (txn.Put(to, std::to_string(std::stoi(b) + 1)) != "ok") continue;
        (void)txn.Commit();
      }
    }));
  }
  threads.push_back(RealRuntime().StartThread("dc", [&] {
    while (!over.load()) f.PumpAndCollect();
  }));
  std::vector<std::unique_ptr<Thread>> scanners;
  for (int s = 0; s < 2; ++s) {
    scanners.push_back(RealRuntime().StartThread("scanner", [&] {
      ReadAhead ahead(*f.engine);
      const Operation all = ScanOf("k", "l");
      while (scanned.load() < kScans) {
        std::vector<std::unique_ptr<PrefetchedScan>> begun;
        for (int i = 0; i < 4; ++i) begun.push_back(ahead.BeginScan(EngineFixture::Buffered(), {&all, 1}));
        if (!ahead.Start()) continue;
        ahead.Finish(EngineFixture::Soon());
        for (const std::unique_ptr<PrefetchedScan>& scan : begun) {
          std::unique_ptr<Transaction> txn = scan == nullptr ? nullptr : scan->TakeTransaction();
          if (txn == nullptr) continue;
          OperationResult result;
          if (!f.manager->Scan(*txn, all, &result, EngineFixture::Soon()).ok()) {
            f.manager->Abort(*txn, AbortReason::kFailedOperation);
            continue;
          }
          int sum = 0;
          for (RecordBatch::Iterator it(result.records); it.Valid(); it.Next()) {
            sum += std::stoi(std::string(it.record().value));
          }
          EXPECT_EQ(result.records.size(), size_t{kKeys});
          EXPECT_EQ(sum, kKeys * 100);
          EXPECT_TRUE(f.manager->Commit(*txn, EngineFixture::Soon()).ok());
          scanned.fetch_add(1);
        }
      }
    }));
  }
  scanners.clear();
  over.store(true);
  threads.clear();
  EXPECT_GE(scanned.load(), kScans);
  f.Stop();
}

}  // namespace
}  // namespace deut::tc

// Scans that go on over many batches: gathering and granting ahead (rules S4, R8), which does not change the records
// that they deliver.
#include "tc/scan/resumable_scan.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/runtime/random.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

std::string KeyOf(int i) { return "k" + std::to_string(1000 + i); }

class ResumableScanTest : public ::testing::Test {
 protected:
  // Loads records 0 to n - 1 with value "0", and makes a range of each `per_range` of them.
  void LoadKeys(int n, int per_range) {
    std::vector<std::pair<std::string, std::string>> load;
    std::vector<std::string> cuts;
    for (int i = 0; i < n; ++i) {
      load.push_back({KeyOf(i), "0"});
      if (i != 0 && i % per_range == 0) cuts.push_back(KeyOf(i));
    }
    f_.Load(load);
    f_.SetRanges(cuts);
  }
  static std::string Expected(int begin, int end) {
    std::string text;
    for (int i = begin; i < end; ++i) text += (i == begin ? "" : " ") + KeyOf(i) + "=0";
    return text;
  }
  static void Join(std::string* all, const std::string& text) {
    if (!all->empty() && !text.empty()) *all += ' ';
    *all += text;
  }
  std::string Rest(TestTransaction& t, Operation* scan) {
    std::string all;
    for (bool more = true; more;) Join(&all, t.ScanBatch(scan, &more));
    return all;
  }
  // The bytes of one record of LoadKeys in a batch.
  static constexpr uint64_t kRecord = RecordBatch::kHeaderBytes + 5 + 1;

  EngineFixture f_;
};

// Thousands of keys that only the TC has are within one answer of the DC. A batch resolves the keys that it takes,
// and hardly more; so does the next.
TEST_F(ResumableScanTest, ABatchResolvesWhatItTakes) {
  constexpr int kKeys = 2000;
  f_.Load({{KeyOf(0), "0"}, {KeyOf(kKeys - 1), "0"}});
  TestTransaction old = f_.Begin();
  EXPECT_EQ(old.Get(KeyOf(0)), "0");
  {
    TestTransaction writer = f_.Begin();
    for (int i = 1; i < kKeys - 1; ++i) ASSERT_EQ(writer.Put(KeyOf(i), "0"), "ok");
    ASSERT_EQ(writer.Commit(), "ok");
  }
  for (const bool folded : {false, true}) {
    SCOPED_TRACE(folded);
    if (folded) f_.Fold();
    for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
      TestTransaction t = f_.Begin();
      Operation scan{.direction = direction, .limit_bytes = 20 * kRecord};
      int batches = 0;
      std::atomic<int> resolved{0};
      testing::SetPointHandler([&](std::string_view name) {
        if (name == "scan.resolving") resolved.fetch_add(1);
      });
      std::string all;
      for (bool more = true; more; ++batches) Join(&all, t.ScanBatch(&scan, &more));
      testing::SetPointHandler(nullptr);
      EXPECT_EQ(all.size(), Expected(0, kKeys).size());
      if (direction == Direction::kAscending) EXPECT_EQ(all, Expected(0, kKeys));
      EXPECT_GT(batches, kKeys / 30);
      EXPECT_LE(resolved.load(), 2 * kKeys);
      EXPECT_EQ(t.Commit(), "ok");
    }
  }
}

// With a DC that reads ahead and one that does not, in both directions, with batches that end within an answer, at
// its end, and within a range.
TEST_F(ResumableScanTest, ALongScanIsOneStateWhateverHappensBetweenItsBatches) {
  uint64_t bulk = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    EngineFixture g;
    g.dc->set_reads_ahead(seed % 4 != 0);
    std::map<std::string, std::string> state;
    std::vector<std::pair<std::string, std::string>> load;
    std::vector<std::string> cuts;
    for (int i = 0; i < 120; ++i) {
      if (random.Below(3) == 0) continue;
      load.push_back({KeyOf(i), std::string(1 + random.Below(20), 'a')});
      state[load.back().first] = load.back().second;
    }
    for (int i = 1; i < 120; ++i) {
      if (random.Below(6) == 0) cuts.push_back(KeyOf(i));
    }
    g.Load(load);
    g.SetRanges(cuts);
    const auto change = [&](bool counts) {
      TestTransaction t = g.Begin();
      std::map<std::string, std::string> after = state;
      for (uint64_t n = 1 + random.Below(5); n > 0; --n) {
        const std::string key = KeyOf(static_cast<int>(random.Below(120)));
        if (random.Below(3) == 0) {
          if (t.Remove(key) != "ok") return;
          after.erase(key);
        } else {
          const std::string value(1 + random.Below(20), 'b');
          if (t.Put(key, value) != "ok") return;
          after[key] = value;
        }
      }
      if (t.Commit() == "ok" && counts) state = after;
    };
    for (int i = 0; i < 10; ++i) change(true);
    if (random.Below(2) == 0) g.dc->Pump(3);
    TestTransaction reader = g.Begin();
    const Direction direction = random.Below(2) == 0 ? Direction::kAscending : Direction::kDescending;
    Operation scan{.direction = direction, .limit_bytes = static_cast<uint32_t>(30 + random.Below(300))};
    std::string all, expected;
    for (bool more = true; more;) {
      Join(&all, reader.ScanBatch(&scan, &more));
      ASSERT_TRUE(reader.open()) << all;
      if (random.Below(3) == 0) change(false);
      if (random.Below(3) == 0) g.dc->Pump();
      if (random.Below(5) == 0) g.Collect();
      if (random.Below(20) == 0) g.dc->Restart();
      if (random.Below(10) == 0) RecordManager::EndIdleStreams(reader.transaction(), MonotonicTime::max());
    }
    const auto add = [&](const auto& record) { Join(&expected, record.first + "=" + record.second); };
    if (direction == Direction::kAscending) {
      std::for_each(state.begin(), state.end(), add);
    } else {
      std::for_each(state.rbegin(), state.rend(), add);
    }
    EXPECT_EQ(all, expected);
    EXPECT_EQ(reader.Commit(), "ok");
    EXPECT_EQ(g.dc->open_scans(), 0u);
    EXPECT_EQ(g.engine->scan_ahead.used(), 0u);
    bulk += g.engine->counters.bulk_scans.load();
  }
  EXPECT_GE(bulk, 40u);
}

// S4. An earlier transaction commits just before the TC is looked at, and is applied and collected at once. If the DC
// had read before, it would have the state before that commit.
TEST_F(ResumableScanTest, S4TheDcIsGrantedOnlyWhatIsGathered) {
  for (const bool reads_ahead : {true, false}) {
    SCOPED_TRACE(reads_ahead);
    EngineFixture g;
    g.dc->set_reads_ahead(reads_ahead);
    g.Load({{"a", "0"}, {"b", "0"}, {"m", "0"}, {"n", "0"}, {"x", "0"}, {"y", "0"}});
    g.SetRanges({"m", "x"});
    TestTransaction t10 = g.Begin(), t20 = g.Begin();
    Operation scan{.limit_bytes = 20};
    bool more = false;
    EXPECT_EQ(t20.ScanBatch(&scan, &more), "a=0");
    scan.limit_bytes = 1000;
    EXPECT_EQ(t10.Put("y", "1"), "ok");
    AtPoint point("scan.before_raise", [&] {
      EXPECT_EQ(t10.Commit(), "ok");
      EXPECT_EQ(g.dc->Pump(), 1u);
      g.Collect();
    });
    std::string all;
    while (more) Join(&all, t20.ScanBatch(&scan, &more));
    EXPECT_TRUE(point.reached());
    EXPECT_EQ(all, "b=0 m=0 n=0 x=0 y=1");
    EXPECT_EQ(t20.Commit(), "ok");
  }
}

// R8: a writer in the way of a stretch that is only gathered ahead is no conflict before the scan gets there.
TEST_F(ResumableScanTest, R8AWriterAheadIsDecidedWhenTheScanComesThere) {
  LoadKeys(60, 5);
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put(KeyOf(30), "1"), "ok");
  Operation scan{.limit_bytes = 4 * kRecord};
  bool more = true;
  std::string all;
  while (all.size() < Expected(0, 26).size()) {
    Join(&all, t20.ScanBatch(&scan, &more));
    ASSERT_TRUE(t20.open()) << all;
  }
  EXPECT_LE(f_.dc->granted_bound(), KeyOf(30));
  EXPECT_EQ(t10.Commit(), "ok");
  Join(&all, Rest(t20, &scan));
  EXPECT_EQ(all, Expected(0, 30) + " " + KeyOf(30) + "=1 " + Expected(31, 60));

  TestTransaction t30 = f_.Begin(), t40 = f_.Begin();
  EXPECT_EQ(t30.Put(KeyOf(30), "2"), "ok");
  Operation again{.limit_bytes = 4 * kRecord};
  EXPECT_TRUE(Rest(t40, &again).ends_with("range-writer")) << "it comes there at last";
}

// If a reader stops early the DC has not read much more than was delivered. For a scan with a limit it reads no more
// than the scan needs.
TEST_F(ResumableScanTest, GrantedBytesAreBoundedByTakenBytes) {
  LoadKeys(600, 4);
  TestTransaction t = f_.Begin();
  Operation scan{.limit_bytes = 8 * kRecord};
  bool more = true;
  uint64_t given = 0;
  for (int batch = 0; batch < 30; ++batch) {
    t.ScanBatch(&scan, &more);
    given += 8 * kRecord;
    EXPECT_LE(f_.dc->granted_bytes(), 2 * given + 16 * kRecord);
    // The raised ranges are the gathered ones, a few more than was granted.
    EXPECT_LE(f_.RangeOf(KeyOf(std::min(599, batch * 16 + 40))).last_read().value, 0u + t.timestamp());
  }
  EXPECT_EQ(f_.RangeOf(KeyOf(599)).last_read(), Timestamp{}) << "far away and not raised";

  TestTransaction limited = f_.Begin();
  Operation some{.limit_records = 100, .limit_bytes = 8 * kRecord};
  const uint64_t before = f_.dc->granted_bytes();
  for (uint32_t left = 100; left > 0;) {
    some.limit_records = left;
    const std::string text = limited.ScanBatch(&some, &more);
    left -= static_cast<uint32_t>(std::count(text.begin(), text.end(), '='));
    ASSERT_TRUE(limited.open());
  }
  EXPECT_LE(f_.dc->granted_bytes() - before, 110 * kRecord);
  EXPECT_LT(f_.RangeOf(KeyOf(120)).last_read().value, limited.timestamp());
}

// Nothing is lost or delivered twice if a request is repeated, or the client continues elsewhere.
TEST_F(ResumableScanTest, ARequestThatIsRepeatedIsAnsweredAgain) {
  LoadKeys(100, 10);
  TestTransaction t = f_.Begin();
  Operation scan{.limit_bytes = 10 * kRecord};
  bool more = true;
  t.ScanBatch(&scan, &more);
  t.ScanBatch(&scan, &more);
  const std::string low(scan.low);
  const std::string once = t.ScanBatch(&scan, &more);
  Operation repeated = scan;
  repeated.low = low;
  // If a batch is asked for again, the scan that has answered it is dropped.
  for (int again = 0; again < 2 * static_cast<int>(ResumableScan::kMaxResumable); ++again) {
    repeated.low = low;
    EXPECT_EQ(t.ScanBatch(&repeated, &more), once);
    EXPECT_LE(f_.dc->open_scans(), 1u);
  }
  Operation elsewhere = scan;
  const std::string there = KeyOf(70);
  elsewhere.low = there;
  EXPECT_TRUE(t.ScanBatch(&elsewhere, &more).starts_with(KeyOf(70)));
  EXPECT_EQ(t.Commit(), "ok");
  EXPECT_EQ(f_.dc->open_scans(), 0u);
}

// The limits of resumable scans, and their end.
TEST_F(ResumableScanTest, ResumableScansAreFewAndEndWithTheirTransaction) {
  LoadKeys(200, 10);
  for (const bool commit : {true, false}) {
    TestTransaction t = f_.Begin();
    std::vector<std::string> lows;
    std::vector<Operation> scans;
    for (int i = 0; i < 10; ++i) lows.push_back(KeyOf(i));
    for (int i = 0; i < 10; ++i) {
      Operation scan{.low = lows[i], .limit_bytes = 10 * kRecord};
      bool more = true;
      std::string ignored = t.ScanBatch(&scan, &more);
      ignored = t.ScanBatch(&scan, &more);
      EXPECT_LE(f_.dc->open_scans(), ResumableScan::kMaxResumable);
    }
    EXPECT_EQ(f_.dc->open_scans(), ResumableScan::kMaxResumable);
    RecordManager::EndIdleStreams(t.transaction(), MonotonicTime::min());
    EXPECT_EQ(f_.dc->open_scans(), ResumableScan::kMaxResumable) << "used since then";
    RecordManager::EndIdleStreams(t.transaction(), MonotonicTime::max());
    EXPECT_EQ(f_.dc->open_scans(), 0u);
    EXPECT_EQ(f_.engine->scan_ahead.used(), 0u);
    Operation scan{.limit_bytes = 10 * kRecord};
    EXPECT_EQ(Rest(t, &scan), Expected(0, 200));
    EXPECT_EQ(f_.dc->open_scans(), 0u) << "complete";
    Operation open{.limit_bytes = 10 * kRecord};
    bool more = true;
    t.ScanBatch(&open, &more);
    t.ScanBatch(&open, &more);
    EXPECT_EQ(f_.dc->open_scans(), 1u);
    if (commit) {
      EXPECT_EQ(t.Commit(), "ok");
    } else {
      t.Abort();
    }
    EXPECT_EQ(f_.dc->open_scans(), 0u);
  }
}

// A scan beyond the streams that all scans together may have continues batch by batch. A permit that is released can
// be taken again.
TEST_F(ResumableScanTest, StreamsOfTheDcAreFewForAllTransactionsTogether) {
  LoadKeys(60, 10);
  constexpr size_t kStreams = 256;
  std::vector<std::unique_ptr<TestTransaction>> readers;
  std::deque<Operation> scans;
  bool more = true;
  while (f_.engine->scan_streams.used() < kStreams) {
    TestTransaction& t = *readers.emplace_back(f_.BeginPointer());
    for (size_t i = 0; i < ResumableScan::kMaxResumable; ++i) {
      Operation& scan = scans.emplace_back(Operation{.limit_bytes = 10 * kRecord});
      EXPECT_EQ(t.ScanBatch(&scan, &more), Expected(0, 10));
      EXPECT_EQ(t.ScanBatch(&scan, &more), Expected(10, 20));
    }
    ASSERT_EQ(f_.engine->scan_streams.used(), scans.size());
  }
  EXPECT_EQ(f_.dc->open_scans(), kStreams);
  TestTransaction late = f_.Begin();
  Operation scan{.limit_bytes = 10 * kRecord};
  EXPECT_EQ(late.ScanBatch(&scan, &more), Expected(0, 10));
  EXPECT_EQ(late.ScanBatch(&scan, &more), Expected(10, 20));
  EXPECT_EQ(late.ScanBatch(&scan, &more), Expected(20, 30));
  EXPECT_EQ(f_.dc->open_scans(), kStreams);
  EXPECT_EQ(f_.engine->scan_streams.used(), kStreams);
  EXPECT_EQ(Rest(*readers.front(), &scans.front()), Expected(20, 60));
  EXPECT_EQ(f_.engine->scan_streams.used(), kStreams - 1);
  EXPECT_EQ(late.ScanBatch(&scan, &more), Expected(30, 40));
  EXPECT_EQ(f_.engine->scan_streams.used(), kStreams);
  EXPECT_EQ(Rest(late, &scan), Expected(40, 60));
  readers.clear();
  EXPECT_EQ(f_.engine->scan_streams.used(), 0u);
  EXPECT_EQ(f_.dc->open_scans(), 0u);
}

// A DC that has no thread left for a stream is asked batch by batch.
TEST_F(ResumableScanTest, ADcThatOpensNoStreamIsAskedBatchByBatch) {
  LoadKeys(60, 10);
  f_.dc->set_refuses_scans(true);
  TestTransaction t = f_.Begin();
  Operation scan{.limit_bytes = 10 * kRecord};
  EXPECT_EQ(Rest(t, &scan), Expected(0, 60));
  EXPECT_EQ(f_.dc->scans_opened(), 0u);
  EXPECT_EQ(f_.engine->scan_streams.used(), 0u);
  EXPECT_EQ(t.Commit(), "ok");
}

// A single batch, or batches that end at a limit of records, are asked for in one message each.
TEST_F(ResumableScanTest, ShortScansOpenNothing) {
  LoadKeys(200, 200);
  TestTransaction t = f_.Begin();
  const uint64_t before = f_.dc->requests();
  Operation scan{.limit_records = 20};
  bool more = true;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(t.ScanBatch(&scan, &more), Expected(20 * i, 20 * i + 20));
  EXPECT_EQ(f_.dc->requests(), before + 5);
  EXPECT_EQ(f_.dc->scans_opened(), 0u);
}

// A scan for update posts its intent only where it has arrived.
TEST_F(ResumableScanTest, AScanForUpdateGathersNothingAhead) {
  LoadKeys(100, 5);
  TestTransaction t10 = f_.Begin();
  Operation scan{.limit_bytes = 5 * kRecord, .for_update = true};
  bool more = true;
  std::string all;
  for (int i = 0; i < 8; ++i) Join(&all, t10.ScanBatch(&scan, &more));
  EXPECT_EQ(all, Expected(0, 40));
  EXPECT_GE(f_.dc->scans_opened(), 1u);
  EXPECT_EQ(f_.RangeOf(KeyOf(50)).last_read(), Timestamp{});
  Join(&all, Rest(t10, &scan));
  EXPECT_EQ(all, Expected(0, 100));
}

// A snapshot raises nothing, but reads ahead nevertheless.
TEST_F(ResumableScanTest, Snapshots) {
  LoadKeys(100, 5);
  TestTransaction t = f_.BeginSnapshot();
  Operation scan{.direction = Direction::kDescending, .limit_bytes = 5 * kRecord};
  const std::string all = Rest(t, &scan);
  EXPECT_EQ(std::count(all.begin(), all.end(), '='), 100);
  EXPECT_EQ(f_.RangeOf(KeyOf(50)).last_read(), Timestamp{});
}

// R10: no batch of a scan shows own writes made after it was opened, whether their keys were gathered or not.
TEST_F(ResumableScanTest, OwnWritesBehindTheOpening) {
  LoadKeys(100, 10);
  TestTransaction t = f_.Begin();
  EXPECT_EQ(t.Put(KeyOf(55), "own"), "ok");
  Operation scan{.limit_bytes = 5 * kRecord};
  bool more = true;
  std::string all;
  for (int i = 0; more; ++i) {
    Join(&all, t.ScanBatch(&scan, &more));
    if (i < 40) {
      EXPECT_EQ(t.Put(KeyOf(i * 2), "later"), "ok");
      EXPECT_EQ(t.Remove(KeyOf(99 - i)), "ok");
    }
  }
  EXPECT_EQ(all, Expected(0, 55) + " " + KeyOf(55) + "=own " + Expected(56, 100));
}

}  // namespace
}  // namespace deut::tc

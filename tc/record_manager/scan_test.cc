// Scans while other things happen: updates that are applied and collected between the steps of a scan (rules S4, S5,
// S6), own writes in own scans (R10), scans of large write sets.
#include <string>

#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

class ScanTest : public ::testing::Test {
 protected:
  EngineFixture f_;
};

// A committed update is only in the TC when the scan begins, and is at the DC and collected before the scan is done.
// At every step, both ways, for an update, an insert and a delete.
TEST_F(ScanTest, AppliedAndCollectedBetweenTwoSteps) {
  for (const char* point_name :
       {"scan.before_raise", "scan.raised", "scan.looked", "scan.before_dc", "scan.after_dc"}) {
    for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
      SCOPED_TRACE(::testing::Message() << point_name << static_cast<int>(direction));
      EngineFixture g;
      g.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}});
      TestTransaction t10 = g.Begin();
      EXPECT_EQ(t10.Put("b", "1"), "ok");
      EXPECT_EQ(t10.Put("bb", "1"), "ok");
      EXPECT_EQ(t10.Remove("c"), "ok");
      EXPECT_EQ(t10.Commit(), "ok");
      TestTransaction t20 = g.Begin();
      AtPoint point(point_name, [&] {
        EXPECT_EQ(g.dc->Pump(), 1u);
        g.Collect();
        EXPECT_EQ(g.records->entries(), 0u);
      });
      const std::string scan = t20.Scan("", "", direction);
      EXPECT_TRUE(point.reached());
      EXPECT_EQ(scan, direction == Direction::kAscending ? "a=0 b=1 bb=1" : "bb=1 b=1 a=0");
      EXPECT_EQ(t20.Commit(), "ok");
    }
  }
}

// Late insert, update, delete (paper 4.3): a later transaction commits all three in the middle of a slow scan of an
// earlier one. The DC does not get them (S1), and the scan skips the TC's versions.
TEST_F(ScanTest, LateChangesDuringASlowScan) {
  for (const char* point_name :
       {"scan.before_raise", "scan.raised", "scan.looked", "scan.before_dc", "scan.after_dc"}) {
    SCOPED_TRACE(point_name);
    EngineFixture g;
    g.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}});
    TestTransaction t10 = g.Begin();
    AtPoint point(point_name, [&] {
      TestTransaction t20 = g.Begin();
      EXPECT_EQ(t20.Put("a", "2"), "ok");
      EXPECT_EQ(t20.Insert("bb", "2"), "ok");
      EXPECT_EQ(t20.Remove("c"), "ok");
      EXPECT_EQ(t20.Commit(), "ok");
      EXPECT_EQ(g.dc->Pump(), 0u);
      g.Collect();
    });
    EXPECT_EQ(t10.Scan(), "a=0 b=0 c=0");
    EXPECT_TRUE(point.reached());
    EXPECT_EQ(t10.Commit(), "ok");
    EXPECT_EQ(g.Contents(), "a=2 b=0 bb=2");
    g.PumpAndCollect();
    EXPECT_EQ(g.Contents(), "a=2 b=0 bb=2");
    EXPECT_EQ(g.records->entries(), 0u);
  }
}

// A long scan in batches, with everything changing between the batches. An earlier transaction commits nothing new
// (it would be a phantom), later ones do, and the batches show one state.
TEST_F(ScanTest, BatchesAreOneState) {
  std::vector<std::pair<std::string, std::string>> load;
  std::string expected;
  for (int i = 10; i < 30; ++i) {
    load.push_back({std::to_string(i), "0"});
    expected += (i == 10 ? "" : " ") + std::to_string(i) + "=0";
  }
  f_.Load(load);
  f_.SetRanges({"15", "22"});
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  Operation scan{.limit_records = 3};
  std::string all;
  int round = 0;
  for (bool more = true; more; ++round) {
    const std::string text = t20.ScanBatch(&scan, &more);
    all += (all.empty() || text.empty() ? "" : " ") + text;
    TestTransaction later = f_.Begin();
    EXPECT_EQ(later.Put(std::to_string(10 + round), "later"), "ok");
    EXPECT_EQ(later.Insert(std::to_string(29 - round) + "x", "later"), "ok");
    EXPECT_EQ(later.Remove(std::to_string(28 - round)), "ok");
    EXPECT_EQ(later.Commit(), "ok");
    f_.PumpAndCollect();
  }
  EXPECT_EQ(all, expected);
  EXPECT_EQ(t10.Put("29y", "1"), "range-read-later");
}

// S4: keys of the TC beyond the bound that the DC's batch covers wait for the batch that covers them.
TEST_F(ScanTest, KeysAreEmittedUpToTheCoveredBound) {
  f_.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}, {"d", "0"}});
  TestTransaction t10 = f_.Begin();
  for (const char* key : {"aa", "cc", "dd"}) EXPECT_EQ(t10.Put(key, "1"), "ok");
  EXPECT_EQ(t10.Remove("c"), "ok");
  EXPECT_EQ(t10.Commit(), "ok");
  TestTransaction t20 = f_.Begin();
  f_.dc->set_scan_records(1);
  EXPECT_EQ(t20.Scan(), "a=0 aa=1 b=0 cc=1 d=0 dd=1");
  EXPECT_EQ(t20.Scan("", "", Direction::kDescending), "dd=1 d=0 cc=1 b=0 aa=1 a=0");
}

// S8: a key that was tried often enough for the keys to be sorted hides none behind it from a scan that wants few.
TEST_F(ScanTest, AKeyThatIsTriedAgainHidesNoneBehindIt) {
  f_.Load({{"b", "0"}});
  TestTransaction t10 = f_.Begin();
  for (int i = 0; i < 63; ++i) EXPECT_EQ(t10.Insert("b", "1"), "ALREADY_EXISTS");
  EXPECT_EQ(t10.Put("c", "1"), "ok");
  Operation scan{.low = "a", .limit_records = 2};
  bool more = false;
  EXPECT_EQ(t10.ScanBatch(&scan, &more), "b=0 c=1");
  EXPECT_EQ(t10.Commit(), "ok");
  TestTransaction t20 = f_.Begin();
  scan = {.low = "a", .limit_records = 2};
  EXPECT_EQ(t20.ScanBatch(&scan, &more), "b=0 c=1");
}

// S5: of the two sides' versions the larger wins, whichever side has it.
TEST_F(ScanTest, TheLargerVersionWins) {
  f_.Load({{"a", "0"}, {"b", "0"}});
  TestTransaction t10 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  EXPECT_EQ(t10.Remove("b"), "ok");
  EXPECT_EQ(t10.Commit(), "ok");
  TestTransaction t20 = f_.Begin();
  EXPECT_EQ(t20.Scan(), "a=1");
  EXPECT_EQ(t20.Put("a", "2"), "ok");
  EXPECT_EQ(t20.Scan(), "a=2");
  EXPECT_EQ(t20.Put("a", "3"), "ok");
  EXPECT_EQ(t20.Scan(), "a=3");
}

// S6: a version that the DC has not applied is kept, however long that takes.
TEST_F(ScanTest, UnappliedVersionsAreKept) {
  TestTransaction t10 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  EXPECT_EQ(t10.Commit(), "ok");
  f_.Collect();
  f_.Collect();
  EXPECT_EQ(f_.Begin().Get("a"), "1");
  EXPECT_EQ(f_.Contents(), "a=1");
  f_.Collect();
  EXPECT_EQ(f_.collector->uncollected(), 1u);
}

// S6, in order: older versions of a key leave first, regardless of the versions above.
TEST_F(ScanTest, ChainsAreCutFromTheirEnd) {
  f_.Load({{"k", "0"}});
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("k", "1"), "ok");
  EXPECT_EQ(t10.Put("k", "2"), "ok");
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(t20.Put("k", "3"), "ok");
  EXPECT_EQ(t20.Commit(), "ok");
  TestTransaction t30 = f_.Begin(), t40 = f_.Begin();
  EXPECT_EQ(t40.Put("k", "4"), "ok");
  EXPECT_EQ(f_.dc->Pump(1), 1u);
  f_.Collect();
  EXPECT_EQ(t30.Get("k"), "3");
  EXPECT_EQ(t30.Scan(), "k=3");
  EXPECT_EQ(f_.dc->Pump(1), 1u);
  f_.Collect();
  EXPECT_EQ(t30.Get("k"), "3");
  EXPECT_EQ(t30.Scan(), "k=3");
  t40.Abort();
  f_.Collect();
  EXPECT_EQ(t30.Get("k"), "3");
  EXPECT_EQ(t30.Commit(), "ok");
  f_.Collect();
  EXPECT_EQ(f_.records->entries(), 0u);
  EXPECT_EQ(f_.RangeOf("k").posting_count(), 0u);
  EXPECT_EQ(f_.collector->uncollected(), 0u);
  EXPECT_EQ(f_.engine->counters.pinned_bytes.load(), 0u);
}

// The order in which the collector learns of commits and of applied positions. t20 is with the collector. t10, with
// an earlier version of the same key, arrives when the collector has just taken its arrivals; then both are applied.
// t10 must not come after t20 was collected.
TEST_F(ScanTest, AnEarlierCommitNeverArrivesAfterALaterOneWasCollected) {
  std::unique_ptr<TestTransaction> t10 = f_.BeginPointer(), t20 = f_.BeginPointer();
  Event taken, applied;
  std::atomic<bool> armed{false}, caught{false};
  EXPECT_EQ(t10->Put("k", "1"), "ok");
  const auto outer = [&](std::string_view name) {
    if (name == "commit.committed" && !armed.exchange(true)) {
      EXPECT_EQ(t20->Put("k", "2"), "ok");
      EXPECT_EQ(t20->Commit(), "ok");
      f_.collector->RunBetweenRounds([](Collector::Access&) {});
      caught.store(true);
      taken.Wait(RealRuntime(), EngineFixture::Soon());
    } else if (name == "collector.taken" && caught.load() && !taken.IsSet()) {
      taken.Signal(RealRuntime());
      applied.Wait(RealRuntime(), EngineFixture::Soon());
    }
  };
  testing::SetPointHandler(outer);
  EXPECT_EQ(t10->Commit(), "ok");
  EXPECT_TRUE(taken.IsSet());
  EXPECT_EQ(f_.dc->Pump(), 2u);
  applied.Signal(RealRuntime());
  f_.Collect();
  f_.Collect();
  testing::SetPointHandler(nullptr);
  EXPECT_EQ(f_.collector->uncollected(), 0u);
  EXPECT_EQ(f_.records->entries(), 0u);
  EXPECT_EQ(f_.Contents(), "k=2");
}

// R10.
TEST_F(ScanTest, AScanDoesNotSeeOwnWritesMadeSinceItWasOpened) {
  f_.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}, {"d", "0"}});
  TestTransaction t = f_.Begin();
  EXPECT_EQ(t.Put("b", "before"), "ok");
  Operation scan{.limit_records = 1};
  bool more = false;
  EXPECT_EQ(t.ScanBatch(&scan, &more), "a=0");
  EXPECT_EQ(t.Put("b", "since"), "ok");
  EXPECT_EQ(t.Put("bb", "since"), "ok");
  EXPECT_EQ(t.Remove("c"), "ok");
  EXPECT_EQ(t.ScanBatch(&scan, &more), "b=before");
  EXPECT_EQ(t.ScanBatch(&scan, &more), "c=0");
  EXPECT_EQ(t.ScanBatch(&scan, &more), "d=0");
  // A new scan sees all of it.
  EXPECT_EQ(t.Scan(), "a=0 b=since bb=since d=0");
  EXPECT_EQ(t.Commit(), "ok");
  f_.PumpAndCollect();
  EXPECT_EQ(f_.Contents(), "a=0 b=since bb=since d=0");
  EXPECT_EQ(f_.records->entries(), 0u);
}

// There are more gathered keys than one stretch keeps.
TEST_F(ScanTest, LargeWriteSets) {
  constexpr int kKeys = 9000;
  const auto key_of = [](int i) { return std::to_string(100000 + i); };
  TestTransaction t10 = f_.Begin();
  for (int i = kKeys - 1; i >= 0; --i) ASSERT_EQ(t10.Put(key_of(i), "v"), "ok");
  ASSERT_EQ(t10.Commit(), "ok");
  for (const bool applied : {false, true}) {
    if (applied) f_.PumpAndCollect();
    for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
      TestTransaction t = f_.Begin();
      Operation scan{.direction = direction, .limit_records = 700};
      std::string all, expected;
      for (bool more = true; more;) all += (all.empty() ? "" : " ") + t.ScanBatch(&scan, &more);
      for (int i = 0; i < kKeys; ++i) {
        expected += (i == 0 ? "" : " ") + key_of(direction == Direction::kAscending ? i : kKeys - 1 - i) + "=v";
      }
      EXPECT_TRUE(all == expected) << all.size() << " bytes, not " << expected.size();
    }
  }
  EXPECT_EQ(f_.records->entries(), 0u);
  EXPECT_EQ(f_.RangeOf("1").posting_count(), 0u);
}

// A scan with a limit looks at the keys that it returns, not at all that are only in the TC, and keeps few keys.
TEST_F(ScanTest, AShortScanOfALargeBacklogGathersLittle) {
  constexpr int kTransactions = 40, kKeys = 200;
  const auto key_of = [](int i) { return std::to_string(100000 + i); };
  std::string expected, backwards;
  for (int t = 0; t < kTransactions; ++t) {
    TestTransaction txn = f_.Begin();
    for (int i = 0; i < kKeys; ++i) {
      // Every key of 4,000 is written twice; the second time some are removed.
      const int number = (t * kKeys + i) * 7 % (kTransactions * kKeys / 2);
      const bool removed = t >= kTransactions / 2 && number % 3 == 0;
      ASSERT_EQ(removed ? txn.Remove(key_of(number)) : txn.Put(key_of(number), "v"), "ok");
    }
    ASSERT_EQ(txn.Commit(), "ok");
  }
  for (int i = 1000, n = 0; n < 10; ++i) {
    if (i % 3 != 0) expected += (n++ == 0 ? "" : " ") + key_of(i) + "=v";
  }
  for (int i = 999, n = 0; n < 10; --i) {
    if (i % 3 != 0) backwards += (n++ == 0 ? "" : " ") + key_of(i) + "=v";
  }
  constexpr int kScans = 20;
  for (int n = 0; n < kScans; ++n) {
    TestTransaction txn = f_.Begin();
    bool more = false;
    Operation scan{.low = "101000", .limit_records = 10};
    EXPECT_EQ(txn.ScanBatch(&scan, &more), expected);
    EXPECT_TRUE(more);
    Operation back{.high = "101000", .direction = Direction::kDescending, .limit_records = 10};
    EXPECT_EQ(txn.ScanBatch(&back, &more), backwards);
    EXPECT_TRUE(more);
  }
  EXPECT_LE(f_.engine->counters.gathered_keys.value(), 2u * kScans * 70);
}

// S1: a record of the DC that is younger than its reader is reported, wherever it is in the answer to a short scan, a
// stream or a point read.
TEST_F(ScanTest, ARecordYoungerThanItsReaderIsABrokenInvariant) {
  std::vector<std::pair<std::string, std::string>> load;
  for (int i = 100; i < 200; ++i) load.emplace_back(std::to_string(i), std::string(50, 'v'));
  f_.Load(load);
  for (const char* key : {"100", "150", "199"}) {
    f_.dc->SetTimestamp(EngineFixture::kTable, key, Timestamp{uint64_t{1} << 50});
    EXPECT_EQ(f_.Begin().Get(key), "INTERNAL");
    for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
      EXPECT_EQ(f_.Begin().Scan({}, {}, direction), "INTERNAL") << key;
      TestTransaction txn = f_.Begin();
      Operation scan{.direction = direction, .limit_bytes = 500};
      std::string got;
      for (bool more = true; more && got != "INTERNAL";) got = txn.ScanBatch(&scan, &more);
      EXPECT_EQ(got, "INTERNAL") << key;
    }
    f_.dc->SetTimestamp(EngineFixture::kTable, key, Timestamp{1});
  }
  EXPECT_GT(f_.engine->counters.bulk_scans.load(), 0u);
}

// R5: the entry of a key remembers its last read while an earlier writer may come.
TEST_F(ScanTest, AnEntryIsKeptWhileItsReadsMatter) {
  TestTransaction t5 = f_.Begin(), t6 = f_.Begin();
  EXPECT_EQ(t5.Put("k", "5"), "ok");
  EXPECT_EQ(t5.Commit(), "ok");
  std::unique_ptr<TestTransaction> t30 = f_.BeginPointer();
  EXPECT_EQ(t30->Get("k"), "5");
  EXPECT_EQ(t30->Commit(), "ok");
  f_.PumpAndCollect();
  f_.Collect();
  EXPECT_EQ(f_.records->entries(), 1u);
  EXPECT_EQ(f_.collector->deferred_entries(), 1u);
  EXPECT_EQ(t6.Put("k", "6"), "record-read-later");
  f_.PumpAndCollect();
  EXPECT_EQ(f_.records->entries(), 0u);
}

// R6: entries that only remember reads stay within their budget under one long transaction. The bucket remembers for
// those that go.
TEST(DeferredEntriesTest, StayWithinTheirBudget) {
  EngineFixture f({.max_deferred_entries = 8});
  TestTransaction old = f.Begin();
  for (int i = 0; i < 100; ++i) {
    // A later transaction reads a key that has an entry, while another keeps low-water down.
    const std::string key = "k" + std::to_string(i);
    TestTransaction writer = f.Begin();
    EXPECT_EQ(writer.Put(key, "1"), "ok");
    TestTransaction reader = f.Begin();
    EXPECT_EQ(reader.Get(key), "read-uncommitted");
    writer.Abort();
    f.Collect();
  }
  EXPECT_LE(f.records->entries(), 10u);
  EXPECT_LE(f.collector->deferred_entries(), 10u);
  EXPECT_EQ(old.Put("k7", "1"), "bucket-floor");
  f.Collect();
  EXPECT_EQ(f.records->entries(), 0u);
}

}  // namespace
}  // namespace deut::tc

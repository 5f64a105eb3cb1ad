// Every pair of conflicting operations, in both orders of arrival. In each test tNN has timestamp order (t10 < t20),
// and the transaction that comes too late aborts. Also the races between the steps (the counter-examples of rules R1
// - R3, R6, R11), played at test points.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tc/mvcc/record_table.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

// The key "a" exists at the DC, and "dc" beside it.
class ConflictTest : public ::testing::Test {
 protected:
  explicit ConflictTest(EngineFixtureOptions options = {}) : f_(options) { f_.Load({{"a", "0"}, {"dc", "0"}}); }
  EngineFixture f_;
};

// --- Record read against record write.

TEST_F(ConflictTest, ReadMeetsAnEarlierUncommittedWrite) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  EXPECT_EQ(t20.Get("a"), "read-uncommitted");
  EXPECT_EQ(t10.Commit(), "ok");
}

TEST_F(ConflictTest, ReadPassesOverALaterUncommittedOrCommittedWrite) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t20.Put("a", "2"), "ok");
  EXPECT_EQ(t10.Get("a"), "0");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t10.Get("a"), "0");
  EXPECT_EQ(t10.Commit(), "ok");
}

TEST_F(ConflictTest, ReadSeesAnEarlierCommittedWriteAndNoAbortedOne) {
  TestTransaction t10 = f_.Begin(), t15 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(t15.Put("a", "2"), "ok");
  t15.Abort();
  EXPECT_EQ(t20.Get("a"), "1");
}

// R7: an aborted version is in no transaction's way, before and after it is unlinked.
TEST_F(ConflictTest, AnAbortedVersionIsInNobodysWay) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin(), t30 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  EXPECT_EQ(t10.Put("n", "1"), "ok");
  t10.Abort();
  EXPECT_EQ(t20.Put("a", "2"), "ok");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t30.Get("a"), "2");
  EXPECT_EQ(t30.Get("n"), "-");
  EXPECT_EQ(t30.Scan(), "a=2 dc=0");
}

TEST_F(ConflictTest, WriteAfterALaterRead) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  // There is no entry, so the read raised the bucket's floor (R6).
  EXPECT_EQ(t20.Get("a"), "0");
  EXPECT_EQ(t10.Put("a", "1"), "bucket-floor");
}

TEST_F(ConflictTest, WriteAfterALaterReadOfAnEntry) {
  TestTransaction t5 = f_.Begin(), t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t5.Put("a", "5"), "ok");
  EXPECT_EQ(t5.Commit(), "ok");
  EXPECT_EQ(t20.Get("a"), "5");
  EXPECT_EQ(t10.Put("a", "1"), "record-read-later");
}

TEST_F(ConflictTest, WriteAfterAnEarlierRead) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Get("a"), "0");
  EXPECT_EQ(t20.Put("a", "2"), "ok");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t10.Get("a"), "0");
}

// The read of an absent key is protected like that of a record.
TEST_F(ConflictTest, InsertAfterALaterReadOfTheAbsentKey) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t20.Get("new"), "-");
  EXPECT_EQ(t10.Insert("new", "1"), "bucket-floor");
}

// S10, R11: a precondition is a read, even if it failed.
TEST_F(ConflictTest, APreconditionIsARead) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin(), t30 = f_.Begin();
  EXPECT_EQ(t30.Insert("a", "3"), "ALREADY_EXISTS");
  EXPECT_EQ(t10.Remove("a"), "record-read-later");
  EXPECT_EQ(t30.Update("new", "3"), "NOT_FOUND");
  EXPECT_EQ(t20.Put("new", "2"), "record-read-later");
  EXPECT_EQ(t30.Commit(), "ok");
}

// --- Write against write.

TEST_F(ConflictTest, WriteMeetsAnUncommittedWrite) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  EXPECT_EQ(t20.Put("a", "2"), "write-uncommitted");
  TestTransaction t30 = f_.Begin(), t40 = f_.Begin();
  EXPECT_EQ(t40.Put("b", "4"), "ok");
  EXPECT_EQ(t30.Put("b", "3"), "write-uncommitted");
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(t40.Commit(), "ok");
}

TEST_F(ConflictTest, WriteMeetsALaterCommittedWrite) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t20.Put("a", "2"), "ok");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t10.Put("a", "1"), "write-later");
  EXPECT_EQ(f_.Contents(), "a=2 dc=0");
}

TEST_F(ConflictTest, WriteAfterAnEarlierCommittedWrite) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(t20.Put("a", "2"), "ok");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(f_.Contents(), "a=2 dc=0");
  f_.PumpAndCollect();
  EXPECT_EQ(f_.Contents(), "a=2 dc=0");
}

TEST_F(ConflictTest, RemoveAndInsertAreWrites) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin(), t30 = f_.Begin();
  EXPECT_EQ(t10.Remove("a"), "ok");
  EXPECT_EQ(t20.Insert("a", "2"), "write-uncommitted");
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(t30.Insert("a", "3"), "ok");
  EXPECT_EQ(t30.Commit(), "ok");
  EXPECT_EQ(f_.Contents(), "a=3 dc=0");
}

// --- Range read against intent.

// A way to change the range. An earlier scan of the range must not see it.
struct Change {
  const char* name;
  std::string (*run)(TestTransaction&);
};
std::string InsertNew(TestTransaction& t) { return t.Insert("b", "1"); }
std::string PutNew(TestTransaction& t) { return t.Put("b", "1"); }
std::string UpdateOld(TestTransaction& t) { return t.Update("a", "1"); }
std::string RemoveOld(TestTransaction& t) { return t.Remove("a"); }

// With both settings of R8: here every change is within the scan's bounds.
class PhantomTest : public ConflictTest, public ::testing::WithParamInterface<std::tuple<Change, RangePrecision>> {
 protected:
  PhantomTest() : ConflictTest(Options()) {}
  static EngineFixtureOptions Options() { return {.range_precision = std::get<1>(GetParam())}; }
  static std::string Run(TestTransaction& txn) { return std::get<0>(GetParam()).run(txn); }
};

TEST_P(PhantomTest, ScanMeetsAnEarlierUncommittedWriter) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(Run(t10), "ok");
  EXPECT_EQ(t20.Scan(), "range-writer");
  EXPECT_EQ(t10.Commit(), "ok");
}

TEST_P(PhantomTest, ScanPassesOverALaterWriter) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(Run(t20), "ok");
  EXPECT_EQ(t10.Scan(), "a=0 dc=0");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t10.Scan(), "a=0 dc=0");
  EXPECT_EQ(t10.Scan("", "", Direction::kDescending), "dc=0 a=0");
}

TEST_P(PhantomTest, WriterAfterALaterScan) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t20.Scan(), "a=0 dc=0");
  EXPECT_EQ(Run(t10), "range-read-later");
}

TEST_P(PhantomTest, WriterAfterAnEarlierScan) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Scan(), "a=0 dc=0");
  EXPECT_EQ(Run(t20), "ok");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t10.Scan(), "a=0 dc=0");
  EXPECT_EQ(t10.Commit(), "ok");
}

// R1 against R2: at whatever step of the scan the writer runs, the writer or the scan loses, or the scan sees the
// write.
TEST_P(PhantomTest, WholeWriterBetweenTwoStepsOfAScan) {
  for (const char* point_name :
       {"scan.before_raise", "scan.raised", "scan.looked", "scan.before_dc", "scan.after_dc"}) {
    SCOPED_TRACE(point_name);
    EngineFixture g(Options());
    g.Load({{"a", "0"}, {"dc", "0"}});
    TestTransaction t10 = g.Begin(), t20 = g.Begin();
    bool wrote = false;
    AtPoint point(point_name, [&] { wrote = Run(t10) == "ok" && t10.Commit() == "ok"; });
    const std::string scan = t20.Scan();
    EXPECT_TRUE(point.reached());
    ASSERT_EQ(t20.Commit(), "ok");
    if (wrote) {
      EXPECT_EQ(scan, g.Contents());
      EXPECT_NE(scan, "a=0 dc=0");
    } else {
      EXPECT_EQ(scan, "a=0 dc=0");
    }
  }
}

TEST_P(PhantomTest, WholeScanBetweenTwoStepsOfAWriter) {
  for (const char* point_name : {"write.table_found", "write.posted", "write.published", "chain.install.before_cas",
                                 "write.installed", "write.checked"}) {
    SCOPED_TRACE(point_name);
    EngineFixture g(Options());
    g.Load({{"a", "0"}, {"dc", "0"}});
    TestTransaction t10 = g.Begin(), t20 = g.Begin();
    std::string scan;
    bool scanned = false;
    AtPoint point(point_name, [&] {
      scan = t20.Scan();
      scanned = t20.open() && t20.Commit() == "ok";
    });
    const bool wrote = Run(t10) == "ok" && t10.Commit() == "ok";
    EXPECT_TRUE(point.reached());
    EXPECT_FALSE(wrote && scanned) << "a phantom: the scan answered " << scan;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PhantomTest,
                         ::testing::Combine(::testing::Values(Change{"insert", InsertNew}, Change{"put", PutNew},
                                                              Change{"update", UpdateOld}, Change{"remove", RemoveOld}),
                                            ::testing::Values(RangePrecision::kKeys, RangePrecision::kRanges)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param).name) +
                                  (std::get<1>(param.param) == RangePrecision::kKeys ? "_by_keys" : "_by_ranges");
                         });

// The same races exist at the level of records.
TEST_F(ConflictTest, WholeReadBetweenTwoStepsOfAWriter) {
  for (const bool entry : {false, true}) {
    for (const char* point_name :
         {"write.posted", "write.published", "chain.install.before_cas", "write.installed", "write.checked"}) {
      SCOPED_TRACE(point_name);
      EngineFixture g;
      TestTransaction t5 = g.Begin(), t10 = g.Begin(), t20 = g.Begin();
      if (entry) EXPECT_EQ(t5.Put("k", "5"), "ok");
      EXPECT_EQ(t5.Commit(), "ok");
      std::string read;
      AtPoint point(point_name, [&] { read = t20.Get("k"); });
      const bool wrote = t10.Put("k", "1") == "ok" && t10.Commit() == "ok";
      EXPECT_TRUE(point.reached());
      EXPECT_FALSE(wrote && t20.open()) << "the reader answered " << read;
    }
  }
}

TEST_F(ConflictTest, WholeWriterBetweenTwoStepsOfARead) {
  TestTransaction t5 = f_.Begin(), t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t5.Put("k", "5"), "ok");
  EXPECT_EQ(t5.Commit(), "ok");
  bool wrote = false;
  AtPoint point("record_table.raise.before_cas", [&] { wrote = t10.Put("k", "1") == "ok" && t10.Commit() == "ok"; });
  EXPECT_EQ(t20.Get("k"), "1");
  EXPECT_TRUE(point.reached());
  EXPECT_TRUE(wrote);
}

// A writer's own second version does not check last_read. A reader between the two must not take the first for the
// last.
TEST_F(ConflictTest, WriterReplacesItsVersionAndCommitsBetweenTwoStepsOfARead) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("a", "1"), "ok");
  bool wrote = false;
  AtPoint point("read.head_loaded", [&] { wrote = t10.Put("a", "2") == "ok" && t10.Commit() == "ok"; });
  EXPECT_EQ(t20.Get("a"), "2");
  EXPECT_TRUE(point.reached());
  EXPECT_TRUE(wrote);
}

TEST_F(ConflictTest, RangesSeparate) {
  f_.SetRanges({"m"});
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("z", "1"), "ok");
  EXPECT_EQ(t20.Scan("", "m"), "a=0 dc=0");
  EXPECT_EQ(t10.Put("x", "1"), "ok");
  EXPECT_EQ(t10.Put("b", "1"), "range-read-later");
}

// --- SIX: a scan with intent to update, against other scans, by range. For scans by keys see range_precision_test.

class SixTest : public ConflictTest {
 protected:
  SixTest() : ConflictTest({.range_precision = RangePrecision::kRanges}) {}
};

TEST_F(SixTest, SixThenLaterScanThenCommit) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.ScanForUpdate(), "a=0 dc=0");
  EXPECT_EQ(t20.Scan(), "range-writer");
  EXPECT_EQ(t10.Put("a", "1"), "range-read-later") << "the later scan lost, but it had raised last_read";
}

TEST_F(ConflictTest, LaterScanThenSix) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t20.Scan(), "a=0 dc=0");
  EXPECT_EQ(t10.ScanForUpdate(), "range-read-later");
}

TEST_F(ConflictTest, EarlierScanAndSix) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin(), t30 = f_.Begin();
  EXPECT_EQ(t10.Scan(), "a=0 dc=0");
  EXPECT_EQ(t20.ScanForUpdate(), "a=0 dc=0");
  EXPECT_EQ(t10.Scan(), "a=0 dc=0");
  EXPECT_EQ(t20.Put("a", "2"), "ok");
  EXPECT_EQ(t20.Insert("b", "2"), "ok");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t10.Scan(), "a=0 dc=0");
  EXPECT_EQ(t30.Scan(), "a=2 b=2 dc=0");
}

TEST_F(ConflictTest, SixAgainstIntents) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin(), t30 = f_.Begin();
  EXPECT_EQ(t30.Put("c", "3"), "ok");  // a later intent is no conflict
  EXPECT_EQ(t20.ScanForUpdate(), "a=0 dc=0");
  EXPECT_EQ(t10.Put("a", "1"), "range-read-later");
  TestTransaction t40 = f_.Begin();
  EXPECT_EQ(t40.ScanForUpdate(), "range-writer");  // an earlier intent is one
  EXPECT_EQ(t20.Commit(), "ok");
}

TEST_F(SixTest, SixAgainstSix) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.ScanForUpdate(), "a=0 dc=0");
  EXPECT_EQ(t20.ScanForUpdate(), "range-writer");
  TestTransaction t30 = f_.Begin(), t40 = f_.Begin();
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(t40.ScanForUpdate(), "a=0 dc=0");
  EXPECT_EQ(t30.ScanForUpdate(), "range-read-later");
}

// R3, the races: a whole scan between two steps of the SIX, and a whole SIX writer between two steps of a scan.
TEST_F(ConflictTest, ScanAndSixRace) {
  for (const char* point_name : {"scan.before_raise", "scan.raised", "scan.looked", "scan.before_dc"}) {
    for (const bool six_first : {false, true}) {
      SCOPED_TRACE(::testing::Message() << point_name << six_first);
      EngineFixture g;
      g.Load({{"a", "0"}});
      TestTransaction t10 = g.Begin(), t20 = g.Begin();
      bool six = false, scanned = false;
      const auto run_six = [&] {
        t10.ScanForUpdate();
        six = t10.open() && t10.Put("a", "1") == "ok" && t10.Put("b", "1") == "ok" && t10.Commit() == "ok";
      };
      std::string scan;
      const auto run_scan = [&] {
        scan = t20.Scan();
        scanned = t20.open() && t20.Commit() == "ok";
      };
      if (six_first) {
        AtPoint point(point_name, run_scan);
        run_six();
        EXPECT_TRUE(point.reached());
      } else {
        AtPoint point(point_name, run_six);
        run_scan();
        EXPECT_TRUE(point.reached());
      }
      if (six && scanned) EXPECT_EQ(scan, "a=1 b=1");
    }
  }
}

// --- Write skew.

TEST_F(ConflictTest, WriteSkewOverRecords) {
  f_.Load({{"x", "0"}, {"y", "0"}});
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Get("x"), "0");
  EXPECT_EQ(t10.Get("y"), "0");
  EXPECT_EQ(t20.Get("x"), "0");
  EXPECT_EQ(t20.Get("y"), "0");
  EXPECT_EQ(t20.Put("y", "2"), "ok");
  EXPECT_EQ(t10.Put("x", "1"), "bucket-floor");
  EXPECT_EQ(t20.Commit(), "ok");
}

TEST_F(ConflictTest, WriteSkewOverAPredicate) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Scan(), "a=0 dc=0");
  EXPECT_EQ(t20.Scan(), "a=0 dc=0");
  EXPECT_EQ(t10.Insert("b", "1"), "range-read-later");
  EXPECT_EQ(t20.Insert("c", "2"), "ok");
  EXPECT_EQ(t20.Commit(), "ok");
}

// --- R11: declared keys.

TEST_F(ConflictTest, ADeclaredKeyKeepsLaterScansOut) {
  TestTransaction t10 = f_.Begin(EngineFixture::Declaring({"b"})), t20 = f_.Begin(), t30 = f_.Begin();
  EXPECT_EQ(t20.Scan(), "range-writer");
  // The scan's attempt has raised last_read. The declared write goes through nevertheless; other writes do not.
  EXPECT_EQ(t10.Insert("b", "1"), "ok");
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(t30.Scan(), "a=0 b=1 dc=0");
  TestTransaction t40 = f_.Begin(EngineFixture::Declaring({"c", "c"})), t50 = f_.Begin();
  EXPECT_EQ(t50.Scan(), "range-writer");
  EXPECT_EQ(t40.Put("d", "4"), "range-read-later");
}

TEST_F(ConflictTest, DeclaringAfterALaterScan) {
  // The timestamp is drawn at the begin, so a later scan must come between the draw and the declaration.
  TestTransaction t20 = f_.Begin();
  std::string scan;
  AtPoint point("range.post.before_cas", [&] { scan = f_.Begin().Scan(); });
  Result<std::unique_ptr<Transaction>> t30 = f_.manager->Begin(EngineFixture::Declaring({"b"}), EngineFixture::Soon());
  EXPECT_TRUE(point.reached());
  EXPECT_EQ(scan, "a=0 dc=0");
  EXPECT_EQ(StatusText(t30.status()), "range-read-later");
  EXPECT_EQ(f_.active->open_transactions(), 1u);
}

TEST_F(ConflictTest, ADeclaredKeyThatIsNotWrittenLeavesNothing) {
  {
    TestTransaction t = f_.Begin(EngineFixture::Declaring({"b"}));
    EXPECT_EQ(t.Scan(), "a=0 dc=0");
    EXPECT_EQ(t.Commit(), "ok");
  }
  EXPECT_EQ(f_.Contents(), "a=0 dc=0");
  f_.Collect();
  EXPECT_EQ(f_.RangeOf("b").posting_count(), 0u);
  TransactionOptions snapshot = EngineFixture::Declaring({"b"});
  snapshot.isolation = Isolation::kSnapshot;
  EXPECT_EQ(StatusText(f_.manager->Begin(snapshot, EngineFixture::Soon()).status()), "INVALID_ARGUMENT");
}

}  // namespace
}  // namespace deut::tc

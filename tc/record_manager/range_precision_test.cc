// R8: an earlier uncommitted writer of a range is in a scan's way only with its keys within the scan's bounds, and
// only when the scan reaches them. In each test tNN has timestamp order. Every test has one logical range, so by
// range (the other setting) each of these scans would lose at once.
#include <string>

#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"

namespace deut::tc {
namespace {

class RangePrecisionTest : public ::testing::Test {
 protected:
  RangePrecisionTest() { Load(f_); }
  static void Load(EngineFixture& g) { g.Load({{"a", "0"}, {"b", "0"}, {"c", "0"}, {"d", "0"}, {"e", "0"}}); }

  EngineFixture f_;
};

constexpr Direction kBoth[] = {Direction::kAscending, Direction::kDescending};

TEST_F(RangePrecisionTest, AWriterOutsideTheBoundsIsPassed) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("c", "1"), "ok");
  EXPECT_EQ(t20.Scan("", "c"), "a=0 b=0");
  EXPECT_EQ(t20.Scan(std::string("c\0", 2), ""), "d=0 e=0");
  EXPECT_EQ(f_.engine->counters.writers_passed.load(), 2u);
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(f_.Contents(), "a=0 b=0 c=1 d=0 e=0");
}

// R1, the counter-example of R8: when the reader looks, the writer's intent is posted and its key is not published.
// Step 5 follows each publication.
TEST_F(RangePrecisionTest, AKeyThatIsPublishedAfterTheLookMeetsTheRaise) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("e", "1"), "ok");
  EXPECT_EQ(t20.Scan("", "d"), "a=0 b=0 c=0");
  EXPECT_EQ(t20.Commit(), "ok");
  EXPECT_EQ(t10.Put("b", "1"), "range-read-later");
}

TEST_F(RangePrecisionTest, OverwritingAnOwnKeyNeedsNoSecondCheck) {
  TestTransaction t10 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("e", "1"), "ok");
  EXPECT_EQ(t20.Scan("", "d"), "a=0 b=0 c=0");
  EXPECT_EQ(t10.Put("e", "2"), "ok");
  EXPECT_EQ(t10.Commit(), "ok");
}

TEST_F(RangePrecisionTest, KeysNeverReachedDoNotConflict) {
  for (const Direction direction : kBoth) {
    SCOPED_TRACE(static_cast<int>(direction));
    EngineFixture g;
    Load(g);
    TestTransaction t10 = g.Begin(), t20 = g.Begin(), t30 = g.Begin();
    EXPECT_EQ(t10.Put("c", "1"), "ok");
    bool more = false;
    Operation scan{.direction = direction, .limit_records = 2};
    EXPECT_EQ(t20.ScanBatch(&scan, &more), direction == Direction::kAscending ? "a=0 b=0" : "e=0 d=0");
    EXPECT_TRUE(more);
    Operation reaching{.direction = direction, .limit_records = 3};
    EXPECT_EQ(t30.ScanBatch(&reaching, &more), "range-writer");
    // The next batch of the first scan begins at the key.
    EXPECT_EQ(t20.ScanBatch(&scan, &more), "range-writer");
    EXPECT_EQ(t10.Commit(), "ok");
  }
}

// A key that is pending when the scan looks is decided when the scan reaches it. By then its writer has committed,
// has aborted, or neither.
TEST_F(RangePrecisionTest, APendingKeyIsDecidedWhenItIsReached) {
  for (const Direction direction : kBoth) {
    for (const char* outcome : {"commit", "abort", "neither"}) {
      SCOPED_TRACE(::testing::Message() << outcome << static_cast<int>(direction));
      EngineFixture g;
      Load(g);
      TestTransaction t10 = g.Begin(), t20 = g.Begin();
      EXPECT_EQ(t10.Put("c", "1"), "ok");
      EXPECT_EQ(t10.Remove("cc"), "ok");
      EXPECT_EQ(t10.Put("bb", "1"), "ok");
      AtPoint point("scan.before_dc", [&] {
        if (*outcome == 'c') EXPECT_EQ(t10.Commit(), "ok");
        if (*outcome == 'a') t10.Abort();
      });
      const std::string scan = t20.Scan("", "", direction);
      EXPECT_TRUE(point.reached());
      const bool up = direction == Direction::kAscending;
      if (*outcome == 'c') EXPECT_EQ(scan, up ? "a=0 b=0 bb=1 c=1 d=0 e=0" : "e=0 d=0 c=1 bb=1 b=0 a=0");
      if (*outcome == 'a') EXPECT_EQ(scan, up ? "a=0 b=0 c=0 d=0 e=0" : "e=0 d=0 c=0 b=0 a=0");
      if (*outcome == 'n') EXPECT_EQ(scan, "range-writer");
    }
  }
}

// The same with everything applied and collected before the key is reached.
TEST_F(RangePrecisionTest, APendingKeyIsAppliedAndCollectedBeforeItIsReached) {
  for (const Direction direction : kBoth) {
    SCOPED_TRACE(static_cast<int>(direction));
    EngineFixture g;
    Load(g);
    TestTransaction t10 = g.Begin(), t20 = g.Begin();
    EXPECT_EQ(t10.Remove("b"), "ok");
    EXPECT_EQ(t10.Put("d", "1"), "ok");
    AtPoint point("scan.after_dc", [&] {
      EXPECT_EQ(t10.Commit(), "ok");
      EXPECT_EQ(g.dc->Pump(), 1u);
      g.Collect();
      EXPECT_EQ(g.records->entries(), 0u);
    });
    EXPECT_EQ(t20.Scan("", "", direction), direction == Direction::kAscending ? "a=0 c=0 d=1 e=0" : "e=0 d=1 c=0 a=0");
    EXPECT_TRUE(point.reached());
  }
}

// The same between two batches.
TEST_F(RangePrecisionTest, AWriterThatCommitsAheadOfALongScanIsSeen) {
  TestTransaction t10 = f_.Begin(), t15 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.Put("c", "1"), "ok");
  EXPECT_EQ(t15.Put("d", "1"), "ok");
  bool more = false;
  Operation scan{.limit_records = 1};
  EXPECT_EQ(t20.ScanBatch(&scan, &more), "a=0");
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(t20.ScanBatch(&scan, &more), "b=0");
  EXPECT_EQ(t20.ScanBatch(&scan, &more), "c=1");
  t15.Abort();
  EXPECT_EQ(t20.ScanBatch(&scan, &more), "d=0");
  EXPECT_EQ(t20.Commit(), "ok");
}

// A declared key is not installed, and its writer does not check the range again. So the writer's status decides,
// whatever the chain shows.
TEST_F(RangePrecisionTest, ADeclaredKeyIsPending) {
  TestTransaction t10 = f_.Begin(EngineFixture::Declaring({"c"})), t20 = f_.Begin();
  EXPECT_EQ(t20.Scan("", "c"), "a=0 b=0");
  EXPECT_EQ(t20.Scan("b"), "range-writer");
  EXPECT_EQ(t10.Put("c", "1"), "ok");
  EXPECT_EQ(t10.Commit(), "ok");

  TestTransaction t30 = f_.Begin(EngineFixture::Declaring({"d"})), t40 = f_.Begin();
  AtPoint point("scan.after_dc", [&] {
    EXPECT_EQ(t30.Put("d", "1"), "ok");
    EXPECT_EQ(t30.Commit(), "ok");
  });
  EXPECT_EQ(t40.Scan(), "a=0 b=0 c=1 d=1 e=0");
  EXPECT_TRUE(point.reached());
}

TEST_F(RangePrecisionTest, EveryWriterOfAPendingKeyMustBeDecided) {
  TestTransaction t10 = f_.Begin(EngineFixture::Declaring({"c"})), t15 = f_.Begin(EngineFixture::Declaring({"c"}));
  TestTransaction t20 = f_.Begin(), t25 = f_.Begin(), t30 = f_.Begin();
  EXPECT_EQ(t20.Scan("c", "d"), "range-writer");
  t15.Abort();
  EXPECT_EQ(t25.Scan("c", "d"), "range-writer");
  t10.Abort();
  EXPECT_EQ(t30.Scan("c", "d"), "c=0");
}

// The stretch ends at the nearest of all pending keys, whichever writer has it.
TEST_F(RangePrecisionTest, TheNearestPendingKeyCounts) {
  TestTransaction t10 = f_.Begin(), t15 = f_.Begin(), t20 = f_.Begin(), t30 = f_.Begin();
  EXPECT_EQ(t10.Put("d", "1"), "ok");
  EXPECT_EQ(t10.Put("b", "1"), "ok");
  EXPECT_EQ(t15.Put("c", "1"), "ok");
  bool more = false;
  Operation up{.limit_records = 1}, down{.direction = Direction::kDescending, .limit_records = 1};
  EXPECT_EQ(t20.ScanBatch(&up, &more), "a=0");
  EXPECT_EQ(t30.ScanBatch(&down, &more), "e=0");
  EXPECT_EQ(t20.ScanBatch(&up, &more), "range-writer");
  EXPECT_EQ(t30.ScanBatch(&down, &more), "range-writer");
}

// Gathered keys of committed writers are both before and behind the pending one.
TEST_F(RangePrecisionTest, GatheredKeysBeyondAPendingOneWait) {
  for (const Direction direction : kBoth) {
    SCOPED_TRACE(static_cast<int>(direction));
    EngineFixture g;
    Load(g);
    TestTransaction t5 = g.Begin(), t10 = g.Begin(), t20 = g.Begin();
    for (const char* key : {"aa", "bb", "cc", "dd"}) EXPECT_EQ(t5.Put(key, "5"), "ok");
    EXPECT_EQ(t5.Commit(), "ok");
    EXPECT_EQ(t10.Put("c", "1"), "ok");
    AtPoint point("scan.after_dc", [&] { EXPECT_EQ(t10.Commit(), "ok"); });
    EXPECT_EQ(t20.Scan("", "", direction), direction == Direction::kAscending
                                               ? "a=0 aa=5 b=0 bb=5 c=1 cc=5 d=0 dd=5 e=0"
                                               : "e=0 dd=5 d=0 cc=5 c=1 bb=5 b=0 aa=5 a=0");
    EXPECT_TRUE(point.reached());
  }
}

// A whole scan at any step of a writer that has posted for another key already: one of the two finds the other.
TEST_F(RangePrecisionTest, WholeScanBetweenTwoStepsOfASecondWrite) {
  for (const char* point_name :
       {"write.posted", "write.published", "chain.install.before_cas", "write.installed", "write.checked"}) {
    SCOPED_TRACE(point_name);
    EngineFixture g;
    Load(g);
    TestTransaction t10 = g.Begin(), t20 = g.Begin();
    EXPECT_EQ(t10.Put("e", "1"), "ok");
    std::string scan;
    bool scanned = false;
    AtPoint point(point_name, [&] {
      scan = t20.Scan("", "e");
      scanned = t20.open() && t20.Commit() == "ok";
    });
    const bool wrote = t10.Put("b", "1") == "ok" && t10.Commit() == "ok";
    EXPECT_TRUE(point.reached());
    EXPECT_FALSE(wrote && scanned) << "a phantom: the scan answered " << scan;
  }
}

// A whole second write, and commit, at any step of a scan.
TEST_F(RangePrecisionTest, WholeSecondWriteBetweenTwoStepsOfAScan) {
  for (const char* point_name :
       {"scan.before_raise", "scan.raised", "scan.looked", "scan.before_dc", "scan.after_dc"}) {
    SCOPED_TRACE(point_name);
    EngineFixture g;
    Load(g);
    TestTransaction t10 = g.Begin(), t20 = g.Begin();
    EXPECT_EQ(t10.Put("e", "1"), "ok");
    bool wrote = false;
    AtPoint point(point_name, [&] { wrote = t10.Put("b", "1") == "ok" && t10.Commit() == "ok"; });
    const std::string scan = t20.Scan("", "e");
    EXPECT_TRUE(point.reached());
    EXPECT_EQ(scan, wrote ? "a=0 b=1 c=0 d=0" : "a=0 b=0 c=0 d=0");
    EXPECT_EQ(t20.Commit(), "ok");
  }
}

// R3 by keys: the part that a scan for update has only read is in no later reader's way; the keys that it has written
// are.
TEST_F(RangePrecisionTest, AScanForUpdateCountsByItsKeys) {
  TestTransaction t10 = f_.Begin(), t15 = f_.Begin(), t20 = f_.Begin();
  EXPECT_EQ(t10.ScanForUpdate("", "c"), "a=0 b=0");
  EXPECT_EQ(t10.Put("b", "1"), "ok");
  EXPECT_EQ(t15.Scan("c"), "c=0 d=0 e=0");
  EXPECT_EQ(t20.Scan(), "range-writer");
  EXPECT_EQ(t10.Put("a", "1"), "range-read-later");
  TestTransaction t30 = f_.Begin(), t40 = f_.Begin();
  EXPECT_EQ(t30.ScanForUpdate(), "a=0 b=0 c=0 d=0 e=0");
  EXPECT_EQ(t40.Scan(), "a=0 b=0 c=0 d=0 e=0");
  EXPECT_EQ(t40.Commit(), "ok");
  EXPECT_EQ(t30.Put("a", "1"), "range-read-later");
}

// By range: the writer's keys do not matter.
TEST(RangePrecisionByRangeTest, AnyEarlierWriterIsAConflictAtOnce) {
  EngineFixture f({.range_precision = RangePrecision::kRanges});
  f.Load({{"a", "0"}, {"b", "0"}});
  TestTransaction t10 = f.Begin(), t20 = f.Begin(), t30 = f.Begin();
  EXPECT_EQ(t10.Put("b", "1"), "ok");
  EXPECT_EQ(t20.Scan("", "b"), "range-writer");
  EXPECT_EQ(t10.Commit(), "ok");
  EXPECT_EQ(t30.Scan("", "b"), "a=0");
}

}  // namespace
}  // namespace deut::tc

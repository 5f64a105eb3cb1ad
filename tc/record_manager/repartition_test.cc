// Ranges that change under open transactions (rules P): each step's counter-example, on the whole engine.
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/sync/event.h"
#include "common/testing/test_points.h"
#include "gtest/gtest.h"
#include "tc/record_manager/engine_fixture.h"
#include "tc/record_manager/pinned.h"

namespace deut::tc {
namespace {

// Points at which a thread can meet a change of ranges.
constexpr const char* kChangePoints[] = {"partition.published", "partition.sealed", "partition.marked",
                                         "range.fill.before_cas", "partition.before_swing"};

class RepartitionTest : public ::testing::Test {
 protected:
  size_t ranges() {
    ReclamationDomain::Guard guard(f_.domain);
    return f_.catalogue->Find(EngineFixture::kTable)->map().size();
  }

  EngineFixture f_;
};

TEST_F(RepartitionTest, NewRangesRememberReadsAndWrites) {
  f_.Load({{"a", "0"}, {"p", "0"}});
  {
    TestTransaction t = f_.Begin();
    for (const char* key : {"b", "g", "q"}) EXPECT_EQ(t.Put(key, "1"), "ok");
    EXPECT_EQ(t.Commit(), "ok");
    TestTransaction reader = f_.Begin();
    EXPECT_EQ(reader.Scan("", "c"), "a=0 b=1");
    EXPECT_EQ(reader.Commit(), "ok");
  }
  const std::string all = f_.Contents();
  const Timestamp read = f_.RangeOf("a").last_read();
  for (const std::vector<std::string>& cuts :
       {std::vector<std::string>{"b", "c", "m"}, {"c"}, {}, {"a", "b", "g", "h", "p", "q", "r"}}) {
    f_.SetRanges(cuts);
    EXPECT_GE(f_.RangeOf("a").last_read(), read);
    EXPECT_EQ(f_.Contents(), all);
    f_.Collect();
    EXPECT_EQ(f_.Contents(), all);
  }
  f_.SetRanges({"c", "m"});
  EXPECT_TRUE(f_.Settle());
  EXPECT_EQ(f_.Contents(), all);
  for (const char* key : {"a", "d", "z"}) EXPECT_EQ(f_.RangeOf(key).posting_count(), 0u) << key;
  EXPECT_EQ(f_.records->entries(), 0u);
}

// A posting may have copies in many ranges by the time it is collected. All of them go.
TEST_F(RepartitionTest, CopiesAreUnlinkedWithTheOriginals) {
  {
    TestTransaction t = f_.Begin();
    EXPECT_EQ(t.Put("b", "1"), "ok");
    f_.SetRanges({"c", "m"});
    EXPECT_EQ(t.Put("n", "1"), "ok");
    f_.SetRanges({"a", "c", "d", "m", "o"});
    for (const char* key : {"", "b", "c", "e", "n", "z"}) EXPECT_GE(f_.RangeOf(key).posting_count(), 1u) << key;
  }
  EXPECT_TRUE(f_.Settle());
  for (const char* key : {"", "b", "c", "e", "n", "z"}) EXPECT_EQ(f_.RangeOf(key).posting_count(), 0u) << key;
}

// S9: copies count in the budget while they are in any range.
TEST_F(RepartitionTest, CopiesCountAsPinned) {
  {
    TestTransaction t = f_.Begin();
    EXPECT_EQ(t.Put("b", "1"), "ok");
    const uint64_t before = PinnedBytes(*f_.engine);
    f_.SetRanges({"c", "m", "p"});
    EXPECT_EQ(PinnedBytes(*f_.engine), before + 4 * sizeof(Posting));
    f_.SetRanges({"c"});
    EXPECT_TRUE(f_.CopiesBecome(2));
    EXPECT_EQ(PinnedBytes(*f_.engine), before + 2 * sizeof(Posting));
    EXPECT_EQ(t.Commit(), "ok");
  }
  EXPECT_TRUE(f_.Settle());
  EXPECT_TRUE(f_.CopiesBecome(0));
  EXPECT_EQ(PinnedBytes(*f_.engine), 0u);
}

// If ranges are merged and split meanwhile, copies are only within the bounds of the range in which the posting was
// made.
TEST_F(RepartitionTest, CopiesDoNotSpread) {
  f_.SetRanges({"c", "m"});
  {
    TestTransaction t = f_.Begin();
    EXPECT_EQ(t.Put("b", "1"), "ok");
    f_.SetRanges({});
    f_.SetRanges({"b", "m"});
    EXPECT_EQ(f_.RangeOf("z").posting_count(), 0u);
  }
  EXPECT_TRUE(f_.Settle());
  for (const char* key : {"a", "b", "z"}) EXPECT_EQ(f_.RangeOf(key).posting_count(), 0u) << key;
}

// The posting is collected, and unlinked from the old range, after it was copied and before the new ranges are in
// place.
TEST_F(RepartitionTest, CollectedInTheMidstOfAChange) {
  for (const char* point_name : kChangePoints) {
    SCOPED_TRACE(point_name);
    f_.SetRanges({});
    TestTransaction t = f_.Begin();
    EXPECT_EQ(t.Put("b", "1"), "ok");
    AtPoint point(point_name, [&] {
      EXPECT_EQ(t.Commit(), "ok");
      EXPECT_TRUE(f_.Settle());
    });
    f_.SetRanges({"m"});
    EXPECT_TRUE(point.reached());
    EXPECT_TRUE(f_.Settle());
    for (const char* key : {"a", "z"}) EXPECT_EQ(f_.RangeOf(key).posting_count(), 0u) << key;
    EXPECT_EQ(f_.Contents(), "b=1");
  }
}

// One transaction stays open and has written in the range. It neither holds a change back nor is forgotten.
TEST_F(RepartitionTest, AnOpenTransactionHoldsNothingBack) {
  f_.Load({{"a", "0"}});
  TestTransaction open = f_.Begin();
  EXPECT_EQ(open.Put("b", "1"), "ok");
  EXPECT_EQ(open.Scan("", "c"), "a=0 b=1");
  const std::vector<std::vector<std::string>> cuts = {{"m"}, {"b", "c"}, {}, {"a", "b", "c", "d"}};
  for (int i = 0; i < 200; ++i) {
    f_.SetRanges(cuts[static_cast<size_t>(i) % cuts.size()]);
    EXPECT_EQ(ranges(), cuts[static_cast<size_t>(i) % cuts.size()].size() + 1);
    EXPECT_LE(f_.RangeOf("b").posting_count(), 4u) << "copies of copies are no more";
  }
  EXPECT_EQ(f_.Begin().Scan("b", "c"), "range-writer");
  EXPECT_EQ(open.Put("c", "1"), "ok");
  EXPECT_EQ(open.Commit(), "ok");
  EXPECT_EQ(f_.Contents(), "a=0 b=1 c=1");
}

// A whole later scan at any moment of a change: an earlier writer that comes after it meets it in the new range.
TEST_F(RepartitionTest, AReaderInTheMidstOfAChange) {
  for (const char* point_name : kChangePoints) {
    SCOPED_TRACE(point_name);
    f_.SetRanges({});
    TestTransaction writer = f_.Begin();
    std::string scanned, committed;
    AtPoint point(point_name, [&] {
      TestTransaction reader = f_.Begin();
      scanned = reader.Scan();
      committed = reader.Commit();
    });
    f_.SetRanges({"m"});
    EXPECT_TRUE(point.reached());
    EXPECT_EQ(scanned, "");
    EXPECT_EQ(committed, "ok");
    EXPECT_EQ(writer.Put("a", "1"), "range-read-later");
  }
}

// The same with the writer in the middle of the change, and the reader afterwards, in the new range.
TEST_F(RepartitionTest, AWriterInTheMidstOfAChange) {
  for (const char* point_name : kChangePoints) {
    SCOPED_TRACE(point_name);
    f_.SetRanges({});
    TestTransaction writer = f_.Begin();
    std::string put;
    AtPoint point(point_name, [&] { put = writer.Put("a", "1"); });
    f_.SetRanges({"m"});
    EXPECT_TRUE(point.reached());
    EXPECT_EQ(put, "ok");
    EXPECT_EQ(f_.Begin().Scan(), "range-writer");
  }
}

// The ranges change between two steps of a writer, and a later reader reads in the new ones. The writer's check meets
// it there.
TEST_F(RepartitionTest, AChangeAndAReaderInTheMidstOfAWriter) {
  for (const char* point_name :
       {"range.post.before_cas", "write.posted", "write.published", "chain.install.before_cas"}) {
    SCOPED_TRACE(point_name);
    f_.SetRanges({});
    TestTransaction writer = f_.Begin();
    std::string scanned, committed;
    AtPoint point(point_name, [&] {
      f_.SetRanges({"m"});
      TestTransaction reader = f_.Begin();
      scanned = reader.Scan();
      if (reader.open()) committed = reader.Commit();
    });
    const std::string put = writer.Put("a", "1");
    EXPECT_TRUE(point.reached());
    // One of the two has found the other.
    if (scanned.empty()) {
      EXPECT_EQ(committed, "ok");
      EXPECT_EQ(put, "range-read-later");
    } else {
      EXPECT_EQ(scanned, "range-writer");
    }
  }
}

// A declared key is checked once, at its declaration (R11). Its posting lives on in all later ranges.
TEST_F(RepartitionTest, ADeclaredKeyStandsInNewRanges) {
  TestTransaction writer = f_.Begin(EngineFixture::Declaring({"b"}));
  f_.SetRanges({"b", "c"});
  EXPECT_EQ(f_.Begin().Scan("b", "c"), "range-writer");
  f_.SetRanges({});
  EXPECT_EQ(f_.Begin().Scan(), "range-writer");
  EXPECT_EQ(writer.Put("b", "1"), "ok");
  EXPECT_EQ(writer.Commit(), "ok");
}

// The ranges change between two steps of a scan, and an earlier writer comes in between.
TEST_F(RepartitionTest, AChangeAndAWriterInTheMidstOfAScan) {
  for (const char* point_name : {"scan.before_raise", "range.raise.before_cas", "scan.raised", "scan.looked",
                                 "scan.before_dc", "scan.after_dc"}) {
    for (const bool for_update : {false, true}) {
      SCOPED_TRACE(std::string(point_name) + (for_update ? ", for update" : ""));
      f_.SetRanges({"g"});
      TestTransaction writer = f_.Begin();
      TestTransaction reader = f_.Begin();
      std::string put, committed;
      AtPoint point(point_name, [&] {
        f_.SetRanges({"c", "m"});
        put = writer.Put("d", "1");
        if (writer.open()) committed = writer.Commit();
      });
      const std::string scanned = for_update ? reader.ScanForUpdate() : reader.Scan();
      EXPECT_TRUE(point.reached());
      if (committed == "ok") {
        EXPECT_EQ(scanned, "d=1");
        reader.Abort();
        f_.Load({{"d", "-"}});
      } else {
        EXPECT_EQ(put, "range-read-later");
        EXPECT_EQ(scanned, "");
      }
    }
  }
}

// R3: a range that was read for update stays so in its successors, by range and by key.
TEST(RepartitionSixTest, AScanForUpdateStandsInNewRanges) {
  for (const char* point_name : {"scan.before_raise", "scan.raised", "scan.looked", "scan.after_dc"}) {
    SCOPED_TRACE(point_name);
    EngineFixture f({.range_precision = RangePrecision::kRanges});
    TestTransaction six = f.Begin();
    std::string later;
    AtPoint point(point_name, [&] {
      f.SetRanges({"m"});
      later = f.Begin().Scan("", "m");
    });
    const std::string scanned = six.ScanForUpdate();
    EXPECT_TRUE(point.reached());
    // One of the two has found the other.
    if (later.empty()) {
      EXPECT_EQ(scanned, "range-read-later");
    } else {
      EXPECT_EQ(later, "range-writer");
    }
    if (scanned.empty()) {
      f.SetRanges({"a"});
      EXPECT_EQ(f.Begin().Scan("", "m"), "range-writer");
    }
  }
}

// A scan for update in the new range meets a later reader of the old one.
TEST_F(RepartitionTest, AScanForUpdateMeetsLaterReadersOfOlderRanges) {
  TestTransaction six = f_.Begin();
  TestTransaction later = f_.Begin();
  EXPECT_EQ(later.Scan("", "m"), "");
  EXPECT_EQ(later.Commit(), "ok");
  f_.SetRanges({"a", "m"});
  EXPECT_EQ(six.ScanForUpdate(), "range-read-later");
}

// A scan continues at its key, whatever the ranges are by then.
TEST_F(RepartitionTest, AScanGoesOnInNewRanges) {
  std::vector<std::pair<std::string, std::string>> puts;
  std::string forwards, backwards;
  for (char c = 'a'; c <= 'z'; ++c) {
    puts.push_back({std::string(1, c), "1"});
    forwards += std::string(forwards.empty() ? "" : " ") + c + "=1";
    backwards = Concat(std::string(1, c), "=1", backwards.empty() ? "" : " ", backwards);
  }
  f_.Load(puts);
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    f_.SetRanges({"d", "k", "t"});
    TestTransaction t = f_.Begin();
    Operation scan{.direction = direction, .limit_records = 3};
    std::string all;
    int batches = 0;
    for (bool more = true; more; ++batches) {
      all += (all.empty() ? "" : " ") + t.ScanBatch(&scan, &more);
      f_.SetRanges(batches % 2 == 0 ? std::vector<std::string>{"c", "e", "f", "s", "u"}
                                    : std::vector<std::string>{"l"});
    }
    EXPECT_EQ(all, direction == Direction::kAscending ? forwards : backwards);
  }
}

// T1: a drop looks at the present ranges. A writer that posted in older ones is found there.
TEST_F(RepartitionTest, ADropMeetsWritersOfOlderRanges) {
  for (const char* point_name : kChangePoints) {
    SCOPED_TRACE(point_name);
    f_.SetRanges({});
    TestTransaction writer = f_.Begin();
    EXPECT_EQ(writer.Put("b", "1"), "ok");
    std::string during;
    const auto drop = [&] { return StatusText(f_.manager->DropTable("t", EngineFixture::Soon())); };
    AtPoint point(point_name, [&] { during = drop(); });
    f_.SetRanges({"a", "m"});
    EXPECT_TRUE(point.reached());
    EXPECT_EQ(during, "table-writer");
    EXPECT_EQ(drop(), "table-writer");
  }
}

// The thread that began a change has stopped for good. Others finish the change, and read and write.
TEST_F(RepartitionTest, OthersFinishTheChangeOfOneWhoHasStopped) {
  f_.Load({{"b", "0"}});
  for (const char* point_name : kChangePoints) {
    SCOPED_TRACE(point_name);
    f_.SetRanges({});
    Event stopped, go_on, finished;
    AtPoint point(point_name, [&] {
      stopped.Signal(RealRuntime());
      go_on.Wait(RealRuntime(), kNoDeadline);
    });
    std::unique_ptr<Thread> changer = RealRuntime().StartThread("changer", [&] { f_.SetRanges({"m"}); });
    EXPECT_TRUE(stopped.Wait(RealRuntime(), EngineFixture::Soon()));
    std::unique_ptr<Thread> other = RealRuntime().StartThread("other", [&] {
      TestTransaction t = f_.Begin();
      EXPECT_EQ(t.ScanForUpdate(), "b=0");
      EXPECT_EQ(t.Put("c", "1"), "ok");
      EXPECT_EQ(t.Remove("c"), "ok");
      EXPECT_EQ(t.Commit(), "ok");
      finished.Signal(RealRuntime());
    });
    EXPECT_TRUE(finished.Wait(RealRuntime(), RealRuntime().Now() + seconds(10))) << "it waits for the one who stopped";
    if (std::string_view(point_name) != "partition.published") EXPECT_EQ(ranges(), 2u);
    go_on.Signal(RealRuntime());
    changer.reset();
    other.reset();
    EXPECT_EQ(ranges(), 2u);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace deut::tc

#include "tc/redo_log/watermarks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/log_record.h"

namespace deut::tc {
namespace {

constexpr DcId kDc{7};

RedoStart StartAt(uint64_t lsn, Position stable = {}) {
  return {.lsn = Lsn(lsn), .stable = {{.dc = kDc, .stable = stable}}};
}

class WatermarksTest : public ::testing::Test {
 protected:
  void AppendAndWrite(uint64_t to) {
    marks_.AdvanceConsumed(Lsn(to), [&] { return Lsn(to); });
    marks_.AdvanceDurable(Lsn(to));
  }

  Watermarks marks_{Lsn(8), Lsn(800)};
};
using WatermarksDeathTest = WatermarksTest;

TEST_F(WatermarksTest, BeginAtTheEndOfTheRecoveredLog) {
  EXPECT_EQ(marks_.redo_start(), Lsn(8));
  EXPECT_EQ(marks_.durable(), Lsn(800));
  EXPECT_EQ(marks_.consumed(), Lsn(800));
}

TEST_F(WatermarksTest, AdvanceUpToTheirUpperNeighbours) {
  marks_.AdvanceConsumed(Lsn(1600), [] { return Lsn(1600); });
  EXPECT_EQ(marks_.durable(), Lsn(800));
  marks_.AdvanceDurable(Lsn(1200));
  marks_.AdvanceDurable(Lsn(1600));
  marks_.AdvanceDurable(Lsn(1600));
  marks_.AdvanceRedoStart({.lsn = Lsn(8), .stable = {}}, StartAt(1600, {.commit = Lsn(1592), .sequence = 1}));
  marks_.CheckTrim(Lsn(1600));
  EXPECT_EQ(marks_.redo_start(), Lsn(1600));
  EXPECT_EQ(marks_.durable(), Lsn(1600));
  EXPECT_EQ(marks_.consumed(), Lsn(1600));
}

#ifndef NDEBUG
TEST_F(WatermarksDeathTest, AWriterOutOfOrderEndsTheProcess) {
  EXPECT_DEATH(marks_.AdvanceConsumed(Lsn(1600), [] { return Lsn(1592); }), "to <= tail");
  EXPECT_DEATH(marks_.AdvanceConsumed(Lsn(792), [] { return Lsn(1592); }), "consumed\\(\\) <= to");
  EXPECT_DEATH(marks_.AdvanceDurable(Lsn(808)), "to <= consumed");
  EXPECT_DEATH(marks_.AdvanceDurable(Lsn(792)), "durable\\(\\) <= to");
}
#endif

TEST_F(WatermarksDeathTest, ARedoStartOutOfOrderEndsTheProcess) {
  const RedoStart recovered{.lsn = Lsn(8), .stable = {}};
  EXPECT_DEATH(marks_.AdvanceRedoStart(recovered, StartAt(808)), "to.lsn <= durable");
  EXPECT_DEATH(marks_.AdvanceRedoStart(recovered, StartAt(400, {.commit = Lsn(800)})), "stable.commit < durable");
  const RedoStart first = StartAt(400, {.commit = Lsn(392), .sequence = 2});
  marks_.AdvanceRedoStart(recovered, first);
  EXPECT_DEATH(marks_.AdvanceRedoStart(recovered, first), "from.lsn == redo_start");
  EXPECT_DEATH(marks_.AdvanceRedoStart(first, StartAt(392, first.stable[0].stable)), "from.lsn <= to.lsn");
  EXPECT_DEATH(marks_.AdvanceRedoStart(first, StartAt(400, {.commit = Lsn(392), .sequence = 1})),
               "before->stable <= position.stable");
  EXPECT_DEATH(marks_.CheckTrim(Lsn(408)), "cut <= redo_start");
  EXPECT_DEATH((Watermarks{Lsn(16), Lsn(8)}), "redo_start <= end");
}

TEST_F(WatermarksTest, ADcsPositionsRiseInOrder) {
  DcWatermarks dc(marks_);
  dc.BeginIncarnation(Position{}, Position{});
  dc.Ship({.commit = Lsn(400), .sequence = 3});
  EXPECT_TRUE(dc.Acknowledge({.commit = Lsn(400), .sequence = 1}, Position{}));
  EXPECT_TRUE(dc.Acknowledge({.commit = Lsn(400), .sequence = 3}, {.commit = Lsn(400), .sequence = 1}));
  EXPECT_TRUE(dc.Acknowledge({.commit = Lsn(400), .sequence = 2}, Position{})) << "an older message";
  EXPECT_EQ(dc.applied(), (Position{.commit = Lsn(400), .sequence = 3}));
  EXPECT_EQ(dc.stable(), (Position{.commit = Lsn(400), .sequence = 1}));
  dc.Ship({.commit = Lsn(8), .sequence = 1});  // sent once more
  EXPECT_EQ(dc.shipped(), (Position{.commit = Lsn(400), .sequence = 3}));
}

TEST_F(WatermarksTest, ADcThatClaimsTooMuchChangesNothing) {
  DcWatermarks dc(marks_);
  dc.Ship({.commit = Lsn(400), .sequence = 3});
  EXPECT_FALSE(dc.Acknowledge({.commit = Lsn(400), .sequence = 4}, Position{}));
  EXPECT_FALSE(dc.Acknowledge({.commit = Lsn(400), .sequence = 1}, {.commit = Lsn(400), .sequence = 2}));
  EXPECT_EQ(dc.applied(), Position{});
  EXPECT_EQ(dc.stable(), Position{});
}

// X3: positions are those of one incarnation.
TEST_F(WatermarksTest, AnotherIncarnationMayHaveLessAndShippedStays) {
  DcWatermarks dc(marks_);
  const Position shipped{.commit = Lsn(400), .sequence = 3}, stable{.commit = Lsn(200), .sequence = 1};
  dc.Ship(shipped);
  EXPECT_TRUE(dc.Acknowledge(shipped, stable));
  dc.BeginIncarnation(stable, stable);
  EXPECT_EQ(dc.applied(), stable);
  EXPECT_EQ(dc.stable(), stable);
  EXPECT_EQ(dc.shipped(), shipped);
  // A DC of the recovered log has what an earlier process has shipped.
  const Position later{.commit = Lsn(600), .sequence = 1};
  dc.BeginIncarnation(later, later);
  EXPECT_EQ(dc.shipped(), later);
}

TEST_F(WatermarksDeathTest, NothingIsShippedThatIsNotDurable) {
  DcWatermarks dc(marks_);
  EXPECT_DEATH(dc.Ship({.commit = Lsn(800), .sequence = 0}), "to.commit < log_.durable");
  AppendAndWrite(808);
  dc.Ship({.commit = Lsn(800), .sequence = UINT32_MAX});
  EXPECT_DEATH(dc.BeginIncarnation(Position{}, {.commit = Lsn(8), .sequence = 1}), "stable <= applied");
}

// A reader that loads the smaller position first finds the larger one at or above it.
TEST_F(WatermarksTest, AReaderThatLoadsTheSmallerFirstSeesTheOrder) {
  std::atomic<uint64_t> tail{800};
  std::atomic<bool> done{false};
  DcWatermarks dc(marks_);
  auto reader = RealRuntime().StartThread("reader", [&] {
    while (!done.load()) {
      const Position stable = dc.stable(), applied = dc.applied();
      const Lsn redo_start = marks_.redo_start(), durable = marks_.durable(), consumed = marks_.consumed();
      EXPECT_LE(stable, applied);
      EXPECT_LE(redo_start, durable);
      EXPECT_LE(durable, consumed);
      EXPECT_LE(consumed.value, tail.load());
      EXPECT_LT(applied.commit, marks_.durable());
    }
  });
  RedoStart before{.lsn = Lsn(8), .stable = {}};
  for (uint64_t at = 800; at < 400'000; at += 8) {
    tail.store(at + 8);
    marks_.AdvanceConsumed(Lsn(at + 8), [&] { return Lsn(tail.load()); });
    marks_.AdvanceDurable(Lsn(at + 8));
    const Position position{.commit = Lsn(at), .sequence = 1};
    dc.Ship(position);
    ASSERT_TRUE(dc.Acknowledge(position, position));
    const RedoStart next = StartAt(at, position);
    marks_.AdvanceRedoStart(before, next);
    before = next;
  }
  done.store(true);
  reader->Join();
}

}  // namespace
}  // namespace deut::tc

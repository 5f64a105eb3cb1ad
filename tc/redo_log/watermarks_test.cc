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

}  // namespace
}  // namespace deut::tc

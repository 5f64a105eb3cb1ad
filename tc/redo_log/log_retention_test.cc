#include "tc/redo_log/log_retention.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/log_ring.h"
#include "tc/redo_log/segment_set.h"
#include "tc/redo_log/watermarks.h"
#include "tc/redo_log/writer_role.h"

namespace deut::tc {
namespace {

constexpr uint64_t kBytes = 64 << 10;

class LogRetentionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(storage_->CreateDirectory("/log").ok());
    segments_ = std::make_unique<SegmentSet>(
        SegmentSetOptions{.directory = "/log", .segment_bytes = kBytes, .spares = 1}, RealRuntime(), *storage_,
        std::vector<std::shared_ptr<Segment>>{}, 1, [] {}, [](const Status&) {});
  }

  LogRetention Make(Duration keep_time, uint64_t keep_bytes) {
    return LogRetention({.keep_time = keep_time, .keep_bytes = keep_bytes, .segment_bytes = kBytes}, RealRuntime(),
                        ring_, *segments_, marks_, {.lsn = kFirstLsn, .stable = {}});
  }

  // Opens segments that begin at `lsns`.
  void Open(const std::vector<uint64_t>& lsns) {
    for (const uint64_t lsn : lsns) {
      ASSERT_TRUE(segments_->CreateSpare().ok());
      segments_->Open(segments_->TakeSpare(), Lsn(lsn));
    }
  }

  // Appends a record, and lets the log be durable up to its end.
  Lsn AppendDurably() {
    ring_.AppendOwn(RecordType::kLowWater, EncodeTimestampBody(Timestamp(1)));
    const Lsn tail = ring_.tail();
    marks_.AdvanceConsumed(tail, [&] { return ring_.tail(); });
    marks_.AdvanceDurable(tail);
    return tail;
  }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  WriterRole role_{RealRuntime(), nullptr};
  LogRing ring_{8192, kFirstLsn, RealRuntime(), role_};
  Watermarks marks_{kFirstLsn, kFirstLsn};
  std::unique_ptr<SegmentSet> segments_;
};

TEST_F(LogRetentionTest, OnlyADurableRedoStartAllowsACut) {
  Open({8});
  LogRetention retention = Make(Duration{0}, 0);
  const RedoStart first{.lsn = AppendDurably(), .stable = {}}, second{.lsn = AppendDurably(), .stable = {}};
  ASSERT_TRUE(retention.AppendRedoStart(first).ok());
  EXPECT_EQ(retention.CutNow(), kFirstLsn);
  ASSERT_TRUE(retention.AppendRedoStart(second).ok());
  retention.NoteDurable(second);
  EXPECT_EQ(retention.CutNow(), second.lsn);
  retention.NoteDurable(first);
  EXPECT_EQ(retention.redo_start(), second) << "an earlier one changes nothing";
}

TEST_F(LogRetentionTest, ARedoStartStaysBetweenTheLastOneAndTheDurableLog) {
  Open({8});
  LogRetention retention = Make(Duration{0}, 0);
  const Lsn durable = AppendDurably();
  EXPECT_TRUE(retention.AppendRedoStart({.lsn = Lsn(durable.value + 8), .stable = {}}).status() ==
              ErrorCode::kInvalidArgument);
  EXPECT_EQ(*retention.AppendRedoStart({.lsn = durable, .stable = {}}), durable) << "the record's own LSN";
  EXPECT_TRUE(retention.AppendRedoStart({.lsn = kFirstLsn, .stable = {}}).status() == ErrorCode::kInvalidArgument);
  EXPECT_EQ(marks_.redo_start(), durable);
}

TEST_F(LogRetentionTest, FilesBeforeTheRedoStartAreKeptUpToTheirNumber) {
  Open({8, 16, 24, 32, 40});
  LogRetention retention = Make(std::chrono::hours(1), 2 * kBytes);
  while (ring_.tail() < Lsn(64)) AppendDurably();
  const RedoStart redo{.lsn = Lsn(48), .stable = {}};
  ASSERT_TRUE(retention.AppendRedoStart(redo).ok());
  retention.NoteDurable(redo);
  EXPECT_EQ(retention.CutNow(), Lsn(32)) << "where the newest two files begin";
}

TEST_F(LogRetentionTest, TheHorizonIsAskedForWhereThereIsOne) {
  LogRetention retention = Make(Duration{0}, 0);
  EXPECT_EQ(retention.HorizonBeforeTrim(Lsn(64)), Timestamp(0));
  retention.set_before_trim([](Lsn cut) { return Timestamp(cut.value + 1); });
  EXPECT_EQ(retention.HorizonBeforeTrim(Lsn(64)), Timestamp(65));
}

}  // namespace
}  // namespace deut::tc

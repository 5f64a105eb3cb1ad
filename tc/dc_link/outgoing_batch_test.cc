#include "tc/dc_link/outgoing_batch.h"

#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "tc/dc_link/fake_transactions.h"
#include "tc/dc_link/redo_start_tracker.h"
#include "tc/redo_log/low_water_records.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

constexpr TableId kTable{7};
constexpr uint64_t kBatchBytes = 1000;

Position EndOf(Lsn commit) { return Position{commit, UINT32_MAX}; }
MonotonicTime At(int64_t ms) { return MonotonicTime(seconds(100) + milliseconds(ms)); }

// A batch that is filled from a log on a disk in memory. All commits are below low-water.
class OutgoingBatchTest : public ::testing::Test {
 protected:
  OutgoingBatchTest() {
    RedoLogOptions options;
    options.directory = "log";
    options.ring_bytes = 1 << 20;
    options.segment_bytes = 1 << 20;
    options.max_record_bytes = 128 << 10;
    options.chunk_bytes = 32 << 10;
    options.block_bytes = 64 << 10;
    options.space_reserve_bytes = 0;
    storage_ = disk_.Mount();
    Result<std::unique_ptr<RedoLog>> opened = RedoLog::Open(options, RealRuntime(), *storage_, &recovered_);
    if (!opened.ok()) FailStop(opened.status().ToString());
    log_ = std::move(*opened);
    feed_ = std::make_unique<CommitFeed>(*log_, transactions_, tracker_, low_water_records_);
    feed_->Restart(Position{});
    batch_.Restart(Position{}, Position{});
  }
  ~OutgoingBatchTest() override {
    feed_.reset();
    log_->Stop();
  }

  Position Commit(size_t value_bytes) {
    const std::string value(value_bytes, 'v');
    const Update update{LogEntryKind::kPut, 1, kTable, "key", value};
    const Lsn lsn = log_->AppendCommit(transactions_.Draw(), {&update, 1}).lsn;
    EXPECT_TRUE(log_->WaitDurable(lsn, RealRuntime().Now() + seconds(20)).ok());
    transactions_.AdvanceNow();
    return EndOf(lsn);
  }

  FaultyDisk disk_{RealRuntime(), 1};
  std::unique_ptr<Storage> storage_;
  RecoveredLog recovered_;
  std::unique_ptr<RedoLog> log_;
  FakeTransactions transactions_{Timestamp{1}};
  RedoStartTracker tracker_{0};
  LowWaterRecords low_water_records_;
  std::unique_ptr<CommitFeed> feed_;
  OutgoingBatch batch_{kBatchBytes, milliseconds(10)};
};

TEST_F(OutgoingBatchTest, ASmallBatchLeavesAtOnceAfterAPauseAndOtherwiseWhenTheLingerHasPassed) {
  ASSERT_TRUE(batch_.Fill(*feed_).ok());
  EXPECT_FALSE(batch_.pending());
  EXPECT_FALSE(batch_.ReadyToSend(At(0))) << "there is nothing to say";
  const Position first = Commit(100);
  ASSERT_TRUE(batch_.Fill(*feed_).ok());
  EXPECT_EQ(batch_.limit(), CommitFeed::Limit::kNotDurable);
  EXPECT_EQ(batch_.content().to, first);
  EXPECT_TRUE(batch_.ReadyToSend(At(0)));
  batch_.Sent(At(0));
  Commit(100);
  ASSERT_TRUE(batch_.Fill(*feed_).ok());
  EXPECT_TRUE(batch_.pending());
  EXPECT_EQ(batch_.leaves_at(), At(10));
  EXPECT_FALSE(batch_.ReadyToSend(At(9)));
  EXPECT_TRUE(batch_.ReadyToSend(At(10)));
}

TEST_F(OutgoingBatchTest, AFullBatchLeavesAtOnceAndTheNextOneBeginsAtItsEnd) {
  Commit(100);
  ASSERT_TRUE(batch_.Fill(*feed_).ok());
  batch_.Sent(At(0));
  const Position first = Commit(2 * kBatchBytes);
  const Position second = Commit(100);
  ASSERT_TRUE(batch_.Fill(*feed_).ok());
  EXPECT_EQ(batch_.limit(), CommitFeed::Limit::kBatchFull);
  EXPECT_EQ(batch_.content().to.commit, first.commit);
  EXPECT_TRUE(batch_.ReadyToSend(At(0)));
  const Position end = batch_.content().to;
  batch_.Sent(At(0));
  EXPECT_FALSE(batch_.pending());
  EXPECT_EQ(batch_.content().from, end);
  EXPECT_TRUE(batch_.content().entries.empty());
  ASSERT_TRUE(batch_.Fill(*feed_).ok());
  EXPECT_EQ(batch_.content().from, end);
  EXPECT_EQ(batch_.content().to, second);
}

TEST_F(OutgoingBatchTest, ACommitAboveLowWaterIsHeldBack) {
  transactions_.HoldBackAt(transactions_.next().value);
  Commit(100);
  ASSERT_TRUE(batch_.Fill(*feed_).ok());
  EXPECT_EQ(batch_.limit(), CommitFeed::Limit::kHeldBack);
  EXPECT_FALSE(batch_.pending());
}

TEST_F(OutgoingBatchTest, ABatchOfANewStreamResendsWhatWasSentBefore) {
  const Position first = Commit(100);
  const Position second = Commit(100);
  ASSERT_TRUE(batch_.Fill(*feed_).ok());
  EXPECT_FALSE(batch_.resends());
  batch_.Sent(At(0));
  feed_->Restart(first);
  batch_.Restart(first, second);
  EXPECT_TRUE(batch_.resends());
  EXPECT_FALSE(batch_.pending());
  ASSERT_TRUE(batch_.Fill(*feed_).ok());
  EXPECT_EQ(batch_.content().from, first);
  EXPECT_EQ(batch_.content().to, second);
  EXPECT_TRUE(batch_.ReadyToSend(At(0))) << "a new stream does not wait for the linger of the one before";
  batch_.Sent(At(0));
  EXPECT_FALSE(batch_.resends());
}

}  // namespace
}  // namespace deut::tc

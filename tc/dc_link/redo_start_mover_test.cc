#include "tc/dc_link/redo_start_mover.h"

#include <memory>
#include <string>

#include "common/base/check.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tc/dc_link/fake_transactions.h"

namespace deut::tc {
namespace {

using ::testing::ElementsAre;

constexpr TableId kTable{7};
constexpr DcId kDc{3};

MonotonicTime At(int64_t ms) { return MonotonicTime(seconds(100) + milliseconds(ms)); }

// A log on a disk in memory, whose commits the test reports as the link's thread does.
class RedoStartMoverTest : public ::testing::Test {
 protected:
  RedoStartMoverTest() {
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
    transactions_.set_log(log_.get());
    link_options_.redo_start_period = milliseconds(10);
    link_options_.redo_start_bytes = 1000;
    mover_ = std::make_unique<RedoStartMover>(*log_, transactions_, link_options_);
    mover_->tracker().ReportsFrom(Position{});
  }
  ~RedoStartMoverTest() override { log_->Stop(); }

  // A commit of some KiB that is durable and reported. Returns the position of its end.
  Position Commit() {
    const std::string value(5000, 'v');
    const Update update{LogEntryKind::kPut, 1, kTable, "key", value};
    const AppendResult appended = log_->AppendCommit(transactions_.Draw(), {&update, 1});
    EXPECT_TRUE(log_->WaitDurable(appended.lsn, RealRuntime().Now() + seconds(20)).ok());
    mover_->tracker().OnCommitRead(appended.lsn, appended.first);
    return Position{appended.lsn, UINT32_MAX};
  }

  FaultyDisk disk_{RealRuntime(), 1};
  std::unique_ptr<Storage> storage_;
  RecoveredLog recovered_;
  std::unique_ptr<RedoLog> log_;
  FakeTransactions transactions_{Timestamp{1}};
  DcLinkOptions link_options_;
  std::unique_ptr<RedoStartMover> mover_;
};

TEST_F(RedoStartMoverTest, S2LogsTheRedoStartWithTheStablePositionOnceAllIsReadAndStable) {
  const Lsn before = log_->redo_start().lsn;
  Commit();
  const Position last = Commit();
  const DcPosition stable{kDc, last};
  ASSERT_TRUE(mover_->Begin(At(0)).ok());
  ASSERT_TRUE(mover_->Finish(last.commit, stable).ok());
  EXPECT_EQ(log_->redo_start().lsn, before) << "the last commit has not been read";
  EXPECT_TRUE(mover_->tracker().begun());
  const Lsn tail = log_->tail();
  ASSERT_TRUE(mover_->Finish(tail, stable).ok());
  EXPECT_FALSE(mover_->tracker().begun());
  EXPECT_EQ(log_->redo_start().lsn, tail);
  EXPECT_THAT(log_->redo_start().stable, ElementsAre(stable));
}

TEST_F(RedoStartMoverTest, S2StaysBelowWhatTheDcWouldLose) {
  const Position first = Commit();
  const Position second = Commit();
  ASSERT_TRUE(mover_->Begin(At(0)).ok());
  ASSERT_TRUE(mover_->Finish(log_->tail(), DcPosition{kDc, first}).ok());
  EXPECT_EQ(log_->redo_start().lsn, second.commit);
}

TEST_F(RedoStartMoverTest, BeginsOneComputationInEachPeriod) {
  const Position last = Commit();
  ASSERT_TRUE(mover_->Begin(At(0)).ok());
  ASSERT_TRUE(mover_->Finish(log_->tail(), DcPosition{kDc, last}).ok());
  ASSERT_TRUE(mover_->Begin(At(9)).ok());
  EXPECT_FALSE(mover_->tracker().begun());
  ASSERT_TRUE(mover_->Begin(At(10)).ok());
  EXPECT_TRUE(mover_->tracker().begun());
}

TEST_F(RedoStartMoverTest, DoesNotLogASmallAdvance) {
  const Position last = Commit();
  ASSERT_TRUE(mover_->Begin(At(0)).ok());
  ASSERT_TRUE(mover_->Finish(log_->tail(), DcPosition{kDc, last}).ok());
  const RedoStart logged = log_->redo_start();
  // Only the record of the redo start has come since.
  ASSERT_GT(log_->tail(), logged.lsn);
  ASSERT_TRUE(mover_->Begin(At(10)).ok());
  ASSERT_TRUE(mover_->Finish(log_->tail(), DcPosition{kDc, last}).ok());
  EXPECT_FALSE(mover_->tracker().begun());
  EXPECT_EQ(log_->redo_start(), logged);
}

}  // namespace
}  // namespace deut::tc

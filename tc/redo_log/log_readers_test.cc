#include "tc/redo_log/log_readers.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

class LogReadersTest : public ::testing::Test {
 protected:
  void SetUp() override { log_ = MustOpen(SmallLog("/log"), *storage_, &recovered_); }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  RecoveredLog recovered_;
  std::unique_ptr<RedoLog> log_;
};

TEST_F(LogReadersTest, ReadingAChunkLeavesThePosition) {
  const Update first = Put(1, "a", "1"), second = Put(2, "b", "2");
  const std::vector<Lsn> chunks = {log_->AppendChunk(Timestamp(1), {&first, 1}).lsn};
  const AppendResult large = log_->AppendCommit(Timestamp(1), {&second, 1}, chunks), next = Commit(*log_, 2);
  ASSERT_TRUE(log_->WaitDurable(next.lsn, kNoDeadline).ok());
  const auto reader = log_->NewReader(large.lsn);
  LogRecord commit, chunk;
  ASSERT_TRUE(reader->Next(&commit, kNoDeadline).ok());
  EXPECT_EQ(reader->position(), next.lsn);
  ASSERT_TRUE(reader->ReadChunk(commit, commit.chunks[0], &chunk).ok());
  EXPECT_EQ(chunk.updates.begin()->key, "a");
  EXPECT_TRUE(reader->ReadChunk(commit, next.lsn, &chunk) == ErrorCode::kCorruption) << "a commit, and no chunk";
  EXPECT_EQ(reader->position(), next.lsn);
  EXPECT_EQ(commit.updates.begin()->key, "b") << "still valid";
  ASSERT_TRUE(reader->Next(&commit, kNoDeadline).ok());
  EXPECT_EQ(commit.timestamp, Timestamp(2));
  reader->Seek(large.lsn);
  ASSERT_TRUE(reader->Next(&commit, kNoDeadline).ok());
  EXPECT_EQ(commit.timestamp, Timestamp(1));
}

TEST_F(LogReadersTest, RecentRecordsComeFromTheRingAndOlderOnesFromTheDisk) {
  const AppendResult first = Commit(*log_, 1);
  ASSERT_TRUE(log_->WaitDurable(first.lsn, kNoDeadline).ok());
  const RedoLogCounters before = log_->counters();
  LogRecord record;
  ASSERT_TRUE(log_->NewReader(first.lsn)->Next(&record, kNoDeadline).ok());
  EXPECT_GT(log_->counters().fills_from_ring, before.fills_from_ring);
  EXPECT_EQ(log_->counters().fills_from_disk, before.fills_from_disk);
  AppendResult last;
  for (uint64_t i = 2; i <= 100; ++i) last = Commit(*log_, i, 1000);  // three times the ring
  ASSERT_TRUE(log_->WaitDurable(last.lsn, kNoDeadline).ok());
  ASSERT_TRUE(log_->NewReader(first.lsn)->Next(&record, kNoDeadline).ok());
  EXPECT_EQ(record.timestamp, Timestamp(1));
  EXPECT_GT(log_->counters().fills_from_disk, before.fills_from_disk);
}

// A reader returns no record that a crash could take back.
TEST_F(LogReadersTest, NothingIsReadBeforeItIsDurable) {
  const auto reader = log_->NewReader(log_->tail());
  LogRecord record;
  EXPECT_TRUE(reader->Next(&record, In(milliseconds(1))) == ErrorCode::kDeadlineExceeded);
  const AppendResult commit = Commit(*log_, 1);
  ASSERT_TRUE(reader->Next(&record, kNoDeadline).ok());
  EXPECT_EQ(record.lsn, commit.lsn);
  EXPECT_LT(record.lsn, log_->durable());
}

}  // namespace
}  // namespace deut::tc

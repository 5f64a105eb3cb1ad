// The log thread's work between submission and completion, and after a failure of the disk.
#include "tc/redo_log/log_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/recorded_log.h"
#include "tc/redo_log/controlled_storage.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

struct Told final : DurabilityCallback {
  void OnDurable(const Status& s) override {
    code.store(static_cast<int>(s.code()));
    told.store(true);
  }
  std::atomic<bool> told{false};
  std::atomic<int> code{-1};
};

void Until(const std::function<bool()>& condition) {
  while (!condition()) RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(20));
}

class LogWriterTest : public ::testing::Test {
 protected:
  void Open() { log_ = MustOpen(options_, storage_, &recovered_); }

  // Appends a commit and waits until its block has been submitted.
  AppendResult CommitSubmitted(uint64_t timestamp) {
    const size_t before = storage_.held();
    const AppendResult commit = Commit(*log_, timestamp);
    Until([&] { return storage_.held() > before; });
    return commit;
  }

  ControlledStorage storage_;
  RedoLogOptions options_ = SmallLog("/log");
  RecoveredLog recovered_;
  std::unique_ptr<RedoLog> log_;
};

// D2: many blocks are in flight, and durability advances in order only.
TEST_F(LogWriterTest, DurabilityAdvancesInOrder) {
  Open();
  storage_.Hold(true);
  const Lsn durable = log_->durable();
  const AppendResult first = CommitSubmitted(1), second = CommitSubmitted(2), third = CommitSubmitted(3);
  ASSERT_EQ(storage_.held(), 3u);
  Told told[3];
  EXPECT_FALSE(log_->NotifyWhenDurable(first.lsn, &told[0]));
  EXPECT_FALSE(log_->NotifyWhenDurable(second.lsn, &told[1]));
  EXPECT_FALSE(log_->NotifyWhenDurable(third.lsn, &told[2]));
  storage_.Complete(1);  // the second
  EXPECT_TRUE(log_->WaitDurable(second.lsn, In(milliseconds(20))) == ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(log_->durable(), durable);
  EXPECT_FALSE(told[0].told || told[1].told || told[2].told);
  storage_.Complete(0);  // the first
  Until([&] { return told[1].told.load(); });
  EXPECT_TRUE(told[0].told.load());
  EXPECT_EQ(log_->durable(), second.end);
  EXPECT_FALSE(told[2].told.load());
  storage_.Complete(0);  // the third
  EXPECT_TRUE(log_->WaitDurable(third.lsn, kNoDeadline).ok());
  Until([&] { return told[2].told.load(); });
}

TEST_F(LogWriterTest, ALoneCommitGoesOutAtOnceAndLoadMakesBatches) {
  options_.max_small_in_flight = 2;
  Open();
  storage_.Hold(true);
  CommitSubmitted(1);
  CommitSubmitted(2);
  AppendResult last;
  for (uint64_t i = 3; i < 20; ++i) last = Commit(*log_, i);
  const uint64_t blocks = log_->counters().blocks;
  EXPECT_EQ(storage_.held(), 2u);  // the others wait for one of the two, and no longer
  storage_.Complete(0);
  Until([&] { return storage_.held() == 2; });
  EXPECT_EQ(log_->counters().blocks, blocks + 1);
  storage_.Hold(false);
  EXPECT_TRUE(log_->WaitDurable(last.lsn, kNoDeadline).ok());
  EXPECT_EQ(log_->counters().blocks, blocks + 1);
}

TEST_F(LogWriterTest, AFailedWriteIsReportedOnceAndNothingAfterItIsDurable) {
  std::atomic<int> reports{0};
  Status reported;
  options_.on_failure = [&](const Status& status) {
    reported = status;
    reports.fetch_add(1);
  };
  Open();
  storage_.Hold(true);
  const Lsn durable = log_->durable();
  const AppendResult first = CommitSubmitted(1), second = CommitSubmitted(2), third = CommitSubmitted(3);
  Told told[3];
  EXPECT_FALSE(log_->NotifyWhenDurable(first.lsn, &told[0]));
  EXPECT_FALSE(log_->NotifyWhenDurable(second.lsn, &told[1]));
  EXPECT_FALSE(log_->NotifyWhenDurable(third.lsn, &told[2]));
  storage_.Complete(0);
  Until([&] { return told[0].told.load(); });
  storage_.Complete(0, DEUT_ERROR(kIoError, "the device says no"));
  storage_.Complete(0);
  Until([&] { return told[1].told && told[2].told; });
  EXPECT_EQ(told[0].code.load(), static_cast<int>(ErrorCode::kOk));
  EXPECT_EQ(told[1].code.load(), static_cast<int>(ErrorCode::kIoError));
  EXPECT_EQ(told[2].code.load(), static_cast<int>(ErrorCode::kIoError));
  EXPECT_GT(first.end, durable);
  EXPECT_EQ(log_->durable(), first.end);
  EXPECT_EQ(reports.load(), 1);
  EXPECT_TRUE(reported == ErrorCode::kIoError);
  EXPECT_NE(reported.message().find("/log/log-00000000000000000001 at offset "), std::string_view::npos)
      << reported.ToString();
  EXPECT_NE(reported.message().find("the device says no"), std::string_view::npos) << reported.ToString();
  EXPECT_TRUE(log_->CheckSpace(1) == ErrorCode::kUnavailable);
  EXPECT_TRUE(log_->WaitDurable(third.lsn, kNoDeadline) == ErrorCode::kIoError);
  EXPECT_TRUE(log_->EnsureReserved(Timestamp(5000), kNoDeadline) == ErrorCode::kIoError);
  // Later appends do not hang, although nothing is written any more.
  for (uint64_t i = 0; i < 500; ++i) Commit(*log_, 10 + i, 500);
  EXPECT_EQ(reports.load(), 1);
}

TEST_F(LogWriterTest, AShortWriteIsAFailure) {
  Open();
  storage_.Hold(true);
  const AppendResult commit = CommitSubmitted(1);
  storage_.Shorten(0);
  storage_.Complete(0);
  EXPECT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline) == ErrorCode::kIoError);
  EXPECT_NE(log_->failure().message().find("only 1 of 4096 bytes"), std::string_view::npos)
      << log_->failure().ToString();
}

TEST_F(LogWriterTest, AStuckDeviceIsAFailure) {
  options_.device_timeout = milliseconds(50);
  Open();
  storage_.Hold(true);
  const AppendResult commit = CommitSubmitted(1);
  const Status status = log_->WaitDurable(commit.lsn, kNoDeadline);
  EXPECT_TRUE(status == ErrorCode::kIoError) << status.ToString();
  EXPECT_NE(status.message().find("no completion"), std::string_view::npos) << status.ToString();
  storage_.Hold(false);
}

TEST_F(LogWriterTest, ASlowWriteIsToldWithItsBytesWhenItBeginsAndEnds) {
  testing::RecordedLog lines;
  options_.slow_after = milliseconds(20);
  Open();
  storage_.Hold(true);
  const AppendResult commit = CommitSubmitted(1);
  Until([&] { return lines.HasLineWith("bytes at offset", "has not come back for"); });
  storage_.Hold(false);
  EXPECT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline).ok());
  Until([&] { return lines.HasLineWith("bytes at offset", "has come back after"); });
}

TEST_F(LogWriterTest, WaitsKeepTheirDeadlines) {
  Open();
  storage_.Hold(true);
  const AppendResult commit = CommitSubmitted(1);
  EXPECT_TRUE(log_->WaitDurable(commit.lsn, In(milliseconds(5))) == ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(log_->EnsureReserved(Timestamp(1500), In(milliseconds(5))) == ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(log_->AdvanceRedoStart({.lsn = recovered_.end_lsn, .stable = {}}, In(milliseconds(5))) ==
              ErrorCode::kDeadlineExceeded);
  for (int i = 0; i < 2; ++i) {  // the second time it is appended already, but not durable
    EXPECT_TRUE(log_->AddKnownDc(DcId(1), In(milliseconds(5))) == ErrorCode::kDeadlineExceeded) << i;
  }
  storage_.Hold(false);
  EXPECT_TRUE(log_->AddKnownDc(DcId(1), kNoDeadline).ok());
  EXPECT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline).ok());
  EXPECT_TRUE(log_->EnsureReserved(Timestamp(1500), kNoDeadline).ok());
}

// Disk full: commits are refused before they append. Reads and the log's own records go on, and the shortage ends by
// itself.
TEST(RedoLogOnAFullDisk, ResolvesItself) {
  FaultyDisk disk(RealRuntime(), 1);
  const std::unique_ptr<Storage> storage = disk.Mount();
  RedoLogOptions options = SmallLog("/log");
  std::atomic<int> failures{0};
  options.on_failure = [&](const Status&) { failures.fetch_add(1); };
  RecoveredLog recovered;
  const auto log = MustOpen(options, *storage, &recovered);
  Until([&] { return log->counters().spare_segments == options.spare_segments; });
  disk.SetFreeBytes(0);
  uint64_t committed = 0;
  AppendResult last;
  while (log->CheckSpace(500).ok()) {
    ASSERT_LT(committed, 10000u);
    last = Commit(*log, ++committed, 400);
    ASSERT_TRUE(log->WaitDurable(last.lsn, kNoDeadline).ok());
  }
  const Status refused = log->CheckSpace(500);
  EXPECT_TRUE(refused == ErrorCode::kResourceExhausted) << refused.ToString();
  EXPECT_GT(refused.retry_after_ms(), 0u);
  EXPECT_LT(log->counters().free_bytes, options.space_reserve_bytes + 4096);
  EXPECT_GT(log->counters().free_bytes, 0u);
  // The reserve lets the records be logged that end the shortage. Reads go on.
  EXPECT_EQ(CommitTimestamps(ReadAll(*log, recovered.end_lsn)).size(), committed);
  ASSERT_TRUE(log->AdvanceRedoStart({.lsn = last.lsn, .stable = {}}, kNoDeadline).ok());
  Until([&] { return log->accepting(); });  // freed segments are reused, although the disk is as full as before
  EXPECT_GT(log->counters().segments_recycled, 0u);
  while (log->CheckSpace(500).ok()) ASSERT_TRUE(log->WaitDurable(Commit(*log, ++committed, 400).lsn, kNoDeadline).ok());
  disk.SetFreeBytes(UINT64_MAX / 2);
  Until([&] { return log->accepting(); });
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(CommitTimestamps(ReadAll(*log, last.lsn)).back(), committed);
}

TEST(RedoLogOnAFullDisk, DoesNotStart) {
  FaultyDisk disk(RealRuntime(), 1);
  const std::unique_ptr<Storage> storage = disk.Mount();
  disk.SetFreeBytes(1000);
  RecoveredLog recovered;
  const Status status = RedoLog::Open(SmallLog("/log"), RealRuntime(), *storage, &recovered).status();
  EXPECT_TRUE(status == ErrorCode::kResourceExhausted) << status.ToString();
  disk.SetFreeBytes(UINT64_MAX / 2);
  EXPECT_NE(MustOpen(SmallLog("/log"), *storage, &recovered), nullptr);
}

// X7: the disk under the log is full, and a start must not need more of it, because only a TC that has started can
// free segments. One start follows the other, whatever each leaves behind, also when power is lost in it.
class RedoLogStartsOnAFullDisk : public ::testing::Test {
 protected:
  // Commits until a commit is refused, with no space but the log's own.
  void FillUp() {
    RecoveredLog recovered;
    const auto log = MustOpen(options_, *storage_, &recovered);
    Until([&] { return log->counters().spare_segments == options_.spare_segments; });
    disk_.SetFreeBytes(0);
    for (committed_ = 1; log->CheckSpace(500).ok(); ++committed_) {
      ASSERT_LT(committed_, 10000u);
      last_ = Commit(*log, committed_, 400);
      ASSERT_TRUE(log->WaitDurable(last_.lsn, kNoDeadline).ok());
    }
  }
  // One start on the full disk: the log opens, has all commits, and refuses new ones.
  void StartAndLook() {
    RecoveredLog recovered;
    const auto log = MustOpen(options_, *storage_, &recovered);
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(CommitTimestamps(ReadAll(*log, recovered.redo_start.lsn)).size(), committed_ - 1);
    // At once, or as soon as the helper has found no space for a spare segment.
    Until([&] { return log->CheckSpace(500) == ErrorCode::kResourceExhausted; });
  }
  // One more start, which frees all segments. Then commits are accepted again.
  void StartAndLetGo() {
    RecoveredLog recovered;
    const auto log = MustOpen(options_, *storage_, &recovered);
    ASSERT_NE(log, nullptr);
    ASSERT_TRUE(log->AdvanceRedoStart({.lsn = last_.lsn, .stable = {}}, kNoDeadline).ok());
    Until([&] { return log->accepting(); });
    EXPECT_TRUE(log->WaitDurable(Commit(*log, ++committed_, 400).lsn, kNoDeadline).ok());
  }

  FaultyDisk disk_{RealRuntime(), 1};
  const std::unique_ptr<Storage> storage_ = disk_.Mount();
  RedoLogOptions options_ = [] {
    RedoLogOptions options = SmallLog("/log");
    options.segment_bytes = 256 << 10;
    options.space_reserve_bytes = 160 << 10;
    return options;
  }();
  uint64_t committed_ = 0;
  AppendResult last_;
};

TEST_F(RedoLogStartsOnAFullDisk, AgainAndAgain) {
  FillUp();
  for (int life = 0; life < 4; ++life) ASSERT_NO_FATAL_FAILURE(StartAndLook()) << life;
  StartAndLetGo();
}

TEST_F(RedoLogStartsOnAFullDisk, WhereverPowerIsLostInTheStart) {
  FillUp();
  for (uint64_t operation = 1, crashed = 1; crashed != 0; ++operation) {
    const std::unique_ptr<FaultyDisk> disk = disk_.CopyAfterCrash(operation);
    const std::unique_ptr<Storage> storage = disk->Mount();
    disk->CrashAfter(operation);
    RecoveredLog recovered;
    const Status started = RedoLog::Open(options_, RealRuntime(), *storage, &recovered).status();
    crashed = disk->crashes();
    if (crashed == 0) EXPECT_TRUE(started.ok()) << started.ToString();
    disk->CrashAfter(0);
    const std::unique_ptr<Storage> again = disk->Mount();
    const auto log = MustOpen(options_, *again, &recovered);
    ASSERT_NE(log, nullptr) << "operation " << operation;
    ASSERT_EQ(CommitTimestamps(ReadAll(*log, recovered.redo_start.lsn)).size(), committed_ - 1) << operation;
  }
}

// If any operation fails while the log opens or works, the caller gets an error or a reported failure. Commits
// that were acknowledged before are there afterwards.
TEST(RedoLogOnABadDisk, AnErrorAtEveryOperation) {
  constexpr uint64_t kCommits = 120;
  uint64_t hits = 1;
  uint64_t skip = 0;
  for (; hits != 0; ++skip) {
    FaultyDisk disk(RealRuntime(), skip + 1);
    const std::unique_ptr<Storage> storage = disk.Mount();
    const int fault =
        disk.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskAny, .skip = skip, .count = 1});
    uint64_t acknowledged = 0;
    {
      std::atomic<int> failures{0};
      RedoLogOptions options = SmallLog("/log");
      options.on_failure = [&](const Status& status) {
        EXPECT_TRUE(status == ErrorCode::kIoError) << status.ToString();
        failures.fetch_add(1);
      };
      RecoveredLog recovered;
      Result<std::unique_ptr<RedoLog>> log = RedoLog::Open(options, RealRuntime(), *storage, &recovered);
      for (uint64_t i = 1; log.ok() && i <= kCommits && (*log)->failure().ok(); ++i) {
        const AppendResult commit = Commit(**log, i, 900);
        if (i % 4 == 0 && (*log)->WaitDurable(commit.lsn, kNoDeadline).ok()) acknowledged = i;
        if (i % 40 == 0) (void)(*log)->AdvanceRedoStart({.lsn = commit.lsn, .stable = {}}, kNoDeadline);
      }
      EXPECT_LE(failures.load(), 1);
    }
    hits = disk.hits(fault);
    disk.RemoveAllFaults();
    RecoveredLog recovered;
    const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
    ASSERT_NE(log, nullptr) << "operation " << skip;
    const std::vector<uint64_t> found = CommitTimestamps(ReadAll(*log, recovered.redo_start.lsn));
    for (size_t i = 1; i < found.size(); ++i) ASSERT_EQ(found[i], found[i - 1] + 1);
    if (acknowledged > 0 && acknowledged % 40 != 0) {
      ASSERT_FALSE(found.empty());
      EXPECT_GE(found.back(), acknowledged) << "operation " << skip;
    }
  }
  EXPECT_GT(skip, 40u);
}

// A flipped bit anywhere in the bytes that were durable before the last block. The log is refused, with file and
// offset.
TEST(RedoLogOnABadDisk, FlippedBits) {
  FaultyDisk disk(RealRuntime(), 7);
  const std::unique_ptr<Storage> storage = disk.Mount();
  RecoveredLog recovered;
  {
    const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
    for (uint64_t i = 1; i <= 40; ++i) ASSERT_TRUE(log->WaitDurable(Commit(*log, i, 100).lsn, kNoDeadline).ok());
  }
  const std::string file = "/log/log-00000000000000000001";
  // Magic, checksum, header fields, payload and padding of the segment's header and of a block.
  for (const uint64_t block : {uint64_t{0}, uint64_t{3} * 4096, uint64_t{5} * 4096}) {
    for (const uint64_t at : {0, 3, 4, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 56, 64, 72, 80, 84, 90, 110, 1000, 4095}) {
      ASSERT_TRUE(disk.FlipBit(file, block + at, static_cast<int>(at % 8)).ok());
      const Status status = RedoLog::Open(SmallLog("/log"), RealRuntime(), *storage, &recovered).status();
      EXPECT_TRUE(status == ErrorCode::kCorruption) << block + at << ": " << status.ToString();
      EXPECT_NE(status.message().find(file + " at offset " + std::to_string(block)), std::string_view::npos)
          << status.ToString();
      ASSERT_TRUE(disk.FlipBit(file, block + at, static_cast<int>(at % 8)).ok());
    }
  }
  // Nothing was deleted or changed by the refusals.
  const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
  EXPECT_EQ(CommitTimestamps(ReadAll(*log, recovered.redo_start.lsn)).size(), 40u);
  // Damage that happens while the log is in use is found by its readers, which never return a wrong record.
  ASSERT_TRUE(disk.FlipBit(file, 3 * 4096 + 100, 1).ok());
  Status error;
  ReadAll(*log, recovered.redo_start.lsn, &error);
  EXPECT_TRUE(error == ErrorCode::kCorruption) << error.ToString();
  EXPECT_NE(error.message().find(file + " at offset 12288"), std::string_view::npos) << error.ToString();
}

}  // namespace
}  // namespace deut::tc

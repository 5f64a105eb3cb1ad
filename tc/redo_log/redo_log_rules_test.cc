// One test a rule. Each is built on the error that follows when the rule's decisive step is left out (see
// DEUT_OMITTED in the code).
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/disk_fault.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/redo_log/log_forge.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/recovery.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

// D2. A write of a process that has died may reach the disk after its successor has read the log and cut it. Here the
// successor finds block 4 missing and block 5 behind it. It cuts, serves the rest (1, 2, 3), and acknowledges 6; then
// block 4 arrives. After a second crash neither 4 nor 5 may come back, and 6 must be there. The logged cut says where
// the earlier epoch ends, even if blocks follow behind it.
TEST(RedoLogRules, D2TheCutIsLogged) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  RecoveredLog recovered;
  {
    const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
    for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(log->WaitDurable(Commit(*log, i).lsn, kNoDeadline).ok());
  }
  LogForge forge(*storage, "/log");
  const Result<RecoveredChain> chain = RecoverChain(*storage, "/log");
  ASSERT_TRUE(chain.ok()) << chain.status().ToString();
  forge.state = chain->state;
  forge.lsn = forge.durable = chain->end.lsn;
  forge.predecessor = chain->checksum;
  forge.segment = chain->end.segment;
  forge.offset = chain->end.offset;
  forge.CommitRecord(4);
  const std::string late = forge.LostBlock(chain->end.lsn);
  forge.CommitRecord(5);
  forge.BlockSubmittedAt(chain->end.lsn);
  {
    const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
    EXPECT_EQ(recovered.end_lsn, chain->end.lsn);
    EXPECT_EQ(recovered.dropped_bytes, 4096u);
    EXPECT_EQ(CommitTimestamps(ReadAll(*log, recovered.redo_start.lsn)), (std::vector<uint64_t>{1, 2, 3}));
    ASSERT_TRUE(log->WaitDurable(Commit(*log, 6).lsn, kNoDeadline).ok());
    forge.Write(chain->end.segment, chain->end.offset, late);
  }
  Result<std::unique_ptr<RedoLog>> log = RedoLog::Open(SmallLog("/log"), RealRuntime(), *storage, &recovered);
  ASSERT_TRUE(log.ok()) << log.status().ToString();
  EXPECT_EQ(CommitTimestamps(ReadAll(**log, recovered.redo_start.lsn)), (std::vector<uint64_t>{1, 2, 3, 6}));
}

// D2. A write fails but leaves its bytes. The next process reads them and builds on them; then power is lost. Commits
// that one process has found must stay found.
TEST(RedoLogRules, D2RecoveredBlocksAreMadeDurable) {
  uint64_t found_after_failure = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    FaultyDisk disk(RealRuntime(), seed);
    RecoveredLog recovered;
    {
      const std::unique_ptr<Storage> storage = disk.Mount();
      const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
      ASSERT_TRUE(log->WaitDurable(Commit(*log, 1).lsn, kNoDeadline).ok());
      disk.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskWrite, .count = 1});
      EXPECT_FALSE(log->WaitDurable(Commit(*log, 2).lsn, kNoDeadline).ok());
    }
    std::vector<uint64_t> wanted;
    {
      const std::unique_ptr<Storage> storage = disk.Mount();
      const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
      ASSERT_TRUE(log->WaitDurable(Commit(*log, 3).lsn, kNoDeadline).ok());
      wanted = CommitTimestamps(ReadAll(*log, recovered.redo_start.lsn));
      found_after_failure += wanted.size() == 3 ? 1 : 0;
    }
    disk.Crash(seed);
    const std::unique_ptr<Storage> storage = disk.Mount();
    const Result<std::unique_ptr<RedoLog>> log = RedoLog::Open(SmallLog("/log"), RealRuntime(), *storage, &recovered);
    ASSERT_TRUE(log.ok()) << log.status().ToString();
    EXPECT_EQ(CommitTimestamps(ReadAll(**log, recovered.redo_start.lsn)), wanted);
  }
  EXPECT_GT(found_after_failure, 0u);
}

// D2. A block is written again exactly as it was found, or not at all. A bit that flips on its way from the disk must
// not be written to it.
TEST(RedoLogRules, D2RewrittenBlocksAreRight) {
  uint64_t struck = 0;
  for (uint64_t skip = 0; skip < 12; ++skip) {
    SCOPED_TRACE(skip);
    FaultyDisk disk(RealRuntime(), skip);
    RecoveredLog recovered;
    {
      const std::unique_ptr<Storage> storage = disk.Mount();
      const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
      ASSERT_TRUE(log->WaitDurable(Commit(*log, 1).lsn, kNoDeadline).ok());
    }
    // Two starts without a commit: the proven and the unproven blocks lie behind them.
    for (int life = 0; life < 2; ++life) {
      const std::unique_ptr<Storage> storage = disk.Mount();
      if (life == 0) {
        ASSERT_TRUE(RedoLog::Open(SmallLog("/log"), RealRuntime(), *storage, &recovered).ok());
        continue;
      }
      const int fault =
          disk.AddFault({.action = DiskFault::Action::kFlipBit, .kinds = kDiskRead, .skip = skip, .count = 1});
      // It may refuse. The next start must find the commit.
      (void)RedoLog::Open(SmallLog("/log"), RealRuntime(), *storage, &recovered);
      struck += disk.hits(fault);
      disk.RemoveAllFaults();
    }
    const std::unique_ptr<Storage> storage = disk.Mount();
    const Result<std::unique_ptr<RedoLog>> log = RedoLog::Open(SmallLog("/log"), RealRuntime(), *storage, &recovered);
    ASSERT_TRUE(log.ok()) << log.status().ToString();
    EXPECT_EQ(CommitTimestamps(ReadAll(**log, recovered.redo_start.lsn)), (std::vector<uint64_t>{1}));
  }
  EXPECT_GT(struck, 0u);
}

// D3. Timestamps are drawn only from durable reservations. Otherwise a crash forgets the reservation, and the next
// process draws them again. The disk is slow: nothing is acknowledged. Every timestamp that was allowed to be drawn
// must lie below the first one of the next process.
TEST(RedoLogRules, D3TimestampsAreReservedBeforeTheyAreDrawn) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    FaultyDisk disk(RealRuntime(), seed);
    RecoveredLog recovered;
    uint64_t drawn = 0;
    {
      const std::unique_ptr<Storage> storage = disk.Mount();
      const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
      disk.HoldCompletions(true);
      for (const uint64_t timestamp : {999, 1500, 2500}) {
        if (log->EnsureReserved(Timestamp(timestamp), In(milliseconds(2))).ok()) drawn = timestamp;
      }
      disk.Crash(seed);
      disk.HoldCompletions(false);
    }
    const std::unique_ptr<Storage> storage = disk.Mount();
    const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
    EXPECT_GT(recovered.first_timestamp.value, drawn);
    // When the disk answers, the next ones may be drawn, and are remembered.
    const uint64_t next = recovered.first_timestamp.value + 2500;
    ASSERT_TRUE(log->EnsureReserved(Timestamp(next), kNoDeadline).ok());
    disk.Crash(seed);
    const std::unique_ptr<Storage> again = disk.Mount();
    ASSERT_NE(MustOpen(SmallLog("/log"), *again, &recovered), nullptr);
    EXPECT_GT(recovered.first_timestamp.value, next);
  }
}

// S2. Segments are removed only when the redo start that allows it is durable. Otherwise a crash forgets the redo
// start but not the removal.
TEST(RedoLogRules, S2TheRedoStartIsDurableBeforeSegmentsGo) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    FaultyDisk disk(RealRuntime(), seed);
    RecoveredLog recovered;
    AppendResult last;
    {
      const std::unique_ptr<Storage> storage = disk.Mount();
      const auto log = MustOpen(SmallLog("/log"), *storage, &recovered);
      for (uint64_t i = 1; i <= 300; ++i) last = Commit(*log, i, 900);
      ASSERT_TRUE(log->WaitDurable(last.lsn, kNoDeadline).ok());
      ASSERT_GT(log->counters().segments, 3u);
      disk.HoldCompletions(true);
      const Status advanced = log->AdvanceRedoStart({.lsn = last.lsn, .stable = {}}, In(milliseconds(10)));
      if (advanced.ok()) {
        // The last segment but one stays while nothing in the last is durable.
        while (log->counters().segments > 2) RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(50));
      }
      disk.Crash(seed);
      disk.HoldCompletions(false);
    }
    const std::unique_ptr<Storage> storage = disk.Mount();
    Result<std::unique_ptr<RedoLog>> log = RedoLog::Open(SmallLog("/log"), RealRuntime(), *storage, &recovered);
    ASSERT_TRUE(log.ok()) << log.status().ToString();
    const std::vector<uint64_t> found = CommitTimestamps(ReadAll(**log, recovered.redo_start.lsn));
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.back(), 300u);
  }
}

}  // namespace
}  // namespace deut::tc

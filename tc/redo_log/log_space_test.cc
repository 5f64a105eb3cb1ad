// Rule D5: room for a commit is claimed before anything of it is appended.
#include "tc/redo_log/log_space.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/testing/test_points.h"
#include "tc/log_format/block_format.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/redo_log.h"

namespace deut::tc {
namespace {

constexpr uint64_t kMuch = UINT64_MAX / 2;
// A record with such a value almost fills a block of 4 KiB.
constexpr size_t kBlockValue = 3900;
// A record with such a value takes 8 KiB, independent of its neighbours: a block of this log cannot hold two of them.
constexpr size_t kHalfBlockValue = 4200;
constexpr uint64_t kHalfBlockBytes = 8192;

void Until(const std::function<bool()>& condition) {
  while (!condition()) RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(20));
}

class LogSpaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log_ = MustOpen(options_, *storage_, &recovered_);
    ASSERT_NE(log_, nullptr);
    Until([&] { return log_->counters().spare_segments == options_.spare_segments; });
  }

  Result<SpaceClaim> Reserve(absl::Span<const Update> updates, Deadline deadline = kNoDeadline) {
    return log_->ReserveSpace(updates, {}, deadline);
  }
  AppendResult Append(absl::Span<const Update> updates, SpaceClaim claim) {
    return log_->AppendCommit(Timestamp(++timestamp_), updates, {}, {}, {}, &claim);
  }
  std::vector<Update> Updates(uint32_t count, std::string_view value) {
    std::vector<Update> updates;
    for (uint32_t i = 1; i <= count; ++i) updates.push_back(Put(i, "key", value));
    return updates;
  }
  uint64_t FreeOnDisk() { return *storage_->FreeBytes("/log"); }

  FaultyDisk disk_{RealRuntime(), 1};
  const std::unique_ptr<Storage> storage_ = disk_.Mount();
  RedoLogOptions options_ = SmallLog("/log");
  RecoveredLog recovered_;
  std::unique_ptr<RedoLog> log_;
  uint64_t timestamp_ = 0;
};

// Claims of commits that have not appended yet count against later claims.
TEST_F(LogSpaceTest, D5CommitsThatLookAtOnceDoNotShareTheirRoom) {
  disk_.SetFreeBytes(0);
  const std::string value(kBlockValue, 'v');
  const std::vector<Update> updates = Updates(1, value);
  std::vector<SpaceClaim> claims;
  while (claims.size() < 100) {
    Result<SpaceClaim> claim = Reserve(updates);
    if (!claim.ok()) {
      EXPECT_EQ(claim.status(), ErrorCode::kResourceExhausted);
      EXPECT_GT(claim.status().retry_after_ms(), 0u);
      break;
    }
    claims.push_back(*std::move(claim));
  }
  EXPECT_GT(claims.size(), 20u);
  ASSERT_LE(claims.size() * 4096, log_->counters().free_bytes);
  AppendResult last;
  for (SpaceClaim& claim : claims) last = Append(updates, std::move(claim));
  EXPECT_TRUE(log_->WaitDurable(last.lsn, kNoDeadline).ok());
}

// A record's word has 32 bits for its length. The limit is compared with the whole length, of chunks as well. Only the
// lengths of keys and values are read, so the values need not exist.
TEST_F(LogSpaceTest, AnUpdateThatNoRecordCanHoldIsRefusedWhateverItsLength) {
  const std::string start("v");
  for (const uint64_t bytes : {uint64_t{options_.max_record_bytes}, (uint64_t{1} << 32) - 50, (uint64_t{1} << 32),
                               (uint64_t{1} << 32) + 1000, (uint64_t{3} << 32) + 1000}) {
    const std::string_view huge(start.data(), bytes);
    const std::vector<Update> last = {Put(1, "a", "small"), Put(2, "b", huge)};
    const std::vector<Update> first = {Put(1, "a", huge), Put(2, "b", "small")};
    for (const std::vector<Update>& updates : {last, first}) {
      const Result<SpaceClaim> claim = Reserve(updates);
      EXPECT_EQ(claim.status(), ErrorCode::kInvalidArgument) << bytes;
      EXPECT_NE(claim.status().message().find("needs a record of"), std::string_view::npos)
          << claim.status().ToString();
    }
  }
}

TEST_F(LogSpaceTest, AClaimThatIsNotUsedIsGivenBack) {
  disk_.SetFreeBytes(0);
  const std::string value(kBlockValue, 'v');
  const std::vector<Update> updates = Updates(1, value);
  size_t first = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<SpaceClaim> claims;
    for (Result<SpaceClaim> claim = Reserve(updates); claim.ok(); claim = Reserve(updates)) {
      claims.push_back(*std::move(claim));
    }
    if (round == 0) first = claims.size();
    EXPECT_EQ(claims.size(), first);
  }
}

// A commit of several times the size that is allocated ahead. The helper allocates segments for it, and removes them
// later.
TEST_F(LogSpaceTest, D5ALargeCommitGetsTheSegmentsThatItNeeds) {
  const std::string value(1000, 'v');
  for (int round = 1; round <= 2; ++round) {
    const std::vector<Update> updates = Updates(600, value);
    Result<SpaceClaim> claim = Reserve(updates);
    ASSERT_TRUE(claim.ok()) << claim.status().ToString();
    EXPECT_GT(log_->counters().free_bytes, updates.size() * value.size());
    const AppendResult commit = Append(updates, *std::move(claim));
    ASSERT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline).ok());
    const std::vector<ReadRecord> read = ReadAll(*log_, commit.first);
    ASSERT_EQ(CommitTimestamps(read), std::vector<uint64_t>{timestamp_});
    EXPECT_EQ(read[0].updates.size(), updates.size());
    // The claimed room is free again, and no more spares are kept than before.
    Until([&] { return log_->CheckSpace(120 << 10).ok() && log_->counters().spare_segments <= 4; });
    ASSERT_TRUE(log_->AdvanceRedoStart({.lsn = commit.lsn, .stable = {}}, kNoDeadline).ok());
    Until([&] { return log_->counters().segments <= 2 && log_->counters().spare_segments <= 4; });
  }
}

// The claim covers what a commit takes on the disk, here almost twice its records. After the claim the commit needs
// nothing more of the disk, and other commits meanwhile take none of its room.
TEST_F(LogSpaceTest, D5TheClaimCoversBlocksAndTheEndsOfSegments) {
  const std::string large(kHalfBlockValue, 'v'), small(kBlockValue, 's');
  const std::vector<Update> updates = Updates(100, large), others = Updates(1, small);
  Result<SpaceClaim> claim = Reserve(updates);
  ASSERT_TRUE(claim.ok()) << claim.status().ToString();
  disk_.SetFreeBytes(0);
  ASSERT_GE(log_->counters().free_bytes, updates.size() * kHalfBlockBytes);
  for (Result<SpaceClaim> other = Reserve(others); other.ok(); other = Reserve(others)) {
    ASSERT_TRUE(log_->WaitDurable(Append(others, *std::move(other)).lsn, kNoDeadline).ok());
  }
  const AppendResult commit = Append(updates, *std::move(claim));
  ASSERT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline).ok());
  // The records that let segments be freed still find room.
  ASSERT_TRUE(log_->AdvanceRedoStart({.lsn = commit.lsn, .stable = {}}, kNoDeadline).ok());
  Until([&] { return log_->accepting(); });
}

TEST_F(LogSpaceTest, CommitBeyondTheFreeSpaceIsRefusedAndKeepsNoSegment) {
  const uint64_t free = 512 << 10;
  // A file of another program. Without it there would be room.
  auto other = storage_->Open("/other", {.create = true, .writable = true});
  ASSERT_TRUE(other.ok() && (*other)->Allocate(4 << 20).ok());
  disk_.SetFreeBytes(free);
  const std::string value(1000, 'v');
  const std::vector<Update> updates = Updates(1000, value);
  const Lsn tail = log_->tail();
  const Status refused = Reserve(updates).status();
  EXPECT_EQ(refused, ErrorCode::kResourceExhausted);
  EXPECT_GT(refused.retry_after_ms(), 0u);
  EXPECT_NE(refused.message().find(std::to_string(free) + " are free"), std::string_view::npos) << refused.ToString();
  EXPECT_EQ(log_->tail(), tail);
  EXPECT_EQ(FreeOnDisk(), free);
  EXPECT_TRUE(log_->CheckSpace(100 << 10).ok());
  disk_.SetFreeBytes(kMuch);
  EXPECT_TRUE(Reserve(updates).ok());
}

TEST_F(LogSpaceTest, ACommitLargerThanTheDiskIsRefusedForGood) {
  disk_.SetFreeBytes(512 << 10);
  const std::string value(1000, 'v');
  const std::vector<Update> updates = Updates(1000, value);
  const Status refused = Reserve(updates).status();
  EXPECT_EQ(refused, ErrorCode::kInvalidArgument) << refused.ToString();
  EXPECT_EQ(refused.retry_after_ms(), 0u);
  EXPECT_NE(refused.message().find(std::to_string(*storage_->CapacityBytes("/log")) + " bytes in all"),
            std::string_view::npos)
      << refused.ToString();
  EXPECT_TRUE(log_->CheckSpace(100 << 10).ok());
}

// A large commit that waits asks the file system for its free bytes. Another commit meanwhile does not wait for the
// answer.
TEST_F(LogSpaceTest, ALookAtTheDiskHoldsNoOtherCommitUp) {
  const std::string value(1000, 'v');
  const std::vector<Update> first = Updates(300, value), second = Updates(600, value);
  Result<SpaceClaim> claim = Reserve(first);
  ASSERT_TRUE(claim.ok()) << claim.status().ToString();
  disk_.HoldOperations(kDiskOther, "/log");
  Status waited;
  const std::unique_ptr<Thread> waits = RealRuntime().StartThread("waits", [&] { waited = Reserve(second).status(); });
  Until([&] { return disk_.held_operations() == 1; });
  std::atomic<bool> appended{false};
  const std::unique_ptr<Thread> appends = RealRuntime().StartThread("appends", [&] {
    Append(first, *std::move(claim));
    appended.store(true);
  });
  const MonotonicTime give_up = RealRuntime().Now() + seconds(30);
  Until([&] { return appended.load() || RealRuntime().Now() >= give_up; });
  EXPECT_TRUE(appended.load());
  EXPECT_EQ(disk_.held_operations(), 1u);
  disk_.HoldOperations(0);
  appends->Join();
  waits->Join();
  EXPECT_TRUE(waited.ok()) << waited.ToString();
}

// The disk reported room, and another program took it meanwhile.
TEST_F(LogSpaceTest, SegmentsAllocatedInVainAreRemoved) {
  disk_.SetFreeBytes(4 << 20);
  disk_.AddFault({.action = DiskFault::Action::kNoSpace, .kinds = kDiskAllocate, .skip = 6, .count = 1});
  const std::string value(1000, 'v');
  const std::vector<Update> updates = Updates(1000, value);
  const Status refused = Reserve(updates).status();
  EXPECT_EQ(refused, ErrorCode::kResourceExhausted);
  // An ordinary commit is not affected, and gets its room.
  EXPECT_TRUE(log_->CheckSpace(100 << 10).ok());
  Until([&] { return log_->counters().spare_segments <= 4; });
  EXPECT_GE(FreeOnDisk(), (4u << 20) - 2 * options_.segment_bytes);
  const AppendResult commit = Append(updates, *Reserve(updates));
  EXPECT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline).ok());
  // The numbers of the files have no gap: the next start finds all of them.
  log_.reset();
  log_ = MustOpen(options_, *storage_, &recovered_);
  EXPECT_EQ(CommitTimestamps(ReadAll(*log_, recovered_.redo_start.lsn)), std::vector<uint64_t>{1});
}

TEST_F(LogSpaceTest, ALargeCommitWaitsNoLongerThanItsDeadline) {
  const std::string value(1000, 'v');
  const std::vector<Update> updates = Updates(1000, value);
  EXPECT_EQ(Reserve(updates, RealRuntime().Now()).status(), ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(log_->CheckSpace(100 << 10).ok());
}

TEST_F(LogSpaceTest, AClaimThatWaitsEndsWithTheLog) {
  disk_.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskAllocate, .count = 1});
  const std::string value(1000, 'v');
  EXPECT_EQ(Reserve(Updates(1000, value)).status(), ErrorCode::kUnavailable);
}

// Several commits at a time, small ones and large ones, on a disk that cannot hold all of them at once. Every commit
// that is granted room becomes durable.
TEST_F(LogSpaceTest, GrantedCommitsBecomeDurable) {
  disk_.SetFreeBytes(1 << 20);
  std::atomic<uint64_t> timestamp{0}, granted{0};
  std::vector<std::unique_ptr<Thread>> threads;
  for (int t = 0; t < 4; ++t) {
    threads.push_back(RealRuntime().StartThread("committer", [&, t] {
      const std::string value(t == 0 ? 1000 : kBlockValue, 'v');
      const std::vector<Update> updates = Updates(t == 0 ? 300 : 1, value);
      for (int i = 0; i < (t == 0 ? 6 : 40); ++i) {
        Result<SpaceClaim> claim = Reserve(updates);
        if (!claim.ok()) {
          EXPECT_EQ(claim.status(), ErrorCode::kResourceExhausted) << claim.status().ToString();
          (void)log_->AdvanceRedoStart({.lsn = log_->redo_start().lsn, .stable = {}}, kNoDeadline);
          continue;
        }
        granted.fetch_add(1);
        const AppendResult commit =
            log_->AppendCommit(Timestamp(timestamp.fetch_add(1) + 1), updates, {}, {}, {}, &*claim);
        EXPECT_TRUE(log_->WaitDurable(commit.lsn, kNoDeadline).ok());
      }
    }));
  }
  for (const std::unique_ptr<Thread>& thread : threads) thread->Join();
  EXPECT_EQ(CommitTimestamps(ReadAll(*log_, recovered_.end_lsn)).size(), granted.load());
  EXPECT_GT(granted.load(), 40u);
}

#ifdef DEUT_TEST_POINTS
class LogSpacePointsTest : public LogSpaceTest {
 protected:
  // The ring has room for a whole large commit.
  LogSpacePointsTest() { options_.ring_bytes = 1 << 20; }
  void TearDown() override {
    testing::SetPointHandler({});
    disk_.HoldCompletions(false);
    log_.reset();
  }
};

// A commit of ten segments is in the ring, and the device hangs. The segments that were allocated for it stay until
// it is written.
TEST_F(LogSpacePointsTest, D5TheSegmentsOfWhatTheRingHoldsStay) {
  // Its records fill their blocks, so it claims hardly any surplus that would keep segments by itself.
  const std::string value(kBlockValue, 'v');
  const std::vector<Update> updates = Updates(150, value);
  Result<SpaceClaim> claim = Reserve(updates);
  ASSERT_TRUE(claim.ok()) << claim.status().ToString();
  disk_.SetFreeBytes(0);
  disk_.HoldCompletions(true);
  const AppendResult commit = Append(updates, *std::move(claim));
  std::atomic<int> rounds{0};
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "redo_log.segments.before_stop_check") rounds.fetch_add(1);
  });
  // Each round may remove one spare. When only the number without a demand is left, no further round comes.
  Until([&] { return rounds.load() >= 8 || log_->counters().spare_segments <= 2 * options_.spare_segments; });
  testing::SetPointHandler({});
  EXPECT_GT(log_->counters().untaken_bytes, 300u << 10);
  EXPECT_GE(log_->counters().free_bytes, log_->counters().untaken_bytes);
  disk_.HoldCompletions(false);
  EXPECT_TRUE(log_->WaitDurable(commit.lsn, RealRuntime().Now() + seconds(30)).ok());
}

// The helper has seen one spare too many. Then commits claim all counted spares.
TEST_F(LogSpacePointsTest, D5ASpareIsClaimedBeforeItIsRemoved) {
  const std::string value(1000, 'v'), small(kBlockValue, 's');
  const std::vector<Update> updates = Updates(600, value), one = Updates(1, small);
  std::vector<SpaceClaim> claims;
  uint64_t claimed = 0;
  std::atomic<bool> removing{false}, removed{false};
  testing::SetPointHandler([&](std::string_view name) {
    if (name == "redo_log.segments.before_stop_check" && removing.load()) removed.store(true);
    if (name != "redo_log.segments.before_drop" || removing.exchange(true)) return;
    disk_.SetFreeBytes(0);
    for (Result<SpaceClaim> claim = Reserve(one); claim.ok(); claim = Reserve(one)) {
      claimed += claim->log_bytes();
      claims.push_back(*std::move(claim));
    }
  });
  ASSERT_TRUE(Reserve(updates).ok());  // gives its claim back at once: more spares than are wanted
  Until([&] { return removed.load(); });
  testing::SetPointHandler({});
  EXPECT_GE(log_->counters().segments_removed, 1u);
  EXPECT_GT(claims.size(), 20u);
  EXPECT_GE(log_->counters().free_bytes, claimed);
  AppendResult last;
  for (SpaceClaim& claim : claims) last = Append(one, std::move(claim));
  EXPECT_TRUE(log_->WaitDurable(last.lsn, RealRuntime().Now() + seconds(30)).ok());
}

// The log thread opens a spare between the two looks.
TEST_F(LogSpacePointsTest, D5ASegmentThatIsOpenedMeanwhileIsNotCountedTwice) {
  disk_.SetFreeBytes(0);
  const std::string value(kBlockValue, 'v');
  const std::vector<Update> updates = Updates(1, value);
  const auto append = [&] {
    ASSERT_TRUE(log_->WaitDurable(log_->AppendCommit(Timestamp(++timestamp_), updates).lsn, kNoDeadline).ok());
  };
  const auto room = [&] {
    const RedoLogCounters now = log_->counters();
    return now.free_bytes - now.spare_segments * (options_.segment_bytes - kSegmentHeaderBytes);
  };
  while (room() > options_.segment_bytes / 4) append();
  const uint64_t free_before = log_->counters().free_bytes, segments = log_->counters().segments;
  std::atomic<bool> looking{true};
  testing::SetPointHandler([&](std::string_view name) {
    if (name != "redo_log.space.first_look" || !looking.exchange(false)) return;
    while (log_->counters().segments == segments) append();
  });
  const uint64_t free_seen = log_->counters().free_bytes;
  testing::SetPointHandler({});
  EXPECT_EQ(log_->counters().segments, segments + 1);
  EXPECT_LE(free_seen, free_before);
}
#endif  // DEUT_TEST_POINTS

}  // namespace
}  // namespace deut::tc

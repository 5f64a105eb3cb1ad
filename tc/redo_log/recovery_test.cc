#include "tc/redo_log/recovery.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/random.h"
#include "common/runtime/runtime.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"
#include "tc/redo_log/log_forge.h"

namespace deut::tc {
namespace {

class RecoveryTest : public ::testing::Test {
 protected:
  // A log of one segment: three blocks with a commit each.
  void ThreeCommits() {
    forge_.BeginSegment(1);
    forge_.Record(RecordType::kEpochStart,
                  BytesBody{EncodeEpochStartBody(forge_.state.tc, forge_.state.epoch, forge_.state.nonce)});
    forge_.Record(RecordType::kReserveTimestamps, BytesBody{EncodeTimestampBody(Timestamp(1000))});
    forge_.Block();
    for (uint64_t i = 1; i <= 3; ++i) {
      forge_.CommitRecord(i);
      forge_.Block();
    }
  }

  RecoveredChain Recover() {
    Result<RecoveredChain> chain = RecoverChain(*storage_, "/log");
    EXPECT_TRUE(chain.ok()) << chain.status().ToString();
    return chain.ok() ? std::move(*chain) : RecoveredChain();
  }

  void ExpectEnd(const Cut& cut) { EXPECT_EQ(Recover().end, cut); }

  void ExpectCorruption(const std::string& message) {
    const Status status = RecoverChain(*storage_, "/log").status();
    EXPECT_TRUE(status == ErrorCode::kCorruption) << status.ToString();
    EXPECT_NE(status.ToString().find(message), std::string::npos) << status.ToString();
  }

  std::string At(uint64_t segment, uint64_t offset) {
    return forge_.Path(segment) + " at offset " + std::to_string(offset);
  }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  LogForge forge_{*storage_, "/log"};
};

TEST_F(RecoveryTest, NoFilesIsAnEmptyLog) {
  const RecoveredChain chain = Recover();
  EXPECT_TRUE(chain.empty);
  EXPECT_EQ(chain.end.lsn, kFirstLsn);
  EXPECT_EQ(chain.next_number, 1u);
}

TEST_F(RecoveryTest, AWholeLog) {
  ThreeCommits();
  forge_.BeginSegment(2);
  forge_.Record(RecordType::kKnownDc, BytesBody{EncodeKnownDcBody(DcId(9))});
  forge_.Block();
  forge_.Allocate(3, LogForge::kSegmentBytes);  // a spare
  const RecoveredChain chain = Recover();
  EXPECT_FALSE(chain.empty);
  EXPECT_EQ(chain.end, forge_.Here());
  EXPECT_EQ(chain.checksum, forge_.predecessor);
  EXPECT_EQ(chain.state.tc, TcId(1));
  EXPECT_EQ(chain.state.epoch, TcEpoch(1));
  EXPECT_EQ(chain.state.reserved, Timestamp(1000));
  EXPECT_EQ(chain.state.known_dcs, std::vector<DcId>{DcId(9)});
  EXPECT_EQ(chain.stale, std::vector<uint64_t>{3});
  EXPECT_EQ(chain.next_number, 3u);
  EXPECT_EQ(chain.dropped_bytes, 0u);
  ASSERT_EQ(chain.segments.size(), 2u);
  EXPECT_EQ(chain.segments[0]->end_lsn(), chain.segments[1]->first_lsn());
}

TEST_F(RecoveryTest, ATornTailIsCut) {
  ThreeCommits();
  const Cut cut = forge_.Here();
  forge_.CommitRecord(4, 9000);  // three pages
  const std::string block = forge_.LostBlock(forge_.lsn);
  for (size_t part = 512; part < kBlockHeaderBytes + 9000; part += 512) {
    forge_.Write(cut.segment, cut.offset, block.substr(0, part));
    ExpectEnd(cut);
  }
  forge_.Write(cut.segment, cut.offset, block);
  ExpectEnd(forge_.Here());
}

TEST_F(RecoveryTest, BlocksBehindATornOneAreDroppedUnlessTheyProveIt) {
  ThreeCommits();
  const Cut cut = forge_.Here();
  forge_.CommitRecord(4);
  const std::string torn = forge_.LostBlock(cut.lsn);
  const Lsn behind = forge_.lsn;
  forge_.CommitRecord(5);
  forge_.BlockSubmittedAt(cut.lsn);  // in flight together with the torn block
  RecoveredChain chain = Recover();
  EXPECT_EQ(chain.end, cut);
  EXPECT_EQ(chain.dropped_bytes, 4096u);

  forge_.CommitRecord(6);
  const uint64_t proof = forge_.offset;
  forge_.BlockSubmittedAt(behind);  // submitted when the missing block was durable
  ExpectCorruption(At(cut.segment, cut.offset) + ": the redo log is damaged at LSN " + std::to_string(cut.lsn.value) +
                   ": the block in " + At(cut.segment, proof));
  forge_.Write(cut.segment, cut.offset, torn);
  ExpectEnd(forge_.Here());
}

TEST_F(RecoveryTest, ALaterSegmentProvesDamageToo) {
  ThreeCommits();
  const Cut cut = forge_.Here();
  forge_.CommitRecord(4);
  forge_.LostBlock(cut.lsn);
  forge_.durable = cut.lsn;
  forge_.BeginSegment(2);
  EXPECT_EQ(Recover().stale, std::vector<uint64_t>{2});  // its header was in flight as well
  forge_.durable = forge_.lsn;
  forge_.BeginSegment(2);
  ExpectCorruption(At(2, 0));
}

TEST_F(RecoveryTest, OlderEpochsProveNothing) {
  ThreeCommits();
  const Cut cut = forge_.Here();
  forge_.NewStart(2, cut);
  const Cut end = forge_.Here();
  // Blocks of an earlier process in a file that was allocated ahead of need.
  forge_.state.epoch = TcEpoch(1);
  forge_.lsn = Lsn(forge_.lsn.value + 8000);
  forge_.durable = forge_.lsn;
  forge_.BeginSegment(3);
  const RecoveredChain chain = Recover();
  EXPECT_EQ(chain.end, end);
  EXPECT_EQ(chain.stale, std::vector<uint64_t>{3});
}

// D2: blocks behind a logged cut never come back, even if they arrive after the cut was made.
TEST_F(RecoveryTest, BehindALoggedCutNothingCounts) {
  ThreeCommits();
  const Cut cut = forge_.Here();
  forge_.CommitRecord(4);
  const std::string late = forge_.LostBlock(cut.lsn);
  LogForge again(*storage_, "/log");
  again.state = forge_.state;
  again.predecessor = Recover().checksum;
  again.NewStart(2, cut);
  again.CommitRecord(5);
  again.Block();
  ExpectEnd(again.Here());
  forge_.Write(cut.segment, cut.offset, late);
  const RecoveredChain chain = Recover();
  EXPECT_EQ(chain.end, again.Here());
  EXPECT_EQ(chain.segments[0]->end_lsn(), cut.lsn);
}

TEST_F(RecoveryTest, DamageBeforeALoggedCutIsRefused) {
  ThreeCommits();
  const uint64_t last = forge_.offset - 4096;
  forge_.NewStart(2, forge_.Here());
  forge_.Write(1, last, std::string(512, '\0'));
  ExpectCorruption(At(1, last));
}

TEST_F(RecoveryTest, ACutThatDoesNotFitIsRefused) {
  ThreeCommits();
  const Cut cut = forge_.Here();
  forge_.predecessor ^= 1;
  forge_.NewStart(2, cut);
  ExpectCorruption(At(2, 0) + ": an end of epoch");
}

TEST_F(RecoveryTest, AStartThatDiedBeforeItsFirstBlockLeavesNothing) {
  ThreeCommits();
  const Cut end = forge_.Here();
  const uint32_t checksum = forge_.predecessor;
  forge_.state.epoch = TcEpoch(2);
  forge_.BeginSegment(2);
  const RecoveredChain chain = Recover();
  EXPECT_EQ(chain.end, end);
  EXPECT_EQ(chain.checksum, checksum);
  EXPECT_EQ(chain.state.epoch, TcEpoch(2));  // this epoch is not used again
  EXPECT_EQ(chain.stale, std::vector<uint64_t>{2});
  EXPECT_EQ(chain.next_number, 2u);
}

// D2: nor do they come back when a process in between died after it wrote no more than a header.
TEST_F(RecoveryTest, BehindACutNothingCountsAfterAStartThatLoggedNone) {
  ThreeCommits();
  const Cut cut = forge_.Here();
  const uint32_t checksum = forge_.predecessor;
  forge_.CommitRecord(4);
  const std::string late = forge_.LostBlock(cut.lsn);
  LogForge again(*storage_, "/log");
  again.state = forge_.state;
  again.lsn = again.durable = cut.lsn;
  again.state.epoch = TcEpoch(2);
  again.predecessor = checksum;
  again.BeginSegment(2);

  // The third start, as RedoLog::Open does it.
  RecoveredChain chain = Recover();
  EXPECT_EQ(chain.end.lsn, cut.lsn);
  for (const uint64_t number : chain.stale) ASSERT_TRUE(storage_->Remove(forge_.Path(number)).ok());
  again.state = chain.state;
  again.predecessor = chain.checksum;
  again.NewStart(chain.next_number, chain.end);
  again.CommitRecord(5);
  again.Block();
  ExpectEnd(again.Here());

  forge_.Write(cut.segment, cut.offset, late);
  ExpectEnd(again.Here());
}

TEST_F(RecoveryTest, AMissingFileIsRefused) {
  ThreeCommits();
  for (uint64_t number = 2; number <= 4; ++number) {
    forge_.BeginSegment(number);
    forge_.CommitRecord(number * 10);
    forge_.Block();
  }
  ASSERT_TRUE(storage_->Remove(forge_.Path(3)).ok());
  ExpectCorruption(forge_.Path(3) + " is missing");
}

TEST_F(RecoveryTest, AMissingOldestFileIsRefused) {
  ThreeCommits();
  const Lsn second = forge_.lsn;
  forge_.BeginSegment(2);
  forge_.CommitRecord(10);
  forge_.Block();
  ASSERT_TRUE(storage_->Remove(forge_.Path(1)).ok());
  ExpectCorruption("redo starts at LSN 8");
  // Once redo starts in the second segment, the first may be missing.
  forge_.Record(RecordType::kRedoStart, BytesBody{EncodeRedoStartBody({.lsn = second, .stable = {}})});
  forge_.Block();
  const RecoveredChain chain = Recover();
  EXPECT_EQ(chain.first_lsn, second);
  EXPECT_EQ(chain.state.redo_start.lsn, second);
}

TEST_F(RecoveryTest, ADamagedOldestHeaderIsRefused) {
  forge_.state.redo_start.lsn = Lsn(800);
  forge_.lsn = forge_.durable = Lsn(800);
  forge_.BeginSegment(5);
  forge_.Write(5, 100, "x");
  ExpectCorruption(At(5, 0) + ": the header of the oldest segment");
}

TEST_F(RecoveryTest, ALogThatNeverGotItsFirstHeaderIsEmpty) {
  forge_.Allocate(1, LogForge::kSegmentBytes);
  forge_.Allocate(2, LogForge::kSegmentBytes);
  const RecoveredChain chain = Recover();
  EXPECT_TRUE(chain.empty);
  EXPECT_EQ(chain.stale, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(chain.next_number, 1u);
  // But not if anything was ever durable.
  ThreeCommits();
  forge_.Write(1, 100, "x");
  ExpectCorruption(At(1, 0) + ": the redo log is damaged at LSN 8");
}

// A spare holds no block of the log. If its beginning shows that it was the log's, the start removes it. Otherwise
// nobody may remove it, but it does not stop the store for ever. The error says that it is not part of the log, and
// that the operator may move it away.
TEST_F(RecoveryTest, ATornSpareIsNothingToTheLog) {
  ThreeCommits();
  const Cut end = forge_.Here();
  forge_.BeginSegment(2);
  forge_.Write(2, kBlockHeaderBytes, "x");
  ASSERT_TRUE(storage_->Rename(forge_.Path(2), forge_.Path(3)).ok());
  forge_.Allocate(2, LogForge::kSegmentBytes);
  ExpectEnd(end);
  EXPECT_EQ(Recover().stale, (std::vector<uint64_t>{2, 3}));
}

TEST_F(RecoveryTest, ASpareWhoseFirstSectorIsDamagedMayBeMovedAway) {
  ThreeCommits();
  const Cut end = forge_.Here();
  // It was segment 1 in an earlier use, and still holds its blocks.
  const auto used = storage_->Open(forge_.Path(1), {});
  std::string bytes(LogForge::kSegmentBytes, '\0');
  ASSERT_TRUE((*used)->Read(0, bytes.data(), bytes.size()).ok());
  for (const uint64_t spare : {2, 3}) {
    forge_.Allocate(spare, LogForge::kSegmentBytes);
    forge_.Write(spare, 0, bytes);
  }
  ExpectEnd(end);
  forge_.Write(3, 0, std::string(512, 'x'));
  ExpectCorruption(At(3, 0) +
                   ": the file does not begin as a segment of a redo log does; nothing was changed. The log ends");
  ExpectCorruption("at LSN " + std::to_string(end.lsn.value) + " in " + forge_.Path(1));
  ExpectCorruption("move it out of the folder; nothing is lost with it");
  forge_.Write(2, 0, std::string(512, 'x'));
  ExpectCorruption("move it and the later segments, up to " + forge_.Path(3) + ", out of the folder");
  for (const uint64_t spare : {3, 2}) ASSERT_TRUE(storage_->Remove(forge_.Path(spare)).ok());
  ExpectEnd(end);
}

TEST_F(RecoveryTest, ASegmentInUseWhoseFirstSectorIsDamagedIsNotCalledASpare) {
  ThreeCommits();
  forge_.BeginSegment(2);
  forge_.CommitRecord(10);
  forge_.Block();  // acknowledged, though no later block says that it is durable
  forge_.Write(2, 0, std::string(512, 'x'));
  ExpectCorruption("It may be a segment in use whose beginning is damaged: 4096 bytes in blocks of the log are in " +
                   forge_.Path(2));
  forge_.CommitRecord(11);
  forge_.Block();
  ExpectCorruption(At(2, 0) + ": the file does not begin as a segment");
  ExpectCorruption("Besides, " + At(1, uint64_t{5} * 4096) + ": the redo log is damaged");
}

TEST_F(RecoveryTest, ATruncatedFileIsSeen) {
  ThreeCommits();
  const uint64_t last = forge_.offset - 4096;
  forge_.NewStart(2, forge_.Here());
  const auto file = storage_->Open(forge_.Path(1), {.writable = true});
  ASSERT_TRUE((*file)->Truncate(last + 100).ok());
  ExpectCorruption(At(1, last));
}

TEST_F(RecoveryTest, ABlockOfAnotherStartDoesNotContinueASegment) {
  ThreeCommits();
  const Cut cut = forge_.Here();
  forge_.state.nonce += 1;
  forge_.CommitRecord(4);
  forge_.BlockSubmittedAt(cut.lsn);
  ExpectEnd(cut);
}

TEST_F(RecoveryTest, ABlockOfAnotherComponentIsRefused) {
  ThreeCommits();
  forge_.state.tc = TcId(2);
  forge_.BeginSegment(2);
  ExpectCorruption(At(2, 0) + ": a block of another transaction component, 2 in place of 1");
}

TEST_F(RecoveryTest, WholeBlocksWithWrongRecordsAreRefused) {
  ThreeCommits();
  const Cut here = forge_.Here();
  forge_.CommitRecord(4);
  forge_.payload[8 + 24] = 77;  // kind of the update
  forge_.BlockSubmittedAt(here.lsn);
  ExpectCorruption(At(here.segment, here.offset) + ": the block is whole, but: redo log record at LSN " +
                   std::to_string(here.lsn.value) + ": unknown update kind 77");
}

TEST_F(RecoveryTest, EpochRecordsStandWhereTheyBelong) {
  ThreeCommits();
  const Cut here = forge_.Here();
  forge_.Record(RecordType::kEndOfEpoch, BytesBody{EncodeCutBody(here)});
  forge_.Block();
  ExpectCorruption(At(here.segment, here.offset) + ": the block is whole, but: an end of epoch out of place");
}

TEST(RecoveryOnAFaultyDisk, AReadErrorIsNoEndOfTheLog) {
  FaultyDisk disk(RealRuntime(), 1);
  const std::unique_ptr<Storage> storage = disk.Mount();
  LogForge forge(*storage, "/log");
  forge.BeginSegment(1);
  for (uint64_t i = 1; i < 10; ++i) {
    forge.CommitRecord(i);
    forge.Block();
  }
  disk.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskRead, .path_contains = "log-", .predicate = {}});
  const Status status = RecoverChain(*storage, "/log").status();
  EXPECT_TRUE(status == ErrorCode::kIoError) << status.ToString();
}

// Random damage anywhere is refused or cut off. It is never accepted as whole, and never causes a crash.
TEST_F(RecoveryTest, RandomDamage) {
  ThreeCommits();
  forge_.BeginSegment(2);
  for (uint64_t i = 10; i < 15; ++i) {
    forge_.CommitRecord(i, 5000);
    forge_.Block();
  }
  const Cut end = forge_.Here();
  Random random(99);
  int refused = 0, cut = 0;
  for (int round = 0; round < 300; ++round) {
    const uint64_t segment = 1 + random.Below(2);
    const uint64_t offset = random.Below(segment == 1 ? uint64_t{5} * 4096 : end.offset);
    const auto file = storage_->Open(forge_.Path(segment), {.writable = true});
    char before = 0;
    ASSERT_TRUE((*file)->Read(offset, &before, 1).ok());
    const char after = static_cast<char>(before ^ (1 << random.Below(8)));
    ASSERT_TRUE((*file)->Write(offset, &after, 1).ok());
    const Result<RecoveredChain> chain = RecoverChain(*storage_, "/log");
    if (chain.ok()) {
      ++cut;
      EXPECT_LT(chain->end.lsn, end.lsn) << "segment " << segment << " offset " << offset;
    } else {
      ++refused;
      EXPECT_TRUE(chain.status() == ErrorCode::kCorruption) << chain.status().ToString();
    }
    ASSERT_TRUE((*file)->Write(offset, &before, 1).ok());
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(cut, 10);  // the last block: damage there cannot be told from a torn write
  ExpectEnd(end);
}

}  // namespace
}  // namespace deut::tc

#include "tc/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/io/faulty_disk.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "tc/redo_log/block_format.h"
#include "tc/redo_log/log_forge.h"
#include "tc/redo_log/log_record.h"
#include "tc/redo_log/log_test_util.h"
#include "tc/redo_log/record_codec.h"
#include "tc/redo_log/recovery.h"
#include "tc/redo_log/redo_log.h"
#include "tc/verify/log_on_disk.h"

namespace deut::tc {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

LogReport Verify(Storage& storage, const std::string& directory) {
  const Result<LogReport> report = VerifyLog(storage, directory, {});
  EXPECT_TRUE(report.ok()) << report.status().ToString();
  return report.ok() ? *report : LogReport();
}

class VerifyTest : public ::testing::Test {
 protected:
  LogReport Look() { return Verify(disk_.storage(), LogOnDisk::kDirectory); }
  std::string Text() { return ReportText(Look()); }

  LogOnDisk disk_;
};

TEST_F(VerifyTest, LogsOfSeveralLivesAreClean) {
  for (uint64_t life = 1; life <= 5; ++life) {
    disk_.Live(life < 3 ? 1 : 3);
    const LogReport report = Look();
    EXPECT_TRUE(report.clean()) << ReportText(report);
    EXPECT_EQ(report.state.epoch, TcEpoch(life));
    EXPECT_EQ(report.state.known_dcs, std::vector<DcId>{DcId(7)});
    EXPECT_GE(report.counts.of(RecordType::kCommit).count, 4u);
    EXPECT_GE(report.counts.of(RecordType::kChunk).count, 1u);
    EXPECT_GE(report.counts.orphans, 1u);
    EXPECT_EQ(report.counts.behind_blocks, 0u);
    EXPECT_GT(report.unproven_bytes, 0u);
    EXPECT_EQ(report.notes, std::vector<std::string>());
    EXPECT_THAT(ReportText(report),
                AllOf(StartsWith("transaction component "), HasSubstr("\nredo starts at LSN "),
                      HasSubstr("\ntc verify: clean, "),
                      HasSubstr(Concat("\nthe log ends at LSN ", report.end->lsn.value, ": /tc/log-"))));
  }
  // What a start finds is what was said.
  const Lsn end = Look().end->lsn;
  RecoveredLog recovered;
  const auto log = MustOpen(LogOnDisk::Options(), disk_.storage(), &recovered);
  EXPECT_EQ(recovered.end_lsn, end);
}

TEST_F(VerifyTest, ALogInUseIsRefused) {
  RecoveredLog recovered;
  const auto log = MustOpen(LogOnDisk::Options(), disk_.storage(), &recovered);
  const Status refused = VerifyLog(disk_.storage(), LogOnDisk::kDirectory, {}).status();
  EXPECT_TRUE(refused == ErrorCode::kUnavailable) << refused.ToString();
  EXPECT_THAT(refused.ToString(), EndsWith("; stop the transaction component first"));
}

TEST_F(VerifyTest, WhatIsNoLogDirectoryIsRefused) {
  EXPECT_TRUE(VerifyLog(disk_.storage(), "/nowhere", {}).status() == ErrorCode::kNotFound);
  ASSERT_TRUE(disk_.storage().CreateDirectory("/store/tc").ok());
  const Status refused = VerifyLog(disk_.storage(), "/store", {}).status();
  EXPECT_TRUE(refused == ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.ToString(), EndsWith("that of an embedded store is /store/tc"));
}

TEST_F(VerifyTest, ACopyAndStrangeFilesAreNoted) {
  disk_.Fill();
  ASSERT_TRUE(disk_.storage().Remove("/tc/LOCK").ok());
  ASSERT_TRUE(disk_.storage().Open("/tc/notes.txt", {.create = true, .writable = true}).ok());
  const LogReport report = Look();
  EXPECT_TRUE(report.clean());
  EXPECT_THAT(report.notes, ::testing::ElementsAre("/tc: there is no lock file: this is a copy",
                                                   "/tc/notes.txt: is not of the transaction component"));
  EXPECT_FALSE(*disk_.storage().Exists("/tc/LOCK"));
}

TEST_F(VerifyTest, NoLogIsClean) {
  ASSERT_TRUE(disk_.storage().CreateDirectory("/tc").ok());
  ASSERT_TRUE(disk_.storage().Lock("/tc/LOCK").ok());
  EXPECT_THAT(Text(), AllOf(StartsWith("there is no log: "), HasSubstr("\ntc verify: clean, 0 commits")));
}

TEST_F(VerifyTest, AMissingSegmentIsNamed) {
  disk_.Fill();
  const std::vector<std::string> segments = disk_.Segments();
  ASSERT_GT(segments.size(), 3u);
  ASSERT_TRUE(disk_.storage().Remove(segments[1]).ok());
  EXPECT_THAT(Text(), AllOf(HasSubstr("DAMAGED log: " + segments[1] + " is missing"),
                            EndsWith("tc verify: DAMAGED, 1 finding\n")));
}

// Those below the redo start may be gone at any time; the one with it may not.
TEST_F(VerifyTest, AMissingOldestSegmentIsNoticed) {
  disk_.Fill();
  const Lsn redo_start = Look().state.redo_start.lsn;
  LogReport report = Look();
  for (const std::string& path : disk_.Segments()) {
    EXPECT_LE(report.first_lsn, redo_start);
    ASSERT_TRUE(disk_.storage().Remove(path).ok());
    report = Look();
    if (!report.clean()) break;
  }
  EXPECT_GT(report.first_lsn, redo_start);
  EXPECT_THAT(ReportText(report), HasSubstr(Concat(", but redo starts at LSN ", redo_start.value)));
}

// A segment of another log in place of one: its number is right, and nothing else.
TEST_F(VerifyTest, AForeignSegmentIsNamed) {
  disk_.Fill();
  LogOnDisk other;
  other.Fill();
  const std::vector<std::string> segments = disk_.Segments();
  for (const std::string& path : segments) {
    if (!*other.storage().Exists(path)) continue;
    const auto from = std::move(other.storage().Open(path, {}).value());
    const auto to = std::move(disk_.storage().Open(path, {.writable = true}).value());
    std::string theirs(from->Size().value(), '\0'), ours(to->Size().value(), '\0');
    ASSERT_TRUE(from->Read(0, theirs.data(), theirs.size()).ok() && to->Read(0, ours.data(), ours.size()).ok());
    ASSERT_TRUE(to->Write(0, theirs.data(), theirs.size()).ok());
    const LogReport report = Look();
    const bool spare = theirs.substr(0, 4) == std::string(4, '\0');
    EXPECT_EQ(report.clean(), spare) << path << "\n" << ReportText(report);
    ASSERT_TRUE(to->Write(0, ours.data(), ours.size()).ok());
  }
  EXPECT_TRUE(Look().clean());
}

// Which bytes of which segment belong to the chain.
class Places final : public ChainVisitor {
 public:
  struct Place {
    uint64_t segment, offset, bytes;
    bool Holds(uint64_t in_segment, uint64_t at) const {
      return segment == in_segment && at >= offset && at < offset + bytes;
    }
  };
  void OnSegment(const BlockHeader& header, const LogState& /*repeated*/) override { OnBlock(header); }
  void OnBlock(const BlockHeader& header) override {
    all.push_back({header.segment, header.offset, header.block_bytes});
  }
  void OnRecord(const LogRecord& /*record*/) override {}
  void OnEnd(const Cut& /*end*/, const Status& /*why*/) override {}
  void OnBehind(const BlockHeader& /*header*/) override {}
  std::vector<Place> all;
};

// A flipped bit in every byte of every file: in the chain it is found, or the block it lies in is one of the last, of which nothing says that it
// was durable: then the log ends before it. Elsewhere it changes nothing.
TEST_F(VerifyTest, AFlippedBitAnywhere) {
  disk_.Fill();
  const LogReport before = Look();
  ASSERT_TRUE(before.clean()) << ReportText(before);
  Places places;
  const Result<RecoveredChain> chain = RecoverChain(disk_.storage(), LogOnDisk::kDirectory, &places);
  ASSERT_TRUE(chain.ok());
  const auto unproven = [&](uint64_t segment, uint64_t offset) {
    for (const UnprovenBlock& block : chain->unproven) {
      if (Places::Place{block.segment, block.offset, block.bytes}.Holds(segment, offset)) return true;
    }
    return false;
  };
  const char* const given = std::getenv("DEUT_VERIFY_STEP");
  const uint64_t step = given == nullptr ? 7 : std::strtoull(given, nullptr, 10);
  uint64_t found = 0, cut = 0, elsewhere = 0;
  for (const std::string& path : disk_.Segments()) {
    uint64_t number = 0;
    ASSERT_TRUE(ParseSegmentName(path.substr(path.rfind('/') + 1), &number));
    for (uint64_t offset = number % step; offset < LogOnDisk::Options().segment_bytes; offset += step) {
      disk_.Flip(path, offset, static_cast<int>(offset % 8));
      const LogReport report = Look();
      const bool in_chain =
          std::ranges::any_of(places.all, [&](const auto& each) { return each.Holds(number, offset); });
      if (!in_chain) {
        ++elsewhere;
        ASSERT_TRUE(report.clean() && report.end == before.end) << path << " at " << offset << "\n"
                                                                << ReportText(report);
      } else if (!report.clean()) {
        ++found;
        ASSERT_THAT(report.findings[0].text, StartsWith("/tc/log-"));
      } else {
        ++cut;
        ASSERT_TRUE(unproven(number, offset)) << path << " at " << offset << "\n" << ReportText(report);
        ASSERT_LT(report.end->lsn, before.end->lsn);
      }
      disk_.Flip(path, offset, static_cast<int>(offset % 8));
    }
  }
  EXPECT_GT(found, 1000u);
  EXPECT_GT(cut, 100u);
  EXPECT_GT(elsewhere, 100u);
  EXPECT_EQ(ReportText(Look()), ReportText(before));
}

TEST(VerifyChangesNothing, WhateverItFinds) {
  FaultyDisk disk(RealRuntime(), 1);
  const std::unique_ptr<Storage> storage = disk.Mount();
  RecoveredLog recovered;
  std::string segment;
  {
    const auto log = MustOpen(LogOnDisk::Options(), *storage, &recovered);
    for (uint64_t i = 1; i <= 5; ++i) ASSERT_TRUE(log->WaitDurable(Commit(*log, i).lsn, kNoDeadline).ok());
  }
  const uint64_t changes = disk.counts().changing;
  EXPECT_TRUE(Verify(*storage, LogOnDisk::kDirectory).clean());
  EXPECT_EQ(disk.counts().changing, changes);
  disk.AddFault({.action = DiskFault::Action::kIoError, .kinds = kDiskRead, .path_contains = "log-", .predicate = {}});
  const Status unreadable = VerifyLog(*storage, LogOnDisk::kDirectory, {}).status();
  EXPECT_TRUE(unreadable == ErrorCode::kIoError) << unreadable.ToString();
}

// Logs whose blocks are right and whose records contradict each other.
class VerifyRecordsTest : public ::testing::Test {
 protected:
  VerifyRecordsTest() {
    forge_.BeginSegment(1);
    forge_.Record(RecordType::kEpochStart,
                  BytesBody{EncodeEpochStartBody(forge_.state.tc, forge_.state.epoch, forge_.state.nonce)});
    Reserve(100);
    forge_.Record(RecordType::kKnownDc, BytesBody{EncodeKnownDcBody(DcId(9))});
    forge_.state.known_dcs = {DcId(9)};
    forge_.Block();
  }

  void Reserve(uint64_t bound) {
    forge_.Record(RecordType::kReserveTimestamps, BytesBody{EncodeTimestampBody(Timestamp(bound))});
    forge_.state.reserved = Timestamp(bound);
  }
  void LowWater(uint64_t timestamp) {
    forge_.Record(RecordType::kLowWater, BytesBody{EncodeTimestampBody(Timestamp(timestamp))});
    forge_.state.low_water = Timestamp(timestamp);
  }
  // Returns its LSN.
  Lsn Transaction(RecordType type, uint64_t timestamp, uint32_t sequence, std::vector<Lsn> chunks = {}) {
    const Lsn lsn(forge_.lsn.value + forge_.payload.size());
    const Update update = Put(sequence, "k", "v");
    forge_.Record(
        type,
        TransactionBody{
            .timestamp = Timestamp(timestamp), .epoch = forge_.state.epoch, .updates = {&update, 1}, .chunks = chunks});
    return lsn;
  }
  Lsn Commit(uint64_t timestamp) { return Transaction(RecordType::kCommit, timestamp, 1); }
  void Redo(Lsn lsn, std::vector<DcPosition> stable) {
    forge_.state.redo_start = {.lsn = lsn, .stable = std::move(stable)};
    forge_.Record(RecordType::kRedoStart, BytesBody{EncodeRedoStartBody(forge_.state.redo_start)});
  }

  // Ends the block, and looks.
  void ExpectClean() {
    forge_.Block();
    const LogReport report = Verify(*storage_, "/log");
    EXPECT_TRUE(report.clean()) << ReportText(report);
  }
  void ExpectFinding(const std::string& rule, const std::string& text) {
    if (!forge_.payload.empty()) forge_.Block();
    const LogReport report = Verify(*storage_, "/log");
    EXPECT_EQ(report.damages, 1u) << ReportText(report);
    EXPECT_THAT(ReportText(report),
                AllOf(HasSubstr("\nDAMAGED records (rule " + rule + "): /log/log-"), HasSubstr(text)));
    // A start does not ask this of the records.
    EXPECT_TRUE(RecoverChain(*storage_, "/log").ok());
  }

  std::unique_ptr<Storage> storage_ = NewMemoryStorage(RealRuntime());
  LogForge forge_{*storage_, "/log"};
};

TEST_F(VerifyRecordsTest, D3TimestampsAreReservedBeforeTheyAreUsed) {
  Commit(99);
  ExpectClean();
  const Lsn lsn = Commit(100);
  Reserve(200);
  ExpectFinding("D3",
                Concat("the transaction at LSN ", lsn.value, " has timestamp 100, only those below 100 are reserved"));
}

TEST_F(VerifyRecordsTest, D3ALifeDrawsFromItsOwnReservation) {
  Commit(50);
  ExpectClean();
  forge_.NewLife(2, forge_.Here());
  Reserve(200);
  Commit(100);
  ExpectClean();
  const Lsn lsn = Commit(99);
  ExpectFinding("D3",
                Concat("the transaction at LSN ", lsn.value, " has timestamp 99, those of its life begin at 100"));
}

TEST_F(VerifyRecordsTest, D3NoTimestampComesTwice) {
  Commit(50);
  Commit(51);
  ExpectClean();
  const Lsn lsn = Commit(50);
  ExpectFinding("D3", Concat("the commit at LSN ", lsn.value, " has timestamp 50, as one before it"));
}

TEST_F(VerifyRecordsTest, D3ReservationsRise) {
  Reserve(100);
  ExpectFinding("D3", "reserves timestamps below 100, which were before: 100");
}

TEST_F(VerifyRecordsTest, D3RecordsNameTheEpochOfTheirLife) {
  forge_.state.epoch = TcEpoch(7);
  Commit(50);
  forge_.state.epoch = TcEpoch(1);
  ExpectFinding("D3", "is of epoch 7 in a block of epoch 1");
}

TEST_F(VerifyRecordsTest, D3AHeaderRepeatsTheState) {
  LowWater(10);
  forge_.Block();
  forge_.BeginSegment(2);
  Commit(60);
  ExpectClean();
  forge_.state.reserved = Timestamp(90);
  forge_.BeginSegment(3);
  Commit(61);
  ExpectFinding("D3", "the header's reservation of timestamps is not what the records before it say");
}

TEST_F(VerifyRecordsTest, D3ALifeBeginsWithItsStart) {
  const Cut cut = forge_.Here();
  forge_.state.epoch = TcEpoch(2);
  forge_.state.nonce += 1;
  forge_.BeginSegment(2);
  forge_.Record(RecordType::kEndOfEpoch, BytesBody{EncodeCutBody(cut)});
  Reserve(200);
  ExpectFinding("D3", "the life of epoch 2 begins with other records than its start");
}

TEST_F(VerifyRecordsTest, D2ACutNamesWhereTheLogEnded) {
  Cut cut = forge_.Here();
  cut.offset += 4096;
  forge_.NewLife(2, cut);
  ExpectFinding("D2", "the log before it ends in log-00000000000000000001 at offset 8192");
}

TEST_F(VerifyRecordsTest, D2DurabilityDoesNotGoBack) {
  Commit(50);
  forge_.Block();
  Commit(51);
  forge_.BlockSubmittedAt(kFirstLsn);
  ExpectFinding("D2", "the durable LSN goes back");
}

TEST_F(VerifyRecordsTest, D4ACommitHasItsChunks) {
  const Lsn chunk = Transaction(RecordType::kChunk, 50, 1);
  const Lsn other = Transaction(RecordType::kChunk, 51, 1);
  Transaction(RecordType::kCommit, 50, 2, {chunk});
  ExpectClean();
  const Lsn lsn = Transaction(RecordType::kCommit, 52, 2, {other});
  ExpectFinding("D4", Concat("the commit at LSN ", lsn.value, " names LSN ", other.value));
}

TEST_F(VerifyRecordsTest, D4SequencesRiseThroughTheChunks) {
  const Lsn chunk = Transaction(RecordType::kChunk, 50, 2);
  Transaction(RecordType::kCommit, 50, 2, {chunk});
  ExpectFinding("D4", "the sequences of its chunks do not rise");
}

TEST_F(VerifyRecordsTest, X1CommitsBelowLowWaterComeBeforeIt) {
  Commit(50);
  LowWater(51);
  Commit(51);
  ExpectClean();
  Commit(49);
  ExpectFinding("X1", "has timestamp 49, a record before it says low-water 51");
}

TEST_F(VerifyRecordsTest, X1LowWaterIsReserved) {
  LowWater(100);
  ExpectClean();
  LowWater(101);
  ExpectFinding("X1", "says low-water 101");
}

TEST_F(VerifyRecordsTest, X5ASegmentOfTheSameLifeHasItsNonce) {
  forge_.state.nonce += 1;
  forge_.BeginSegment(2);
  Commit(60);
  ExpectFinding("X5", "a segment of epoch 1 with another nonce");
}

TEST_F(VerifyRecordsTest, S2RedoStartPassesNoUnfinishedCommit) {
  const Lsn first = Commit(50);
  const Lsn second = Commit(51);
  forge_.Block();
  const Position stable{first, UINT32_MAX};
  Redo(second, {{.dc = DcId(9), .stable = stable}});
  ExpectClean();
  Commit(52);
  const Lsn third = Commit(53);
  Redo(third, {{.dc = DcId(9), .stable = stable}});
  ExpectFinding("S2", Concat("redo starts at LSN ", third.value, ", and the commit at LSN ", second.value,
                             " began before that, but data component 9 has only ", first.value, "/4294967295 stable"));
}

TEST_F(VerifyRecordsTest, S2RedoStartPassesNoFirstRecord) {
  const Lsn chunk = Transaction(RecordType::kChunk, 50, 1);
  const Lsn first = Commit(51);
  const Lsn second = Commit(52);
  Redo(second, {{.dc = DcId(9), .stable = Position{first, UINT32_MAX}}});
  ExpectClean();
  const Lsn lsn = Transaction(RecordType::kCommit, 50, 2, {chunk});
  ExpectFinding(
      "S2", Concat("redo starts at LSN ", second.value, ", and the commit at LSN ", lsn.value, " began before that"));
}

TEST_F(VerifyRecordsTest, S2AStablePositionInsideACommitLeavesItUnfinished) {
  Commit(50);
  const Lsn lsn = Commit(51);
  const Lsn next = Commit(52);
  Redo(next, {{.dc = DcId(9), .stable = Position{lsn, 1}}});
  ExpectFinding("S2", Concat("and the commit at LSN ", lsn.value, " began before that"));
}

TEST_F(VerifyRecordsTest, S2RedoStartIsWhereARecordBegins) {
  const Lsn first = Commit(50);
  Redo(Lsn(first.value + 8), {});
  ExpectFinding("S2", Concat("names LSN ", first.value + 8, ", where no record before it begins"));
}

TEST_F(VerifyRecordsTest, S2NothingGoesBack) {
  const Lsn first = Commit(50);
  const Lsn second = Commit(51);
  const Lsn third = Commit(52);
  Redo(second, {{.dc = DcId(9), .stable = Position{first, UINT32_MAX}}});
  Redo(third, {{.dc = DcId(9), .stable = Position{second, UINT32_MAX}}});
  ExpectClean();
  Redo(third, {{.dc = DcId(9), .stable = Position{second, 7}}});
  Redo(third, {{.dc = DcId(9), .stable = Position{third, UINT32_MAX}}});
  forge_.Block();
  Redo(second, {{.dc = DcId(9), .stable = Position{third, UINT32_MAX}}});
  forge_.Block();
  const std::string text = ReportText(Verify(*storage_, "/log"));
  EXPECT_THAT(
      text,
      AllOf(HasSubstr(Concat(" at ", second.value, "/7, the one before it had it at ", second.value, "/4294967295")),
            HasSubstr(Concat("goes back from LSN ", third.value, " to ", second.value))));
}

TEST_F(VerifyRecordsTest, S2PositionsAreOfKnownComponentsAndOfThePast) {
  const Lsn first = Commit(50);
  Redo(first, {{.dc = DcId(8), .stable = Position{}}});
  ExpectFinding("S2", "names data component 8, which is not of this log");
  forge_.state.redo_start = {};
}

TEST_F(VerifyRecordsTest, S2NoPositionLiesBeyondTheRecord) {
  const Lsn first = Commit(50);
  Redo(first, {{.dc = DcId(9), .stable = Position{Lsn(1'000'000), 1}}});
  ExpectFinding("S2", "has data component 9 at 1000000/1, which lies beyond it");
}

TEST_F(VerifyRecordsTest, FindingsAreBounded) {
  for (uint64_t i = 0; i < 20; ++i) Commit(500);
  forge_.Block();
  const Result<LogReport> report = VerifyLog(*storage_, "/log", {.max_findings = 3});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->findings.size(), 3u);
  EXPECT_EQ(report->damages, 39u);
  EXPECT_THAT(ReportText(*report),
              AllOf(HasSubstr("\nand 36 more\n"), EndsWith("\ntc verify: DAMAGED, 39 findings\n")));
}

// A torn tail is no damage; what proves that it had been durable makes it damage, and both places are named.
TEST_F(VerifyRecordsTest, ATornTailAndDamageAreToldApart) {
  Commit(50);
  forge_.Block();
  const Cut end = forge_.Here();
  Commit(51);
  forge_.LostBlock(end.lsn);
  const Lsn lost = forge_.lsn;
  Commit(52);
  forge_.BlockSubmittedAt(end.lsn);
  LogReport report = Verify(*storage_, "/log");
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.end, end);
  EXPECT_EQ(report.counts.behind_blocks, 1u);
  EXPECT_THAT(ReportText(report),
              AllOf(HasSubstr(Concat("the log ends at LSN ", end.lsn.value, ": ", forge_.Path(1), " at offset ",
                                     end.offset, ": no block begins here\n")),
                    HasSubstr("behind its end: 1 whole blocks of 4096 bytes, which nobody was told of")));
  Commit(53);
  forge_.BlockSubmittedAt(lost);
  report = Verify(*storage_, "/log");
  EXPECT_EQ(report.damages, 1u);
  EXPECT_THAT(ReportText(report), HasSubstr(Concat("\nDAMAGED log: ", forge_.Path(1), " at offset ", end.offset,
                                                   ": the redo log is damaged at LSN ", end.lsn.value)));
}

}  // namespace
}  // namespace deut::tc

// Each rule about the records of a log: one log that keeps it, one that does not.
#include "tc/verify/chain_audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/concat.h"
#include "common/base/ids.h"
#include "tc/log_format/block_format.h"
#include "tc/log_format/log_record.h"
#include "tc/log_format/record_codec.h"
#include "tc/verify/verify_fixture.h"

namespace deut::tc {
namespace {

using ChainAuditTest = VerifyRecordsTest;

TEST_F(ChainAuditTest, D3TimestampsAreReservedBeforeTheyAreUsed) {
  Commit(99);
  ExpectClean();
  const Lsn lsn = Commit(100);
  Reserve(200);
  ExpectFinding("D3",
                Concat("the transaction at LSN ", lsn.value, " has timestamp 100, only those below 100 are reserved"));
}

TEST_F(ChainAuditTest, D3AStartDrawsFromItsOwnReservation) {
  Commit(50);
  ExpectClean();
  forge_.NewStart(2, forge_.Here());
  Reserve(200);
  Commit(100);
  ExpectClean();
  const Lsn lsn = Commit(99);
  ExpectFinding("D3",
                Concat("the transaction at LSN ", lsn.value, " has timestamp 99, those of its epoch begin at 100"));
}

TEST_F(ChainAuditTest, D3NoTimestampComesTwice) {
  Commit(50);
  Commit(51);
  ExpectClean();
  const Lsn lsn = Commit(50);
  ExpectFinding("D3", Concat("the commit at LSN ", lsn.value, " has timestamp 50, as one before it"));
}

TEST_F(ChainAuditTest, D3ReservationsRise) {
  Reserve(100);
  ExpectFinding("D3", "reserves timestamps below 100, which were before: 100");
}

TEST_F(ChainAuditTest, D3RecordsNameTheEpochOfTheirStart) {
  forge_.state.epoch = TcEpoch(7);
  Commit(50);
  forge_.state.epoch = TcEpoch(1);
  ExpectFinding("D3", "is of epoch 7 in a block of epoch 1");
}

TEST_F(ChainAuditTest, D3AHeaderRepeatsTheState) {
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

TEST_F(ChainAuditTest, D3AnEpochBeginsWithItsStartRecords) {
  const Cut cut = forge_.Here();
  forge_.state.epoch = TcEpoch(2);
  forge_.state.nonce += 1;
  forge_.BeginSegment(2);
  forge_.Record(RecordType::kEndOfEpoch, BytesBody{EncodeCutBody(cut)});
  Reserve(200);
  ExpectFinding("D3", "epoch 2 begins with other records than its start");
}

TEST_F(ChainAuditTest, D2ACutNamesWhereTheLogEnded) {
  Cut cut = forge_.Here();
  cut.offset += 4096;
  forge_.NewStart(2, cut);
  ExpectFinding("D2", "the log before it ends in log-00000000000000000001 at offset 8192");
}

TEST_F(ChainAuditTest, D2DurabilityDoesNotGoBack) {
  Commit(50);
  forge_.Block();
  Commit(51);
  forge_.BlockSubmittedAt(kFirstLsn);
  ExpectFinding("D2", "the durable LSN goes back");
}

TEST_F(ChainAuditTest, D4ACommitHasItsChunks) {
  const Lsn chunk = Transaction(RecordType::kChunk, 50, 1);
  const Lsn other = Transaction(RecordType::kChunk, 51, 1);
  Transaction(RecordType::kCommit, 50, 2, {chunk});
  ExpectClean();
  const Lsn lsn = Transaction(RecordType::kCommit, 52, 2, {other});
  ExpectFinding("D4", Concat("the commit at LSN ", lsn.value, " names LSN ", other.value));
}

TEST_F(ChainAuditTest, D4SequencesRiseThroughTheChunks) {
  const Lsn chunk = Transaction(RecordType::kChunk, 50, 2);
  Transaction(RecordType::kCommit, 50, 2, {chunk});
  ExpectFinding("D4", "the sequences of its chunks do not rise");
}

TEST_F(ChainAuditTest, X1CommitsBelowLowWaterComeBeforeIt) {
  Commit(50);
  LowWater(51);
  Commit(51);
  ExpectClean();
  Commit(49);
  ExpectFinding("X1", "has timestamp 49, a record before it says low-water 51");
}

TEST_F(ChainAuditTest, X1LowWaterIsReserved) {
  LowWater(100);
  ExpectClean();
  LowWater(101);
  ExpectFinding("X1", "says low-water 101");
}

TEST_F(ChainAuditTest, X5ASegmentOfTheSameStartHasItsNonce) {
  forge_.state.nonce += 1;
  forge_.BeginSegment(2);
  Commit(60);
  ExpectFinding("X5", "a segment of epoch 1 with another nonce");
}

TEST_F(ChainAuditTest, S2RedoStartPassesNoUnfinishedCommit) {
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

TEST_F(ChainAuditTest, S2RedoStartPassesNoFirstRecord) {
  const Lsn chunk = Transaction(RecordType::kChunk, 50, 1);
  const Lsn first = Commit(51);
  const Lsn second = Commit(52);
  Redo(second, {{.dc = DcId(9), .stable = Position{first, UINT32_MAX}}});
  ExpectClean();
  const Lsn lsn = Transaction(RecordType::kCommit, 50, 2, {chunk});
  ExpectFinding(
      "S2", Concat("redo starts at LSN ", second.value, ", and the commit at LSN ", lsn.value, " began before that"));
}

TEST_F(ChainAuditTest, S2AStablePositionInsideACommitLeavesItUnfinished) {
  Commit(50);
  const Lsn lsn = Commit(51);
  const Lsn next = Commit(52);
  Redo(next, {{.dc = DcId(9), .stable = Position{lsn, 1}}});
  ExpectFinding("S2", Concat("and the commit at LSN ", lsn.value, " began before that"));
}

TEST_F(ChainAuditTest, S2RedoStartIsWhereARecordBegins) {
  const Lsn first = Commit(50);
  Redo(Lsn(first.value + 8), {});
  ExpectFinding("S2", Concat("names LSN ", first.value + 8, ", where no record before it begins"));
}

TEST_F(ChainAuditTest, S2NothingGoesBack) {
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
  EXPECT_THAT(text,
              ::testing::AllOf(::testing::HasSubstr(Concat(" at ", second.value, "/7, the one before it had it at ",
                                                           second.value, "/4294967295")),
                               ::testing::HasSubstr(Concat("goes back from LSN ", third.value, " to ", second.value))));
}

TEST_F(ChainAuditTest, S2PositionsAreOfKnownComponentsAndOfThePast) {
  const Lsn first = Commit(50);
  Redo(first, {{.dc = DcId(8), .stable = Position{}}});
  ExpectFinding("S2", "names data component 8, which is not of this log");
  forge_.state.redo_start = {};
}

TEST_F(ChainAuditTest, S2NoPositionLiesBeyondTheRecord) {
  const Lsn first = Commit(50);
  Redo(first, {{.dc = DcId(9), .stable = Position{Lsn(1'000'000), 1}}});
  ExpectFinding("S2", "has data component 9 at 1000000/1, which lies beyond it");
}

TEST_F(ChainAuditTest, S2NothingIsTrimmedThatRedoWants) {
  const Lsn first = Commit(50);
  Redo(first, {});
  forge_.Record(RecordType::kTrimmed, BytesBody{EncodeTrimmedBody(first)});
  ExpectClean();
  forge_.Record(RecordType::kTrimmed, BytesBody{EncodeTrimmedBody(Lsn(first.value + 8))});
  ExpectFinding(
      "S2", Concat("says that the log before LSN ", first.value + 8, " may be gone, redo starts at LSN ", first.value));
}

TEST_F(ChainAuditTest, D3AnOutcomeHorizonIsReserved) {
  forge_.Record(RecordType::kOutcomeHorizon, BytesBody{EncodeTimestampBody(Timestamp(100))});
  ExpectClean();
  forge_.Record(RecordType::kOutcomeHorizon, BytesBody{EncodeTimestampBody(Timestamp(101))});
  ExpectFinding("D3", "says that ids below timestamp 101 may be gone, only timestamps below 100 are reserved");
}

}  // namespace
}  // namespace deut::tc

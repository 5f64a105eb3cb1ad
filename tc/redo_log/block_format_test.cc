#include "tc/redo_log/block_format.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/runtime/random.h"

namespace deut::tc {
namespace {

BlockHeader SomeHeader(size_t payload_bytes) {
  return BlockHeader{.kind = BlockKind::kRecords,
                     .block_bytes = static_cast<uint32_t>(BlockBytesFor(payload_bytes)),
                     .payload_bytes = static_cast<uint32_t>(payload_bytes),
                     .predecessor = 0xAABBCCDD,
                     .first_lsn = Lsn(4096),
                     .durable = Lsn(1024),
                     .segment = 3,
                     .offset = 8192,
                     .tc = TcId(0x11),
                     .epoch = TcEpoch(5),
                     .nonce = 0x99};
}

std::string SomeBlock(size_t payload_bytes, uint32_t* checksum) {
  const BlockHeader header = SomeHeader(payload_bytes);
  std::string block(header.block_bytes, '\xFF');
  for (size_t i = 0; i < payload_bytes; ++i) block[kBlockHeaderBytes + i] = static_cast<char>(i);
  *checksum = SealBlock(header, block.data());
  return block;
}

Status Check(const std::string& block, uint64_t segment, uint64_t offset, uint64_t room) {
  BlockHeader header;
  DEUT_RETURN_IF_ERROR(ReadBlockHeader(block.data(), segment, offset, room, &header));
  if (header.block_bytes > block.size()) return DEUT_ERROR(kInternal, "longer than the bytes given");
  return VerifyBlock(block.data(), header).status();
}

LogState SomeState() {
  return LogState{
      .tc = TcId(0x11),
      .epoch = TcEpoch(5),
      .nonce = 0x99,
      .reserved = Timestamp(uint64_t{1} << 33),
      .low_water = Timestamp(77),
      .redo_start = {.lsn = Lsn(512), .stable = {{.dc = DcId(8), .stable = {.commit = Lsn(600), .sequence = 4}}}},
      .known_dcs = {DcId(8), DcId(9)}};
}

TEST(BlockFormat, RoundTrip) {
  uint32_t checksum = 0;
  const std::string block = SomeBlock(5000 / 8 * 8, &checksum);
  ASSERT_EQ(block.size(), 8192u);
  BlockHeader header;
  ASSERT_TRUE(ReadBlockHeader(block.data(), 3, 8192, 8192, &header).ok());
  EXPECT_EQ(header.payload_bytes, 5000u);
  EXPECT_EQ(header.predecessor, 0xAABBCCDDu);
  EXPECT_EQ(header.first_lsn, Lsn(4096));
  EXPECT_EQ(header.end_lsn(), Lsn(9096));
  EXPECT_EQ(header.durable, Lsn(1024));
  EXPECT_EQ(header.tc, TcId(0x11));
  EXPECT_EQ(header.epoch, TcEpoch(5));
  EXPECT_EQ(header.nonce, 0x99u);
  const Result<uint32_t> verified = VerifyBlock(block.data(), header);
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(*verified, checksum);
}

TEST(BlockFormat, GoldenBytes) {
  uint32_t checksum = 0;
  const std::string block = SomeBlock(8, &checksum);
  EXPECT_EQ(absl::BytesToHexString({block.data(), kBlockHeaderBytes + 8}),
            "44524c478ae1eaea010002000010000008000000ddccbbaa0010000000000000000400000000000003000000000000000020"
            "0000000000001100000000000000050000000000000099000000000000000001020304050607");
  std::string segment(kSegmentHeaderBytes, '\0');
  EncodeSegmentHeader(SomeHeader(8), SomeState(), 1 << 20, segment.data());
  EXPECT_EQ(absl::BytesToHexString({segment.data(), kBlockHeaderBytes + 80}),
            "44524c47d7adceab010001000010000050000000ddccbbaa0010000000000000000400000000000003000000000000000000"
            "000000000000110000000000000005000000000000009900000000000000000010000000000000000000020000004d000000"
            "0000000000020000000000000100000002000000080000000000000058020000000000000400000000000000080000000000"
            "00000900000000000000");
}

TEST(BlockFormat, ABlockBelongsToItsPlace) {
  uint32_t checksum = 0;
  const std::string block = SomeBlock(64, &checksum);
  EXPECT_TRUE(Check(block, 3, 8192, 4096).ok());
  EXPECT_TRUE(Check(block, 4, 8192, 4096) == ErrorCode::kCorruption);   // a file used again
  EXPECT_TRUE(Check(block, 3, 12288, 4096) == ErrorCode::kCorruption);  // misdirected
  EXPECT_TRUE(Check(block, 3, 8192, 0) == ErrorCode::kCorruption);      // beyond the segment
}

// Whatever bit of a block flips, it is no longer valid.
TEST(BlockFormat, EveryFlippedBitIsFound) {
  uint32_t checksum = 0;
  const std::string whole = SomeBlock(256, &checksum);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string block = whole;
    block[bit / 8] = static_cast<char>(block[bit / 8] ^ (1 << (bit % 8)));
    const Status status = Check(block, 3, 8192, 4096);
    ASSERT_TRUE(status == ErrorCode::kCorruption) << "bit " << bit << ": " << status.ToString();
  }
}

TEST(BlockFormat, SegmentHeaderRoundTrip) {
  const LogState state = SomeState();
  std::string block(kSegmentHeaderBytes, '\0');
  BlockHeader header = SomeHeader(8);
  EncodeSegmentHeader(header, state, 1 << 20, block.data());
  ASSERT_TRUE(ReadBlockHeader(block.data(), 3, 0, 1 << 20, &header).ok());
  EXPECT_EQ(header.kind, BlockKind::kSegmentHeader);
  EXPECT_EQ(header.end_lsn(), header.first_lsn);
  ASSERT_TRUE(VerifyBlock(block.data(), header).ok());
  LogState decoded;
  uint64_t segment_bytes = 0;
  ASSERT_TRUE(DecodeSegmentHeader(block.data(), header, &decoded, &segment_bytes).ok());
  EXPECT_EQ(segment_bytes, 1u << 20);
  EXPECT_EQ(decoded.tc, state.tc);
  EXPECT_EQ(decoded.epoch, state.epoch);
  EXPECT_EQ(decoded.nonce, state.nonce);
  EXPECT_EQ(decoded.reserved, state.reserved);
  EXPECT_EQ(decoded.low_water, state.low_water);
  EXPECT_EQ(decoded.redo_start, state.redo_start);
  EXPECT_EQ(decoded.known_dcs, state.known_dcs);
}

TEST(BlockFormat, StateOnlyRises) {
  LogState state;
  LogRecord record;
  record.type = RecordType::kReserveTimestamps;
  for (const uint64_t timestamp : {50, 100, 70}) {
    record.timestamp = Timestamp(timestamp);
    state.Apply(record);
  }
  EXPECT_EQ(state.reserved, Timestamp(100));
  record.type = RecordType::kKnownDc;
  for (const uint64_t dc : {5, 3, 5}) {
    record.dc = DcId(dc);
    state.Apply(record);
  }
  EXPECT_EQ(state.known_dcs, (std::vector<DcId>{DcId(3), DcId(5)}));
}

TEST(BlockFormat, SegmentNames) {
  EXPECT_EQ(SegmentName(42), "log-00000000000000000042");
  uint64_t number = 0;
  EXPECT_TRUE(ParseSegmentName(SegmentName(123456789), &number));
  EXPECT_EQ(number, 123456789u);
  for (const char* name : {"LOCK", "log-", "log-42", "log-0000000000000000004x", "log-99999999999999999999",
                           "log-000000000000000000042"}) {
    EXPECT_FALSE(ParseSegmentName(name, &number)) << name;
  }
}

}  // namespace
}  // namespace deut::tc

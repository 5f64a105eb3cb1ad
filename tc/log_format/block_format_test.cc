#include "tc/log_format/block_format.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/runtime/random.h"

namespace deut::tc {
namespace {

constexpr SipHashKey kKey{.low = 0x1234, .high = 0x5678};

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
  *checksum = SealBlock(header, kKey, block.data());
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
      .key = kKey,
      .reserved = Timestamp(uint64_t{1} << 33),
      .low_water = Timestamp(77),
      .redo_start = {.lsn = Lsn(512), .stable = {{.dc = DcId(8), .stable = {.commit = Lsn(600), .sequence = 4}}}},
      .known_dcs = {DcId(8), DcId(9)}};
}

TEST(BlockFormat, RoundTrip) {
  uint32_t checksum = 0;
  const std::string block = SomeBlock(5000, &checksum);
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
            "44524c47120d71a7020002000010000008000000ddccbbaa0010000000000000000400000000000003000000000000000020"
            "000000000000110000000000000005000000000000009900000000000000f8d2fd54e4dcc4d40001020304050607");
  std::string segment(kSegmentHeaderBytes, '\0');
  EncodeSegmentHeader(SomeHeader(8), SomeState(), 1 << 20, segment.data());
  EXPECT_EQ(absl::BytesToHexString({segment.data(), kBlockHeaderBytes + 96}),
            "44524c47e16a25d5020001000010000060000000ddccbbaa0010000000000000000400000000000003000000000000000000"
            "00000000000011000000000000000500000000000000990000000000000069326197a41cb8c1000010000000000000000000"
            "020000004d000000000000000002000000000000010000000200000034120000000000007856000000000000080000000000"
            "00005802000000000000040000000000000008000000000000000900000000000000");
}

TEST(BlockFormat, ABlockBelongsToItsPlace) {
  uint32_t checksum = 0;
  const std::string block = SomeBlock(64, &checksum);
  EXPECT_TRUE(Check(block, 3, 8192, 4096).ok());
  EXPECT_TRUE(Check(block, 4, 8192, 4096) == ErrorCode::kCorruption);   // a reused file
  EXPECT_TRUE(Check(block, 3, 12288, 4096) == ErrorCode::kCorruption);  // misdirected
  EXPECT_TRUE(Check(block, 3, 8192, 0) == ErrorCode::kCorruption);      // beyond the segment
}

// A block is invalid after a flip of any of its bits.
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
  EXPECT_EQ(decoded.key, state.key);
  EXPECT_EQ(decoded.reserved, state.reserved);
  EXPECT_EQ(decoded.low_water, state.low_water);
  EXPECT_EQ(decoded.redo_start, state.redo_start);
  EXPECT_EQ(decoded.known_dcs, state.known_dcs);
}

// The bytes of a client that knows everything but the key. Only an owner of the key can seal a block, and a seal is
// good for one place in one log.
TEST(BlockFormat, ASealIsOfOneKeyAndOneBlock) {
  uint32_t checksum = 0;
  std::string block = SomeBlock(64, &checksum);
  EXPECT_TRUE(IsSealed(block.data(), kKey));
  EXPECT_FALSE(IsSealed(block.data(), {.low = kKey.low, .high = kKey.high ^ 1}));
  for (size_t at = 8; at < kBlockHeaderBytes; ++at) {
    block[at] = static_cast<char>(block[at] ^ 1);
    EXPECT_FALSE(IsSealed(block.data(), kKey)) << at;
    block[at] = static_cast<char>(block[at] ^ 1);
  }
}

TEST(BlockFormat, ASegmentHeaderUnderAnotherKeyIsRefused) {
  std::string block(kSegmentHeaderBytes, '\0');
  BlockHeader header = SomeHeader(8);
  EncodeSegmentHeader(header, SomeState(), 1 << 20, block.data());
  StoreU64(block.data() + kBlockHeaderBytes + 40, 0);
  ASSERT_TRUE(ReadBlockHeader(block.data(), 3, 0, 1 << 20, &header).ok());
  LogState decoded;
  uint64_t segment_bytes = 0;
  EXPECT_EQ(DecodeSegmentHeader(block.data(), header, &decoded, &segment_bytes).code(), ErrorCode::kCorruption);
}

std::string FirstBlockOf(uint64_t segment) {
  std::string block(kSegmentHeaderBytes, '\0');
  BlockHeader header = SomeHeader(8);
  header.segment = segment;
  EncodeSegmentHeader(header, SomeState(), 1 << 20, block.data());
  return block;
}

void MakeChecksumRight(std::string* block) {
  StoreU32(block->data() + 4, Crc32c(block->data() + 8, block->size() - 8));
}

Result<FirstBlock> Understand(const std::string& bytes, uint64_t number = 3) {
  BlockHeader header;
  return UnderstandFirstBlock(bytes.data(), bytes.size(), number, &header);
}

TEST(FirstBlockTest, OfThisVersion) {
  const std::string block = FirstBlockOf(3);
  EXPECT_EQ(*Understand(block), FirstBlock::kWhole);
  EXPECT_EQ(*Understand(block, 9), FirstBlock::kWhole);  // a spare that was segment 3
  EXPECT_EQ(*Understand(""), FirstBlock::kUnwritten);
  EXPECT_EQ(*Understand(std::string(kSegmentHeaderBytes, '\0')), FirstBlock::kUnwritten);
  EXPECT_EQ(*Understand(std::string(512, '\0') + block.substr(512)), FirstBlock::kUnwritten);
  std::string torn = block;
  torn[kBlockHeaderBytes] = static_cast<char>(torn[kBlockHeaderBytes] ^ 1);
  EXPECT_EQ(*Understand(torn), FirstBlock::kBroken);
}

TEST(FirstBlockTest, AnotherVersionIsRefusedByName) {
  for (const int version : {0, 1, 3, 0xFFFF}) {
    std::string block = FirstBlockOf(3);
    StoreU16(block.data() + 8, static_cast<uint16_t>(version));
    const Status damaged = Understand(block).status();
    EXPECT_EQ(damaged.code(), ErrorCode::kCorruption);
    EXPECT_NE(damaged.message().find("damaged"), std::string_view::npos) << damaged.ToString();
    MakeChecksumRight(&block);
    const Status refused = Understand(block).status();
    EXPECT_EQ(refused.code(), ErrorCode::kVersionMismatch);
    EXPECT_NE(refused.message().find("version " + std::to_string(version) +
                                     " of the redo log, this program reads and "
                                     "writes version " +
                                     std::to_string(kLogFormatVersion)),
              std::string_view::npos)
        << refused.ToString();
  }
}

TEST(FirstBlockTest, BlockThatNoWriterWritesIsRefused) {
  EXPECT_EQ(Understand("short").status().code(), ErrorCode::kCorruption);
  EXPECT_EQ(Understand(std::string(kSegmentHeaderBytes, 'x')).status().code(), ErrorCode::kCorruption);
  EXPECT_EQ(Understand(FirstBlockOf(4)).status().code(), ErrorCode::kCorruption);  // a later segment, renamed
  struct {
    size_t at;
    uint64_t value;
  } const wrong[] = {{24, kMaxLogNumber + 8}, {64, kMaxLogNumber + 1}, {64, 0}, {48, 4096}};
  for (const auto& each : wrong) {
    std::string block = FirstBlockOf(3);
    StoreU64(block.data() + each.at, each.value);
    MakeChecksumRight(&block);
    EXPECT_EQ(Understand(block).status().code(), ErrorCode::kCorruption) << each.at << " " << each.value;
  }
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
  EXPECT_FALSE(ParseSegmentName(SegmentName(kMaxLogNumber + 1), &number));
  for (const char* name : {"log-00000000000000000000", "LOCK", "log-", "log-42", "log-0000000000000000004x",
                           "log-99999999999999999999", "log-000000000000000000042"}) {
    EXPECT_FALSE(ParseSegmentName(name, &number)) << name;
  }
}

}  // namespace
}  // namespace deut::tc

#include "dc/page_store/segment_format.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"

namespace deut::dc {
namespace {

constexpr SegmentHeader kHeader{
    .kind = SegmentKind::kDelta, .number = 0x7BCDEF01, .dc = DcId(0x1122334455667788), .capacity_bytes = 4 << 20};

std::string Encoded(const SegmentHeader& header) {
  std::string bytes(kSegmentHeaderBytes, '\xEE');
  EncodeSegmentHeader(header, bytes.data());
  return bytes;
}

void Seal(std::string* bytes) {
  StoreU32(bytes->data() + 12, 0);
  StoreU32(bytes->data() + 12, Crc32c(*bytes));
}

TEST(SegmentFormat, GoldenBytes) {
  const std::string bytes = Encoded(kHeader);
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(0, 40)),
            "4445555450534547"
            "0200"
            "02"
            "00"
            "edfa320f"
            "01efcd7b00000000"
            "8877665544332211"
            "0000400000000000");
  EXPECT_EQ(bytes.substr(40), std::string(kSegmentHeaderBytes - 40, '\0'));
}

TEST(SegmentFormat, AnEncodedHeaderIsDecoded) {
  const auto header = DecodeSegmentHeader(Encoded(kHeader), "f");
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_EQ(*header, kHeader);
}

// A segment that may have packed parts is of version 3, so that an earlier program refuses it by name.
TEST(SegmentFormat, OnlyASegmentThatMayHavePackedPartsIsOfVersion3) {
  SegmentHeader header = kHeader;
  header.packed_parts = true;
  const std::string bytes = Encoded(header);
  EXPECT_EQ(LoadU16(bytes.data() + 8), 3);
  EXPECT_EQ(LoadU16(Encoded(kHeader).data() + 8), 2);
  const auto decoded = DecodeSegmentHeader(bytes, "f");
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(*decoded, header);
}

// Version 1 is the same header, before parts of version 1.
TEST(SegmentFormat, AHeaderOfFormatVersion1IsRead) {
  std::string bytes = Encoded(kHeader);
  bytes[8] = 1;
  Seal(&bytes);
  const auto header = DecodeSegmentHeader(bytes, "f");
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_EQ(*header, kHeader);
}

TEST(SegmentFormat, EveryFlippedBitAndEveryCutIsRefused) {
  const std::string bytes = Encoded(kHeader);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const auto header = DecodeSegmentHeader(damaged, "dir/name");
    ASSERT_EQ(header.status().code(), ErrorCode::kCorruption) << "bit " << bit;
    ASSERT_TRUE(header.status().message().starts_with("dir/name: offset ")) << header.status().ToString();
  }
  for (size_t size = 0; size < bytes.size(); size += 100)
    ASSERT_EQ(DecodeSegmentHeader(bytes.substr(0, size), "f").status().code(), ErrorCode::kCorruption);
}

TEST(SegmentFormat, SealedNonsenseIsRefused) {
  struct Case {
    size_t at;
    char value;
    ErrorCode code;
  };
  for (const Case each : {Case{8, 4, ErrorCode::kVersionMismatch},
                          {8, 0, ErrorCode::kVersionMismatch},
                          {10, 0, ErrorCode::kCorruption},
                          {10, 3, ErrorCode::kCorruption},
                          {11, 1, ErrorCode::kCorruption},
                          {20, 1, ErrorCode::kCorruption},     // a number of more than 31 bits
                          {32, 1, ErrorCode::kCorruption},     // a capacity that is not a multiple of kIoAlignment
                          {34, 0, ErrorCode::kCorruption},     // no capacity
                          {35, 0x7F, ErrorCode::kCorruption},  // a capacity above 1 GiB
                          {39, 0x10, ErrorCode::kCorruption},
                          {100, 1, ErrorCode::kCorruption}}) {
    std::string bytes = Encoded(kHeader);
    bytes[each.at] = each.value;
    Seal(&bytes);
    EXPECT_EQ(DecodeSegmentHeader(bytes, "f").status().code(), each.code) << each.at;
  }
  std::string numberless = Encoded(kHeader);
  StoreU64(numberless.data() + 16, 0);
  Seal(&numberless);
  EXPECT_EQ(DecodeSegmentHeader(numberless, "f").status().code(), ErrorCode::kCorruption);
}

TEST(SegmentFormat, Names) {
  EXPECT_EQ(SegmentName(SegmentKind::kBase, 1), "base-000000000001.seg");
  EXPECT_EQ(SegmentName(SegmentKind::kDelta, 0x7BCDEF01), "delta-00007bcdef01.seg");
  SegmentKind kind = SegmentKind::kBase;
  uint64_t number = 0;
  ASSERT_TRUE(ParseSegmentName("delta-00007bcdef01.seg", &kind, &number));
  EXPECT_EQ(kind, SegmentKind::kDelta);
  EXPECT_EQ(number, 0x7BCDEF01u);
  for (const std::string_view wrong :
       {"", "base-.seg", "base-00000000001.seg", "base-0000000000001.seg", "base-00000000000g.seg",
        "base-00000000000A.seg", "Base-000000000001.seg", "base-000000000001.tmp", "base-000000000000.seg",
        "base-000080000000.seg", "checkpoint-000000000001"}) {
    EXPECT_FALSE(ParseSegmentName(wrong, &kind, &number)) << wrong;
  }
}

}  // namespace
}  // namespace deut::dc

#include "dc/page_store/part_format.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"

namespace deut::dc {
namespace {

std::string Encoded(const PartHeader& header, PageAddress address, std::string_view payload) {
  std::string bytes(PartBytesInUnits(payload.size()), '\xEE');
  EncodePart(header, address, payload, bytes.data());
  return bytes;
}

PageAddress AddressFor(std::string_view payload, uint64_t segment = 3, uint64_t offset = 4096) {
  return PageAddress::Make(segment, offset, PartBytes(payload.size()));
}

constexpr PartHeader kBaseHeader{.kind = PartKind::kBase, .level = 2, .page = PageId(77), .table = TableId(5)};

TEST(PartFormat, GoldenBytes) {
  const PartHeader delta{.kind = PartKind::kDelta,
                         .level = 0,
                         .page = PageId(0x01020304),
                         .table = TableId(9),
                         .previous = PageAddress::Make(2, 8192, 300)};
  const std::string bytes = Encoded(delta, AddressFor("hello", 0x123, 4096 + 256), "hello");
  ASSERT_EQ(bytes.size(), 128u);
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(0, 48)),
            "44505254"
            "06f79804"
            "0200"
            "02"
            "00"
            "05000000"
            "0122008091000000"
            "0340000001000000"
            "04030201"
            "09000000"
            "68656c6c6f000000");
  EXPECT_EQ(bytes.substr(45), std::string(128 - 45, '\0'));
}

// A stored sample of format version 1: the same part, with addresses of the earlier layout.
TEST(PartFormat, APartOfFormatVersion1IsRead) {
  std::string bytes = absl::HexStringToBytes(
      "445052543bd2b6e0010002000500000001228091000000000340000100000000040302010900000068656c6c6f");
  bytes.resize(128);
  const PageAddress address = AddressFor("hello", 0x123, 4096 + 256);
  for (const auto& part :
       {DecodePart(bytes, address, PageId(0x01020304), "f"), DecodePartAt(bytes, 0x123, 4352, "f")}) {
    ASSERT_TRUE(part.ok()) << part.status().ToString();
    EXPECT_EQ(part->address, address);
    EXPECT_EQ(part->header.previous, PageAddress::Make(2, 8192, 300));
    EXPECT_EQ(part->payload, "hello");
  }
  EXPECT_TRUE(ClaimsPlace(bytes, 0x123, 4352));
  EXPECT_FALSE(ClaimsPlace(bytes, 0x123, 4224));
  // Read in the other layout, the address would name another place.
  StoreU16(bytes.data() + 8, 2);
  StoreU32(bytes.data() + 4, Crc32c(bytes.data() + 8, bytes.size() - 8));
  EXPECT_EQ(DecodePart(bytes, address, std::nullopt, "f").status().code(), ErrorCode::kCorruption);
  EXPECT_FALSE(ClaimsPlace(bytes, 0x123, 4352));
}

TEST(PartFormat, APartLiesAnywhereInTheLongestSegment) {
  const PageAddress address = AddressFor("hello", PageAddress::kMaxSegment, PageAddress::kMaxOffset - 128);
  const std::string bytes = Encoded(kBaseHeader, address, "hello");
  const auto part = DecodePartAt(bytes, PageAddress::kMaxSegment, PageAddress::kMaxOffset - 128, "f");
  ASSERT_TRUE(part.ok()) << part.status().ToString();
  EXPECT_EQ(part->address, address);
}

TEST(PartFormat, EncodedPartsAreDecoded) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{88}, size_t{89}, size_t{5000}, size_t{100'000}}) {
    const std::string payload(size, 'p');
    const PageAddress address = AddressFor(payload);
    std::string bytes = Encoded(kBaseHeader, address, payload);
    bytes += "what follows is not looked at";
    const auto part = DecodePart(bytes, address, PageId(77), "f");
    ASSERT_TRUE(part.ok()) << part.status().ToString();
    PartHeader expected = kBaseHeader;
    expected.payload_bytes = static_cast<uint32_t>(size);
    EXPECT_EQ(part->header, expected);
    EXPECT_EQ(part->payload, payload);
    EXPECT_EQ(part->address, address);
    const auto anywhere = DecodePartAt(bytes, 3, 4096, "f");
    ASSERT_TRUE(anywhere.ok());
    EXPECT_EQ(anywhere->address, address);
    EXPECT_TRUE(DecodePart(bytes, address, std::nullopt, "f").ok());
  }
}

TEST(PartFormat, EveryFlippedBitIsRefusedAndSaysWhere) {
  const std::string payload(90, 'q');  // two units, with filling
  const PageAddress address = AddressFor(payload);
  const std::string bytes = Encoded(kBaseHeader, address, payload);
  ASSERT_EQ(bytes.size(), 256u);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const auto part = DecodePart(damaged, address, PageId(77), "dir/base-1.seg");
    ASSERT_FALSE(part.ok()) << "bit " << bit;
    ASSERT_EQ(part.status().code(), ErrorCode::kCorruption);
    ASSERT_TRUE(part.status().message().starts_with("dir/base-1.seg: offset 4")) << part.status().ToString();
    ASSERT_FALSE(DecodePartAt(damaged, 3, 4096, "f").ok()) << "bit " << bit;
  }
}

TEST(PartFormat, CutAnywhereItIsRefused) {
  const std::string payload(300, 'q');
  const PageAddress address = AddressFor(payload);
  const std::string bytes = Encoded(kBaseHeader, address, payload);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    ASSERT_EQ(DecodePart(cut, address, std::nullopt, "f").status().code(), ErrorCode::kCorruption) << size;
    ASSERT_EQ(DecodePartAt(cut, 3, 4096, "f").status().code(), ErrorCode::kCorruption) << size;
  }
}

// An intact part in the wrong place, as a misdirected write leaves it.
TEST(PartFormat, ARightPartOfAnotherPlacePageOrLengthIsRefused) {
  const std::string payload(50, 'q');
  const PageAddress address = AddressFor(payload);
  const std::string bytes = Encoded(kBaseHeader, address, payload) + std::string(4096, '\0');
  EXPECT_TRUE(DecodePart(bytes, address, PageId(77), "f").ok());
  for (const PageAddress wrong :
       {AddressFor(payload, 4), AddressFor(payload, 3, 4096 + 128), PageAddress::Make(3, 4096, 200)}) {
    EXPECT_EQ(DecodePart(bytes, wrong, PageId(77), "f").status().code(), ErrorCode::kCorruption);
  }
  const auto other_page = DecodePart(bytes, address, PageId(78), "f");
  EXPECT_EQ(other_page.status().code(), ErrorCode::kCorruption);
  EXPECT_NE(other_page.status().message().find("a part of page 77, not of page 78"), std::string_view::npos);
}

// Bytes with a correct checksum that are no part.
TEST(PartFormat, SealedNonsenseIsRefused) {
  const PageAddress address = AddressFor("x");
  const auto sealed = [&](size_t at, char value) {
    std::string bytes = Encoded(kBaseHeader, address, "x");
    bytes[at] = value;
    StoreU32(bytes.data() + 4, Crc32c(bytes.data() + 8, bytes.size() - 8));
    return bytes;
  };
  EXPECT_TRUE(DecodePart(sealed(11, 7), address, std::nullopt, "f").ok());  // any level is allowed
  struct Case {
    size_t at;
    char value;
  };
  for (const Case each :
       {Case{8, 0}, {8, 3}, {10, 0}, {10, 2}, {10, 3}, {12, 100}, {15, 1}, {16, 5}, {24, 1}, {41, 1}, {127, 1}}) {
    EXPECT_EQ(DecodePart(sealed(each.at, each.value), address, std::nullopt, "f").status().code(),
              ErrorCode::kCorruption)
        << each.at;
  }
}

TEST(PartFormat, FillingIsNoPart) {
  const std::string bytes = Encoded(kBaseHeader, AddressFor("x"), "x");
  EXPECT_TRUE(PartBeginsAt(bytes));
  EXPECT_FALSE(PartBeginsAt(std::string(8, '\0')));
}

}  // namespace
}  // namespace deut::dc

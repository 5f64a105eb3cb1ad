#include "dc/page_store/page_address.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace deut::dc {
namespace {

TEST(PageAddress, NoneIsZeroAndNotValid) {
  EXPECT_TRUE(PageAddress().is_none());
  EXPECT_EQ(PageAddress::none().raw(), 0u);
  EXPECT_FALSE(PageAddress::none().valid());
}

TEST(PageAddress, BitsAreWhereTheFormatHasThem) {
  EXPECT_EQ(PageAddress::Make(1, 4096, 1).raw(), (uint64_t{1} << 31) | (32 << 8) | 1);
  EXPECT_EQ(PageAddress::Make(0x7FFFFFFF, PageAddress::kMaxOffset - 128, PageAddress::kMaxPartBytes).raw(),
            0x3FFFFFFFFFFFFFFFu);
  EXPECT_EQ(PageAddress::Make(5, 128, uint64_t{16} * 128).raw(), (uint64_t{5} << 31) | (1 << 8) | (1 << 4) | 8);
}

// 64 TiB of the longest segments, and every bit of an offset.
TEST(PageAddress, TheLimitsOfSegmentsAndOffsetsAreKept) {
  EXPECT_EQ(PageAddress::kMaxOffset, uint64_t{1} << 30);
  EXPECT_EQ(PageAddress::kMaxSegment, (uint64_t{1} << 31) - 1);
  EXPECT_GE(PageAddress::kMaxSegment, (uint64_t{64} << 40) / PageAddress::kMaxOffset);
  for (const uint64_t segment :
       {uint64_t{1}, uint64_t{2}, uint64_t{1} << 16, uint64_t{1} << 30, PageAddress::kMaxSegment}) {
    for (uint64_t offset = 0; offset < PageAddress::kMaxOffset; offset = offset == 0 ? 128 : offset * 2) {
      for (const uint64_t place : {offset, PageAddress::kMaxOffset - 128 - offset}) {
        const PageAddress address = PageAddress::Make(segment, place, 300);
        ASSERT_TRUE(address.valid());
        ASSERT_EQ(address.segment(), segment);
        ASSERT_EQ(address.offset(), place);
        ASSERT_EQ(address.length_bound(), 384u);
        ASSERT_EQ(address.raw() >> 62, 0u);
        ASSERT_EQ(PageAddress::FromRaw(address.raw()), address);
      }
    }
  }
}

TEST(PageAddress, AddressesOfTheEarlierLayoutNameTheSamePlace) {
  const auto narrow = [](uint64_t segment, uint64_t unit, uint64_t length) {
    return PageAddress::FromNarrow((segment << 23) | (unit << 8) | length);
  };
  EXPECT_EQ(narrow(1, 32, 1), PageAddress::Make(1, 4096, 1));
  EXPECT_EQ(narrow(7, 0x7FFF, 0x18), PageAddress::Make(7, (4 << 20) - 128, uint64_t{16} * 128));
  EXPECT_EQ(narrow(PageAddress::kMaxSegment, 32, 0xFF),
            PageAddress::Make(PageAddress::kMaxSegment, 4096, PageAddress::kMaxPartBytes));
  EXPECT_TRUE(PageAddress::FromNarrow(0).is_none());
  EXPECT_FALSE(narrow(0, 32, 1).valid());     // no segment
  EXPECT_FALSE(narrow(3, 32, 0x17).valid());  // 14 units, encoded as 7 << 1
  for (const uint64_t raw : {(PageAddress::kMaxSegment + 1) << 23 | 0x2001, uint64_t{1} << 59 | 0x802001, UINT64_MAX}) {
    EXPECT_FALSE(PageAddress::FromNarrow(raw).valid()) << raw;
    EXPECT_FALSE(PageAddress::FromNarrow(raw).is_none()) << raw;
  }
}

TEST(PageAddress, EveryLengthHasABoundCloseAboveIt) {
  uint64_t last = 0;
  for (uint64_t bytes = 1; bytes <= PageAddress::kMaxPartBytes; bytes += 1 + bytes / 50) {
    const PageAddress address = PageAddress::Make(7, 8192, bytes);
    ASSERT_TRUE(address.valid()) << bytes;
    ASSERT_EQ(address.segment(), 7u);
    ASSERT_EQ(address.offset(), 8192u);
    const uint64_t units = (bytes + 127) / 128 * 128;
    ASSERT_GE(address.length_bound(), units) << bytes;
    ASSERT_LE(address.length_bound(), units + units / 7) << bytes;
    ASSERT_GE(address.length_bound(), last);
    last = address.length_bound();
  }
  EXPECT_EQ(PageAddress::Make(7, 0, uint64_t{15} * 128).length_bound(), 15u * 128);
  EXPECT_EQ(PageAddress::Make(7, 0, PageAddress::kMaxPartBytes).length_bound(), PageAddress::kMaxPartBytes);
}

// One address for one part: no two words name the same place and length.
TEST(PageAddress, OtherSpellingsOfALengthAreNotValid) {
  for (uint64_t low = 0; low < 256; ++low) {
    const PageAddress address = PageAddress::FromRaw((uint64_t{3} << 31) | (64 << 8) | low);
    if (!address.valid()) continue;
    EXPECT_EQ(PageAddress::Make(3, uint64_t{64} * 128, address.length_bound()), address) << low;
  }
  EXPECT_FALSE(PageAddress::FromRaw((uint64_t{3} << 31) | 0x17).valid());  // 14 units, encoded as 7 << 1
  EXPECT_FALSE(PageAddress::FromRaw((uint64_t{3} << 31) | 0x10).valid());  // no length
  EXPECT_FALSE(PageAddress::FromRaw((32 << 8) | 1).valid());               // no segment
  EXPECT_FALSE(PageAddress::FromRaw((uint64_t{1} << 62) | (uint64_t{1} << 31) | 0x801)
                   .valid());  // a bit above the segment is set
}

}  // namespace
}  // namespace deut::dc

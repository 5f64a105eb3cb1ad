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
  EXPECT_EQ(PageAddress::Make(1, 4096, 1).raw(), (uint64_t{1} << 23) | (32 << 8) | 1);
  EXPECT_EQ(PageAddress::Make(0xFFFFFFFFF, PageAddress::kMaxOffset - 128, PageAddress::kMaxPartBytes).raw(),
            0x7FFFFFFFFFFFFFFu);
  EXPECT_EQ(PageAddress::Make(5, 128, uint64_t{16} * 128).raw(), (uint64_t{5} << 23) | (1 << 8) | (1 << 4) | 8);
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
    const PageAddress address = PageAddress::FromRaw((uint64_t{3} << 23) | (64 << 8) | low);
    if (!address.valid()) continue;
    EXPECT_EQ(PageAddress::Make(3, uint64_t{64} * 128, address.length_bound()), address) << low;
  }
  EXPECT_FALSE(PageAddress::FromRaw((uint64_t{3} << 23) | 0x17).valid());   // 14 units, encoded as 7 << 1
  EXPECT_FALSE(PageAddress::FromRaw((uint64_t{3} << 23) | 0x10).valid());   // no length
  EXPECT_FALSE(PageAddress::FromRaw((32 << 8) | 1).valid());                // no segment
  EXPECT_FALSE(PageAddress::FromRaw((uint64_t{1} << 59) | 0x801).valid());  // a bit above the segment number is set
}

}  // namespace
}  // namespace deut::dc

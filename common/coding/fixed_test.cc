#include "common/coding/fixed.h"

#include "gtest/gtest.h"

namespace deut {
namespace {

TEST(Fixed, BytesAreLittleEndian) {
  char bytes[15];
  StoreU16(bytes, 0x0102);
  StoreU32(bytes + 2, 0x03040506u);
  StoreU64(bytes + 6, 0x0708090A0B0C0D0Eull);
  EXPECT_EQ(std::string(bytes, 14), std::string("\x02\x01\x06\x05\x04\x03\x0E\x0D\x0C\x0B\x0A\x09\x08\x07"));
  std::string appended;
  AppendU16(&appended, 0x0102);
  AppendU32(&appended, 0x03040506u);
  AppendU64(&appended, 0x0708090A0B0C0D0Eull);
  EXPECT_EQ(appended, std::string(bytes, 14));
}

TEST(Fixed, LoadsWhatWasStoredAtAnyAddress) {
  alignas(8) char bytes[24] = {};
  for (size_t at = 0; at < 9; ++at) {
    StoreU64(bytes + at, UINT64_MAX - at);
    EXPECT_EQ(LoadU64(bytes + at), UINT64_MAX - at);
    StoreU32(bytes + at, 0xFFFFFFFEu);
    EXPECT_EQ(LoadU32(bytes + at), 0xFFFFFFFEu);
    StoreU16(bytes + at, 0xFFFD);
    EXPECT_EQ(LoadU16(bytes + at), 0xFFFD);
  }
}

}  // namespace
}  // namespace deut

#include "common/coding/crc32c.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace deut {
namespace {

// The test vectors of RFC 3720, appendix B.4, and the check value in the polynomial's catalogue.
TEST(Crc32c, KnownAnswers) {
  std::string bytes(32, '\0');
  EXPECT_EQ(Crc32c(bytes), 0x8A9136AAu);
  bytes.assign(32, '\xFF');
  EXPECT_EQ(Crc32c(bytes), 0x62A8AB43u);
  for (int i = 0; i < 32; ++i) bytes[static_cast<size_t>(i)] = static_cast<char>(i);
  EXPECT_EQ(Crc32c(bytes), 0x46DD794Eu);
  for (int i = 0; i < 32; ++i) bytes[static_cast<size_t>(i)] = static_cast<char>(31 - i);
  EXPECT_EQ(Crc32c(bytes), 0x113FDB5Cu);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

uint32_t BitByBit(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
  }
  return ~crc;
}

TEST(Crc32c, AgreesWithTheDefinitionAtEveryLengthAndAlignmentAndSplit) {
  std::string bytes;
  for (int i = 0; i < 80; ++i) bytes.push_back(static_cast<char>(i * 37 + 11));
  for (size_t from = 0; from < 9; ++from) {
    for (size_t length = 0; from + length <= bytes.size(); ++length) {
      const std::string part = bytes.substr(from, length);
      ASSERT_EQ(Crc32c(bytes.data() + from, length), BitByBit(part));
      const size_t half = length / 3;
      ASSERT_EQ(ExtendCrc32c(Crc32c(part.data(), half), part.data() + half, length - half), BitByBit(part));
    }
  }
}

}  // namespace
}  // namespace deut

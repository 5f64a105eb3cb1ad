#include "dc/page_store/frame.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"

namespace deut::dc {
namespace {

constexpr Frame kTestFrame{.magic = 0x44434241, .version = 0x0102};

TEST(Frame, GoldenBytes) {
  std::string bytes = std::string(kFrameBytes, '\xEE') + "123456789";
  EXPECT_EQ(SealFrame(kTestFrame, bytes.data(), bytes.size()), FrameChecksum(bytes));
  EXPECT_EQ(absl::BytesToHexString(bytes),
            "41424344"
            "0eae6b12"
            "0201"
            "313233343536373839");
  EXPECT_EQ(FrameMagic(bytes), kTestFrame.magic);
  EXPECT_EQ(FrameVersion(bytes), kTestFrame.version);
  EXPECT_TRUE(FrameChecksumFits(bytes));
}

TEST(Frame, TheChecksumCoversAllBehindItself) {
  std::string bytes(200, 'x');
  SealFrame(kTestFrame, bytes.data(), bytes.size());
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      // The checksum does not cover the magic number, which readers check before anything else.
      EXPECT_EQ(FrameChecksumFits(bytes), at < kFrameChecksumAt) << at << " " << bit;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
    }
  }
  EXPECT_FALSE(FrameChecksumFits(bytes + "x"));
  EXPECT_FALSE(FrameChecksumFits(std::string_view(bytes).substr(0, bytes.size() - 1)));
}

TEST(Frame, MayHoldNothing) {
  std::string bytes(kFrameBytes, '\0');
  SealFrame(kTestFrame, bytes.data(), bytes.size());
  EXPECT_TRUE(FrameChecksumFits(bytes));
}

}  // namespace
}  // namespace deut::dc

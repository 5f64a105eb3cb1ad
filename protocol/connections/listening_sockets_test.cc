#include "protocol/connections/listening_sockets.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/testing/raw_socket.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

Address At(const std::string& text) { return *Address::Parse("--listen", text); }

TEST(ListeningSocketsTest, ThePortThatTheSystemChoseIsNamed) {
  const auto sockets = ListeningSockets::Open(At("127.0.0.1:0"));
  ASSERT_TRUE(sockets.ok()) << sockets.status().ToString();
  EXPECT_NE(sockets->address().port(), 0);
  EXPECT_TRUE(testing::ConnectRaw(sockets->address()).valid());
}

TEST(ListeningSocketsTest, ATakenPortIsRefusedAlsoForAWildcard) {
  const auto first = ListeningSockets::Open(At("127.0.0.1:0"));
  ASSERT_TRUE(first.ok());
  for (const std::string host : {"127.0.0.1", "localhost", "0.0.0.0", "[::]"}) {
    const auto second = ListeningSockets::Open(At(host + ":" + std::to_string(first->address().port())));
    ASSERT_FALSE(second.ok()) << host;
    EXPECT_EQ(second.status(), ErrorCode::kUnavailable);
    EXPECT_THAT(second.status().ToString(), HasSubstr("the address is taken by another process"));
  }
}

TEST(ListeningSocketsTest, AWildcardServesIpv4) {
  const auto sockets = ListeningSockets::Open(At("0.0.0.0:0"));
  ASSERT_TRUE(sockets.ok()) << sockets.status().ToString();
  EXPECT_TRUE(testing::ConnectRaw(At("127.0.0.1:" + std::to_string(sockets->address().port()))).valid());
}

TEST(ListeningSocketsTest, AnAddressOfAnotherMachineIsRefused) {
  EXPECT_EQ(ListeningSockets::Open(At("192.0.2.1:0")).status(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(ListeningSockets::Open(At("no.such.host.invalid:0")).status().ToString(),
              HasSubstr("the host is unknown"));
}

TEST(ListeningSocketsTest, ASocketFileIsRemovedAtTheEndAndReplacedIfItsOwnerIsGone) {
  const testing::TempDir dir(testing::TempDirPath::kShortPath);
  const Address address = At("unix:" + dir.Sub("s"));
  struct stat about{};
  {
    const auto sockets = ListeningSockets::Open(address);
    ASSERT_TRUE(sockets.ok()) << sockets.status().ToString();
    EXPECT_TRUE(testing::ConnectRaw(address).valid());
    EXPECT_EQ(ListeningSockets::Open(address).status(), ErrorCode::kUnavailable);
    EXPECT_TRUE(testing::ConnectRaw(address).valid()) << "a refused second server leaves the file alone";
    // A hard link keeps the file, as if the process had died.
    ASSERT_EQ(link(address.path().c_str(), dir.Sub("kept").c_str()), 0);
  }
  EXPECT_NE(lstat(address.path().c_str(), &about), 0);
  const Address kept = At("unix:" + dir.Sub("kept"));
  EXPECT_FALSE(testing::ConnectRaw(kept).valid());
  EXPECT_TRUE(ListeningSockets::Open(kept).ok());
  std::ofstream(dir.Sub("file")) << "data";
  EXPECT_EQ(ListeningSockets::Open(At("unix:" + dir.Sub("file"))).status(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace deut

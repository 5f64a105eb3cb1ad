#include "protocol/testing/raw_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>

#include "common/base/concat.h"
#include "common/base/descriptor.h"
#include "common/runtime/runtime.h"
#include "common/testing/temp_dir.h"
#include "protocol/connections/endpoint.h"

namespace deut::testing {
namespace {

// A listener on loopback, whose connections Accept returns.
class RawSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(name);
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&name), bytes), 0);
    ASSERT_EQ(listen(listener_.get(), 8), 0);
    ASSERT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &bytes), 0);
    address_ = *Address::Parse("--address", Concat("127.0.0.1:", ntohs(name.sin_port)));
  }
  Descriptor Accept() { return Descriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

  Descriptor listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Address address_;
};

TEST_F(RawSocketTest, SentBytesArrive) {
  const Descriptor client = ConnectRaw(address_);
  ASSERT_TRUE(client.valid());
  const Descriptor server = Accept();
  ASSERT_TRUE(SendRaw(client, "hello"));
  std::string received;
  ASSERT_TRUE(ReceiveRaw(server, 5, &received));
  EXPECT_EQ(received, "hello");
  ASSERT_TRUE(SendRaw(server, ", world"));
  std::string answer;
  EXPECT_TRUE(ReceiveRaw(client, 7, &answer));
  EXPECT_EQ(answer, ", world");
}

TEST_F(RawSocketTest, UnixSocketsAreConnectedByTheirPath) {
  const TempDir dir(TempDirPath::kShortPath);
  const std::string path = dir.Sub("s");
  const Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(name.sun_path));
  memcpy(name.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  EXPECT_TRUE(ConnectRaw(*Address::Parse("--address", Concat("unix:", path))).valid());
}

TEST_F(RawSocketTest, WhereNobodyListensNothingConnects) {
  listener_ = Descriptor();
  EXPECT_FALSE(ConnectRaw(address_).valid());
}

TEST_F(RawSocketTest, TheEndIsSeenBehindWhatWasSentBefore) {
  const Descriptor client = ConnectRaw(address_);
  {
    const Descriptor server = Accept();
    ASSERT_TRUE(SendRaw(server, "bye"));
  }
  std::string received;
  EXPECT_TRUE(EndsWithin(client, seconds(20), &received));
  EXPECT_EQ(received, "bye");
  EXPECT_FALSE(ReceiveRaw(client, 4, &received)) << "it has ended";
}

TEST_F(RawSocketTest, AConnectionThatStaysDoesNotEnd) {
  const Descriptor client = ConnectRaw(address_);
  const Descriptor server = Accept();
  EXPECT_FALSE(EndsWithin(client, milliseconds(20)));
  std::string received;
  EXPECT_FALSE(ReceiveRaw(client, 1, &received, milliseconds(20)));
}

TEST_F(RawSocketTest, APeerThatDoesNotReadStopsTheSender) {
  const Descriptor client = ConnectRaw(address_);
  const Descriptor server = Accept();
  EXPECT_FALSE(SendRaw(client, std::string(size_t{64} << 20, 'x'), milliseconds(50)));
}

// RFC 9113, 4.1: length in 24 bits, type, flags, stream in 31 bits.
TEST(Http2FrameTest, IsWrittenAsTheRfcDrawsIt) {
  EXPECT_EQ(Http2Frame(FrameType::kPing, kAck, 0x01020304, "12345678"),
            std::string_view("\0\0\x08\x06\x01\x01\x02\x03\x04"
                             "12345678",
                             17));
  EXPECT_EQ(Http2Frame(FrameType::kData, 0, 1, std::string(70'000, 'x')).substr(0, 3),
            std::string_view("\x01\x11\x70", 3));
}

// RFC 7541, 5.1 and 6.2.2: a length below 127 takes one byte. A longer one continues in groups of seven bits, the
// lowest first.
TEST(Http2FrameTest, HeadersAreLiterals) {
  EXPECT_EQ(LiteralHeader("te", "trailers"), std::string_view("\0\x02te\x08trailers", 13));
  EXPECT_EQ(LiteralHeader("n", std::string(127, 'v')).substr(0, 5), std::string_view("\0\x01n\x7f\x00", 5));
  EXPECT_EQ(LiteralHeader("n", std::string(1337, 'v')).substr(0, 6), std::string_view("\0\x01n\x7f\xba\x09", 6));
  EXPECT_NE(CallHeaders("/service/Method").find("/service/Method"), std::string::npos);
}

}  // namespace
}  // namespace deut::testing

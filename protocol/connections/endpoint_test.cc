#include "protocol/connections/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

TEST(EndpointTest, ParsesAndPrints) {
  for (const char* text : {"127.0.0.1:7701", "[::1]:0", "db.example.com:65535", "unix:/tmp/x.sock"}) {
    auto address = Address::Parse("--listen", text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->ToString(), text);
  }
  auto v6 = Address::Parse("--listen", "[fe80::1]:12");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host(), "fe80::1");
  EXPECT_EQ(v6->port(), 12);
  EXPECT_EQ(v6->WithPort(13).ToString(), "[fe80::1]:13");
  EXPECT_EQ(Address().ToString(), "127.0.0.1:0");
}

TEST(EndpointTest, RefusesWhatIsNoAddress) {
  for (const std::string& text :
       {std::string(""), std::string("host"), std::string("host:"), std::string(":80"), std::string("host:65536"),
        std::string("host:-1"), std::string("host:8o"), std::string("host: 80"), std::string("::1:80"),
        std::string("ho st:80"), std::string("host/x:80"), std::string("unix:"), std::string("unix:relative"),
        std::string("[]:80"), std::string("h\xc3\xb6st:80"), "unix:/" + std::string(107, 'x'),
        std::string("unix:/a\0b", 9), std::string("h:000080")}) {
    const auto address = Address::Parse("--dc", text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(address.status().ToString(), HasSubstr("--dc: \""));
    EXPECT_THAT(address.status().ToString(), HasSubstr("HOST:PORT"));
  }
}

TEST(EndpointTest, KnowsLoopback) {
  for (const char* text : {"127.0.0.1:1", "127.1.2.3:1", "localhost:1", "[::1]:1", "unix:/x"}) {
    EXPECT_TRUE(Address::Parse("", text)->is_loopback()) << text;
  }
  for (const char* text :
       {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.com:1", "128.0.0.1:1", "127.0.0.1.example.com:1"}) {
    EXPECT_FALSE(Address::Parse("", text)->is_loopback()) << text;
  }
}

TEST(EndpointTest, OffLoopbackNeedsTlsOrInsecure) {
  const Address local = *Address::Parse("", "127.0.0.1:1");
  const Address far = *Address::Parse("", "10.0.0.1:1");
  EXPECT_TRUE(CheckTransport("--listen", local, false, false).ok());
  EXPECT_TRUE(CheckTransport("--listen", far, true, false).ok());
  EXPECT_TRUE(CheckTransport("--listen", far, false, true).ok());
  const Status refused = CheckTransport("--listen", far, false, false);
  EXPECT_EQ(refused.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.ToString(), HasSubstr("--listen: 10.0.0.1:1"));
  EXPECT_THAT(refused.ToString(), HasSubstr("--insecure"));
  EXPECT_EQ(CheckTransport("--listen", local, true, true).code(), ErrorCode::kInvalidArgument);
}

TEST(EndpointTest, DiagnosesATakenPort) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  socklen_t bytes = sizeof(name);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes), 0);
  const Address taken = Address().WithPort(ntohs(name.sin_port));
  const Status status = DiagnoseListen(taken);
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(status.ToString(), HasSubstr(taken.ToString() + ": the address is taken"));
  close(fd);
  EXPECT_TRUE(DiagnoseListen(taken).ok());
}

TEST(EndpointTest, DiagnosesForeignAddressesAndHosts) {
  // 192.0.2.0/24 is reserved for documentation; no machine has it.
  EXPECT_THAT(DiagnoseListen(*Address::Parse("", "192.0.2.1:0")).ToString(), HasSubstr("no such address"));
  EXPECT_EQ(DiagnoseListen(*Address::Parse("", "no.such.host.invalid:1")).code(), ErrorCode::kInvalidArgument);
}

TEST(EndpointTest, DiagnosesUnixSockets) {
  testing::TempDir dir(testing::TempDirPath::kShortPath);
  const Address address = *Address::Parse("", "unix:" + dir.Sub("s"));
  EXPECT_TRUE(DiagnoseListen(address).ok());
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  strcpy(name.sun_path, address.path().c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  EXPECT_THAT(DiagnoseListen(address).ToString(), HasSubstr("taken"));
  close(fd);
  EXPECT_TRUE(DiagnoseListen(address).ok());  // a socket file of a dead process
  unlink(address.path().c_str());
  std::ofstream(address.path()) << "not a socket";
  EXPECT_THAT(DiagnoseListen(address).ToString(), HasSubstr("no socket"));
  EXPECT_FALSE(DiagnoseListen(*Address::Parse("", "unix:" + dir.Sub("none/s"))).ok());
}

}  // namespace
}  // namespace deut

#include "protocol/rpc/rpc_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/concat.h"
#include "common/base/status.h"
#include "common/observe/limited_log.h"
#include "common/runtime/runtime.h"
#include "common/testing/recorded_log.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/raw_socket.h"
#include "protocol/testing/test_authority.h"

namespace deut {
namespace {

void Say(const std::string& message, gpr_log_severity severity = GPR_LOG_SEVERITY_ERROR) {
  gpr_log_func_args args{
      .file = "src/core/tsi/some_file.cc", .line = 17, .severity = severity, .message = message.c_str()};
  LogFromRpc(&args);
}

// The process has one pace, so earlier messages may still suppress the next line.
void AwaitPace() { RealRuntime().SleepUntil(RealRuntime().Now() + kRpcLogEvery); }

TEST(RpcLogTest, AMessageIsALineWithItsPlace) {
  AwaitPace();
  testing::RecordedLog lines;
  Say("something odd");
  EXPECT_EQ(lines.lines(), std::vector<std::string>{"gRPC: something odd (some_file.cc:17)"});
}

// gRPC logs this once for every TLS connection of a client.
TEST(RpcLogTest, AServerNameThatNoCertificateHasIsNotLogged) {
  AwaitPace();
  testing::RecordedLog lines;
  for (int i = 0; i < 50; ++i) Say("No match found for server name: store.example.");
  EXPECT_EQ(lines.lines(), std::vector<std::string>{});
  // It does not suppress another message either.
  Say("something odd");
  EXPECT_EQ(lines.lines(), std::vector<std::string>{"gRPC: something odd (some_file.cc:17)"});
}

// Like the test above, with a real connection.
TEST(RpcLogTest, ATlsConnectionOfAGoodClientLeavesNoLine) {
  gpr_set_log_function(LogFromRpc);
  testing::TestAuthority authority("ca");
  const testing::Loopback loopback({}, authority.Identity("server", {"elsewhere.example"}, {"client"}));
  const auto client = loopback.Peer(authority.Identity("client", {}, {"asked-for.example", "elsewhere.example"}));
  AwaitPace();
  const testing::RecordedLog lines;
  const Result<int> health = testing::Health(*client);
  EXPECT_TRUE(health.ok()) << health.status().ToString();
  EXPECT_EQ(lines.lines(), std::vector<std::string>{});
}

TEST(RpcLogTest, AnAddressThatIsInUseIsLeftToTheErrorOfTheStart) {
  AwaitPace();
  testing::RecordedLog lines;
  Say("No address added out of total 1 resolved for '127.0.0.1:7701'");
  EXPECT_EQ(lines.lines(), std::vector<std::string>{});
}

// The process has one limit for these lines. So this test and the next one come before the one that reaches it.
TEST(RpcLogTest, ALongReasonOfARefusedHandshakeIsCutOff) {
  testing::RecordedLog lines;
  Say("Handshake failed with " + std::string(2 * kMaxRpcMessageBytes, 'x'));
  ASSERT_EQ(lines.lines().size(), 1u);
  EXPECT_LT(lines.lines().front().size(), kMaxRpcMessageBytes + 100);
}

TEST(RpcLogTest, ARefusedHandshakeIsALineOfAddressAndReason) {
  gpr_set_log_function(LogFromRpc);
  testing::TestAuthority authority("ca"), foreign("another");
  const testing::Loopback loopback({}, authority.Identity("server", {}, {"client"}));
  const auto issued = foreign.Issue("client", {});
  const auto client = loopback.Peer(std::make_shared<TlsIdentity>(TlsIdentity{
      .cert_pem = issued.cert_pem, .key_pem = issued.key_pem, .ca_pem = authority.ca_pem(), .allow = {"server"}}));
  testing::RecordedLog lines;
  EXPECT_FALSE(testing::Health(*client).ok());
  EXPECT_TRUE(testing::Eventually([&] {
    return lines.HasLineWith("a TLS handshake was refused, of a peer at 127.0.0.1:", "");
  })) << ::testing::PrintToString(lines.lines());
  EXPECT_TRUE(lines.HasLineWith("(unable to get local issuer certificate)", "certificate verify failed"))
      << ::testing::PrintToString(lines.lines());
  // A connection that does not use TLS.
  const Descriptor plain = testing::ConnectRaw(loopback.address());
  EXPECT_TRUE(testing::SendRaw(plain, "GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(testing::Eventually([&] { return lines.HasLineWith("of a peer at 127.0.0.1:", "http request"); }))
      << ::testing::PrintToString(lines.lines());
}

TEST(RpcLogTest, RefusedHandshakesHaveALimitOfTheirOwn) {
  AwaitPace();
  testing::RecordedLog lines;
  for (int i = 0; i < 3 * LimitedLog::kMaxLinesPerPeriod; ++i) Say(Concat("Handshake failed with error ", i));
  Say("something odd");
  EXPECT_LT(lines.lines().size(), size_t{3} * LimitedLog::kMaxLinesPerPeriod);
  EXPECT_EQ(lines.lines().front(), "a TLS handshake was refused: Handshake failed with error 0");
  EXPECT_TRUE(lines.HasLineWith("gRPC: something odd", ""));
}

TEST(RpcLogTest, AFloodIsCounted) {
  AwaitPace();
  testing::RecordedLog lines;
  const MonotonicTime first = RealRuntime().Now();
  for (int i = 0; i < 1000; ++i) Say("illegal header");
  const auto most = static_cast<size_t>((RealRuntime().Now() - first) / kRpcLogEvery) + 1;
  EXPECT_LE(lines.lines().size(), most);
  AwaitPace();
  Say("illegal header");
  EXPECT_TRUE(lines.HasLineWith("illegal header", "more messages of gRPC were not logged"));
}

TEST(RpcLogTest, ALongMessageIsCutOff) {
  AwaitPace();
  testing::RecordedLog lines;
  Say(std::string(2 * kMaxRpcMessageBytes, 'x'));
  EXPECT_LT(lines.lines().front().size(), kMaxRpcMessageBytes + 100);
}

}  // namespace
}  // namespace deut

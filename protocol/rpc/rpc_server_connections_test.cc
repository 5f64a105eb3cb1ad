// Connections to a server that are not from real clients: silent ones, incomplete ones, too many.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/data/grpc_data_component_service.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/raw_socket.h"
#include "protocol/testing/scripted_data_component.h"
#include "protocol/testing/test_authority.h"

namespace deut {
namespace {

class RpcServerConnectionsTest : public ::testing::TestWithParam<bool> {
 protected:
  void Start(const ConnectionLimits& connections, Duration handshake_timeout) {
    RpcServerOptions options;
    options.connections = connections;
    options.handshake_timeout = handshake_timeout;
    if (GetParam()) {
      const auto identity = authority_.Identity("server", {"server"}, {"client"});
      options.tls = testing::Loopback::KeysOf(identity);
      options.access = testing::Loopback::EveryRole(identity);
    }
    auto server = RpcServer::Start(RealRuntime(), options, {service_.service()});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(*server);
    server_->SetServing(true);
  }
  std::shared_ptr<const RpcPeer> Peer() {
    auto tls = GetParam() ? authority_.Identity("client", {"client"}, {"server"}) : nullptr;
    return *RpcPeer::Create("the server", "--server", server_->address(), testing::Loopback::KeysOf(std::move(tls)),
                            /*insecure=*/false);
  }
  Descriptor Connect() { return testing::ConnectRaw(server_->address()); }
  bool OpenAre(uint64_t count) {
    return testing::Eventually([&] { return server_->connections().open == count; });
  }

  testing::TestAuthority authority_{"ca"};
  testing::ScriptedDataComponent component_{RealRuntime()};
  GrpcDataComponentService service_{RealRuntime(), component_, RpcServiceOptions()};
  std::unique_ptr<RpcServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Transports, RpcServerConnectionsTest, ::testing::Bool(),
                         [](const auto& about) { return about.param ? "Tls" : "Plain"; });

TEST_P(RpcServerConnectionsTest, AHalfHandshakeEndsAtItsTimeout) {
  Start({}, milliseconds(600));
  const std::string half_hello("\x16\x03\x01\x02\x00\x01", 6);
  const std::vector<std::string> begins = {"", GetParam() ? half_hello : "PRI * HTTP/2.0\r\n",
                                           GetParam() ? half_hello : std::string(testing::kHttp2Preface)};
  std::vector<Descriptor> sockets;
  for (const std::string& begin : begins) {
    sockets.push_back(Connect());
    ASSERT_TRUE(sockets.back().valid() && testing::SendRaw(sockets.back(), begin));
  }
  ASSERT_TRUE(testing::Eventually([&] { return server_->connections().accepted == begins.size(); }));
  for (size_t i = 0; i < sockets.size(); ++i) EXPECT_TRUE(testing::EndsWithin(sockets[i], seconds(10))) << i;
  EXPECT_TRUE(OpenAre(0));
  EXPECT_EQ(*testing::Health(*Peer()), 1);
}

TEST_P(RpcServerConnectionsTest, AConnectionThatIsUsedOutlivesTheHandshakeTimeout) {
  Start({}, milliseconds(300));
  const auto peer = Peer();
  const auto channel = peer->NewChannel(RpcTraffic::kShort);
  ASSERT_TRUE(
      channel->WaitForConnected(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN))));
  ASSERT_TRUE(OpenAre(1));
  RealRuntime().SleepUntil(RealRuntime().Now() + milliseconds(900));
  EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
  EXPECT_EQ(server_->connections().open, 1u);
}

TEST_P(RpcServerConnectionsTest, AFloodOfSilentConnectionsLeavesClientsAloneAndPasses) {
  Start({.max_connections = 64, .max_connections_per_peer = 64}, seconds(2));
  const auto peer = Peer();
  ASSERT_EQ(*testing::Health(*peer), 1);
  const uint64_t before = server_->connections().accepted;
  std::vector<Descriptor> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(Connect());
  ASSERT_TRUE(testing::Eventually([&] {
    const ConnectionCounts counts = server_->connections();
    return counts.accepted + counts.refused - before == flood.size();
  }));
  EXPECT_LE(server_->connections().open, 64u);
  EXPECT_GE(server_->connections().refused, 100u);
  // The handshake timeout makes room while the flood holds its sockets open.
  EXPECT_TRUE(testing::Eventually([&] { return testing::Health(*peer).ok(); }))
      << testing::Health(*peer).status().ToString();
  flood.clear();
  EXPECT_TRUE(testing::Eventually([&] { return server_->connections().open <= 2; }));
  EXPECT_EQ(*testing::Health(*Peer()), 1);
}

TEST_P(RpcServerConnectionsTest, ShutdownEndsAllConnectionsAndThePortIsFree) {
  Start({}, seconds(20));
  const Address address = server_->address();
  const auto peer = Peer();
  ASSERT_EQ(*testing::Health(*peer), 1);
  const Descriptor silent = Connect();
  ASSERT_TRUE(testing::Eventually([&] { return server_->connections().accepted >= 2; }));
  server_->Shutdown(RealRuntime().Now());
  EXPECT_TRUE(testing::EndsWithin(silent, seconds(10)));
  server_.reset();
  EXPECT_FALSE(testing::ConnectRaw(address).valid());
}

}  // namespace
}  // namespace deut

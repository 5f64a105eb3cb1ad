#include "protocol/peer_addresses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "protocol/rpc_peer.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/test_authority.h"
#include "protocol/tls.h"

namespace deut {
namespace {

class PeerAddressesTest : public ::testing::Test {
 protected:
  std::shared_ptr<const TlsIdentity> Client(const std::string& name) {
    return authority_.Identity(name, {}, {"server"});
  }
  // Open for as long as the channel that is answered.
  std::shared_ptr<grpc::Channel> Connect(const std::shared_ptr<const TlsIdentity>& identity) {
    auto channel = loopback_.Peer(identity)->NewChannel(RpcTraffic::kShort);
    EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
    return channel;
  }

  testing::TestAuthority authority_{"ca"};
  testing::Loopback loopback_{{}, authority_.Identity("server", {"server", "localhost"}, {"client", "another"})};
};

TEST_F(PeerAddressesTest, TellsFromWhereTheHolderOfACertificateIsConnected) {
  const auto client = Client("client"), another = Client("another");
  const auto one = Connect(client);
  EXPECT_TRUE(testing::Eventually([&] { return PeerAddresses(client->cert_pem).starts_with("127.0.0.1:"); }))
      << PeerAddresses(client->cert_pem);
  EXPECT_EQ(PeerAddresses(another->cert_pem), "an unknown address");
  const auto two = Connect(another);
  EXPECT_TRUE(testing::Eventually([&] { return PeerAddresses(another->cert_pem).starts_with("127.0.0.1:"); }));
  EXPECT_NE(PeerAddresses(another->cert_pem), PeerAddresses(client->cert_pem));
}

TEST_F(PeerAddressesTest, TellsAtMostThree) {
  const auto client = Client("client");
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 5; ++i) channels.push_back(Connect(client));
  const auto commas = [&] { return std::ranges::count(PeerAddresses(client->cert_pem), ','); };
  EXPECT_TRUE(testing::Eventually([&] { return commas() == 2; })) << PeerAddresses(client->cert_pem);
}

TEST_F(PeerAddressesTest, ACertificateThatNobodyHasShownIsUnknown) {
  EXPECT_EQ(PeerAddresses(""), "an unknown address");
  EXPECT_EQ(PeerAddresses("rubbish"), "an unknown address");
}

}  // namespace
}  // namespace deut

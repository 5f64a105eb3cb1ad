#include "protocol/connections/peer_key.h"

#include <arpa/inet.h>

#include <string>

#include "gtest/gtest.h"

namespace deut {
namespace {

PeerKey Peer(const std::string& address) {
  sockaddr_storage name{};
  if (address.find(':') == std::string::npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(name);
    v4.sin_family = AF_INET;
    inet_pton(AF_INET, address.c_str(), &v4.sin_addr);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(name);
    v6.sin6_family = AF_INET6;
    inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr);
  }
  return PeerKey::Of(name);
}

TEST(PeerKeyTest, AnIpv6HostIsCountedByItsNetwork) {
  EXPECT_EQ(Peer("2001:db8:1:2::1"), Peer("2001:db8:1:2:ffff::9"));
  EXPECT_FALSE(Peer("2001:db8:1:2::1") == Peer("2001:db8:1:3::1"));
  EXPECT_EQ(Peer("::ffff:192.0.2.7"), Peer("192.0.2.7"));
  EXPECT_FALSE(Peer("192.0.2.7") == Peer("192.0.2.8"));
  EXPECT_EQ(Peer("192.0.2.7").ToString(), "192.0.2.7");
  EXPECT_EQ(Peer("2001:db8:1:2::1").ToString(), "2001:db8:1:2::/64");
}

TEST(PeerKeyTest, APeerOfRpcIsCountedByItsAddressWithoutThePort) {
  EXPECT_EQ(PeerKey::OfRpc("ipv4:192.0.2.7:51234"), Peer("192.0.2.7"));
  EXPECT_EQ(PeerKey::OfRpc("ipv4:192.0.2.7:51235"), Peer("192.0.2.7"));
  EXPECT_EQ(PeerKey::OfRpc("ipv6:%5B2001:db8:1:2::1%5D:51234"), Peer("2001:db8:1:2::"));
  EXPECT_EQ(PeerKey::OfRpc("ipv6:%5B::ffff:192.0.2.7%5D:51234"), Peer("192.0.2.7"));
  EXPECT_EQ(PeerKey::OfRpc("ipv6:%5Bfe80::1%252%5D:51234"), Peer("fe80::1"));
}

// A client may bind its end of a Unix socket to any path.
TEST(PeerKeyTest, AllOtherPeersOfRpcAreOne) {
  for (const char* peer : {"unix:", "unix:/run/one", "unix-abstract:two", "unknown", "", "ipv4:", "ipv4:192.0.2:1",
                           "ipv6:%5B::1", "ipv6:%5Bg%5D:1"}) {
    EXPECT_EQ(PeerKey::OfRpc(peer), PeerKey()) << peer;
  }
  EXPECT_EQ(PeerKey().ToString(), "a local peer");
}

}  // namespace
}  // namespace deut

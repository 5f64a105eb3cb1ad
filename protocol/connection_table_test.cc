#include "protocol/connection_table.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include <string>

#include "common/runtime/runtime.h"
#include "gtest/gtest.h"

namespace deut {
namespace {

using Answer = ConnectionTable::Answer;

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

Descriptor Some() { return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(PeerKeyTest, AnIpv6HostIsCountedByItsNetwork) {
  EXPECT_EQ(Peer("2001:db8:1:2::1"), Peer("2001:db8:1:2:ffff::9"));
  EXPECT_FALSE(Peer("2001:db8:1:2::1") == Peer("2001:db8:1:3::1"));
  EXPECT_EQ(Peer("::ffff:192.0.2.7"), Peer("192.0.2.7"));
  EXPECT_FALSE(Peer("192.0.2.7") == Peer("192.0.2.8"));
  EXPECT_EQ(Peer("192.0.2.7").ToString(), "192.0.2.7");
  EXPECT_EQ(Peer("2001:db8:1:2::1").ToString(), "2001:db8:1:2::/64");
}

TEST(ConnectionTableTest, OnePeerCannotTakeTheRoomOfAnother) {
  ConnectionTable table(RealRuntime(), {.max_connections = 4, .max_connections_per_peer = 2});
  EXPECT_EQ(table.Admit(Peer("192.0.2.1")), Answer::kAdmitted);
  EXPECT_EQ(table.Admit(Peer("192.0.2.1")), Answer::kAdmitted);
  EXPECT_EQ(table.Admit(Peer("192.0.2.1")), Answer::kTooManyOfPeer);
  EXPECT_EQ(table.Admit(Peer("192.0.2.2")), Answer::kAdmitted);
  EXPECT_EQ(table.Admit(Peer("192.0.2.3")), Answer::kAdmitted);
  EXPECT_EQ(table.Admit(Peer("192.0.2.2")), Answer::kTooMany);
  table.Withdraw(Peer("192.0.2.1"));
  EXPECT_EQ(table.Admit(Peer("192.0.2.1")), Answer::kAdmitted);
}

TEST(ConnectionTableTest, LocalPeersHaveNoCapOfTheirOwn) {
  ConnectionTable table(RealRuntime(), {.max_connections = 4, .max_connections_per_peer = 1});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(table.Admit(PeerKey()), Answer::kAdmitted);
  EXPECT_EQ(table.Admit(PeerKey()), Answer::kTooMany);
}

TEST(ConnectionTableTest, RoomComesBackOnceForEachConnection) {
  ConnectionTable table(RealRuntime(), {.max_connections = 1, .max_connections_per_peer = 1});
  const PeerKey peer = Peer("192.0.2.1");
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(table.Admit(peer), Answer::kAdmitted);
    const int watched = table.Add(peer, Some());
    EXPECT_EQ(table.open(), 1u);
    EXPECT_TRUE(table.Remove(watched));
    EXPECT_FALSE(table.Remove(watched));
    EXPECT_EQ(table.open(), 0u);
  }
}

}  // namespace
}  // namespace deut

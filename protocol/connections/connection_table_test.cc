#include "protocol/connections/connection_table.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/runtime/runtime.h"
#include "gtest/gtest.h"
#include "protocol/connections/endpoint.h"
#include "protocol/connections/listening_sockets.h"
#include "protocol/testing/raw_socket.h"

namespace deut {
namespace {

using Answer = ConnectionTable::Answer;

PeerKey Peer(const std::string& address) { return PeerKey::OfRpc(Concat("ipv4:", address, ":1")); }

Descriptor Some() { return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

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

// Time passes when a test says so.
class ShiftedRuntime final : public Runtime {
 public:
  std::atomic<int64_t> shift_ns{0};
  MonotonicTime Now() override { return RealRuntime().Now() + nanoseconds(shift_ns.load()); }
  int64_t WallMicros() override { return RealRuntime().WallMicros(); }
  uint64_t RandomSeed() override { return RealRuntime().RandomSeed(); }
  std::unique_ptr<Thread> StartThread(std::string name, std::function<void()> body) override {
    return RealRuntime().StartThread(std::move(name), std::move(body));
  }
  bool Wait(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) override {
    return RealRuntime().Wait(word, expected, deadline);
  }
  void Wake(const std::atomic<uint32_t>& word, int waiters) override { RealRuntime().Wake(word, waiters); }
  void Yield() override { RealRuntime().Yield(); }
};

// Real connections of this host, which the table is told to be of any peer.
class SilentConnectionsTest : public ::testing::Test {
 protected:
  // Adds a connection of `peer` that sends nothing.
  void AddSilent(ConnectionTable& table, const PeerKey& peer) {
    ASSERT_EQ(table.Admit(peer), Answer::kAdmitted);
    clients_.push_back(testing::ConnectRaw(listening_.address()));
    pollfd arrives{.fd = listening_.sockets().front().get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&arrives, 1, 20'000), 1);
    servers_.emplace_back(accept4(arrives.fd, nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(servers_.back().valid());
    table.Add(peer, Descriptor(fcntl(servers_.back().get(), F_DUPFD_CLOEXEC, 0)));
  }
  bool IsOpen(size_t which) {
    char byte = 0;
    return recv(clients_[which].get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  void PassGrace() { runtime_.shift_ns += duration_cast<nanoseconds>(ConnectionTable::kSilentGrace).count(); }

  ShiftedRuntime runtime_;
  ListeningSockets listening_ = std::move(ListeningSockets::Open(*Address::Parse("--listen", "127.0.0.1:0"))).value();
  std::vector<Descriptor> clients_, servers_;
};

// The peer that arrives decides which connections make way. One of many peers was looked at, in the order of their hashes; when that one was near
// its cap, the oldest silent connections of all peers were shut down.
TEST_F(SilentConnectionsTest, APeerNearItsCapMakesWayForItselfAlone) {
  constexpr size_t kOthers = 100, kOfPeer = 16, kMaxPerCall = ConnectionTable::kMaxShutDownPerCall;
  ConnectionTable table(runtime_, {.max_connections = 1000, .max_connections_per_peer = kOfPeer});
  for (size_t i = 0; i < kOthers; ++i) AddSilent(table, Peer("198.51.100." + std::to_string(i)));
  for (size_t i = 0; i < kOfPeer; ++i) AddSilent(table, Peer("192.0.2.1"));
  PassGrace();
  for (size_t i = 0; i < kOthers; ++i) {
    EXPECT_EQ(table.ShutDownSilent(Peer("198.51.100." + std::to_string(i))), 0u);
  }
  EXPECT_EQ(table.ShutDownSilent(Peer("203.0.113.1")), 0u) << "a peer that comes for the first time";
  EXPECT_EQ(table.ShutDownSilent(Peer("192.0.2.1")), kMaxPerCall);
  for (size_t i = 0; i < clients_.size(); ++i) EXPECT_EQ(IsOpen(i), i < kOthers || i >= kOthers + kMaxPerCall) << i;
  // The next ones of the same peer.
  EXPECT_EQ(table.ShutDownSilent(Peer("192.0.2.1")), kMaxPerCall);
  EXPECT_FALSE(IsOpen(kOthers + 2 * kMaxPerCall - 1));
  EXPECT_TRUE(IsOpen(kOthers + 2 * kMaxPerCall));
}

TEST_F(SilentConnectionsTest, WhenTheTableIsAlmostFullTheOldestOfAllMakeWay) {
  ConnectionTable table(runtime_, {.max_connections = 8, .max_connections_per_peer = 8});
  for (int i = 0; i < 8; ++i) AddSilent(table, Peer("198.51.100." + std::to_string(i)));
  PassGrace();
  EXPECT_EQ(table.ShutDownSilent(Peer("203.0.113.1")), ConnectionTable::kMaxShutDownPerCall);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(IsOpen(i), i >= ConnectionTable::kMaxShutDownPerCall) << i;
}

}  // namespace
}  // namespace deut

// The bound on the memory for all messages and connections of a server's peers: RpcServerOptions::memory_bytes.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/concat.h"
#include "common/base/descriptor.h"
#include "common/runtime/runtime.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/testing/loopback.h"
#include "protocol/testing/raw_socket.h"

namespace deut {
namespace {

using testing::FrameType;
using testing::Http2Frame;

constexpr size_t kPeers = 128;
constexpr size_t kSentByEach = 60'000;  // below the first window of a connection

// Each peer begins a call with a message of 4 MiB, and stops after the first part of it.
class HalfMessages {
 public:
  explicit HalfMessages(const Address& server) {
    std::string bytes = Concat(
        testing::kHttp2Preface, Http2Frame(FrameType::kSettings, 0, 0, ""),
        Http2Frame(FrameType::kHeaders, testing::kEndHeaders, 1, testing::CallHeaders("/grpc.health.v1.Health/Check")),
        Http2Frame(FrameType::kData, 0, 1, std::string("\0\0\x3f\xff\0", 5)));
    constexpr size_t kFrame = 10'000;
    for (size_t sent = 0; sent < kSentByEach; sent += kFrame)
      bytes += Http2Frame(FrameType::kData, 0, 1, std::string(kFrame, 'x'));
    for (size_t i = 0; i < kPeers; ++i) {
      peers_.push_back({testing::ConnectRaw(server), ""});
      EXPECT_TRUE(testing::SendRaw(peers_.back().socket, bytes));
    }
  }

  // The number of calls that the server has ended.
  size_t Ended() {
    size_t ended = 0;
    for (Peer& peer : peers_) ended += HasEnded(peer) ? 1 : 0;
    return ended;
  }

 private:
  struct Peer {
    Descriptor socket;
    std::string received;
  };

  static bool HasEnded(Peer& peer) {
    char bytes[4096];
    for (;;) {
      const ssize_t count = recv(peer.socket.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
      if (count == 0) return true;
      if (count < 0) break;
      peer.received.append(bytes, static_cast<size_t>(count));
    }
    // Frames: three bytes of length, one of type, one of flags, four of stream.
    std::string_view rest = peer.received;
    while (rest.size() >= 9) {
      const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(rest[i])); };
      const size_t length = 9 + (byte(0) << 16 | byte(1) << 8 | byte(2));
      if (byte(3) == static_cast<size_t>(FrameType::kResetStream)) return true;
      if (byte(3) == static_cast<size_t>(FrameType::kHeaders)) return true;  // an error without a message
      if (rest.size() < length) break;
      rest.remove_prefix(length);
    }
    return false;
  }

  std::vector<Peer> peers_;
};

std::unique_ptr<RpcServer> Start(size_t memory_bytes) {
  RpcServerOptions options;
  options.memory_bytes = memory_bytes;
  auto server = RpcServer::Start(RealRuntime(), options, {});
  EXPECT_TRUE(server.ok()) << server.status().ToString();
  (*server)->SetServing(true);
  return std::move(*server);
}

std::shared_ptr<const RpcPeer> PeerOf(const RpcServer& server) {
  return *RpcPeer::Create("the server", "--server", server.address(), nullptr, /*insecure=*/false);
}

TEST(RpcServerMemoryTest, PeersMayUseAnEighthOfASmallMachine) {
  EXPECT_EQ(PeerMemoryBytes(UINT64_MAX), 256u << 20);
  EXPECT_EQ(PeerMemoryBytes(uint64_t{2} << 30), 256u << 20);
  EXPECT_EQ(PeerMemoryBytes(uint64_t{1} << 30), 128u << 20);
}

TEST(RpcServerMemoryTest, ASmallBudgetBoundsPeersAsASmallMachineDoes) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(MemoryBesideBudget(64 << 10, std::nullopt), 64u << 10);
  EXPECT_EQ(MemoryBesideBudget(UINT64_MAX, 0), UINT64_MAX);
  EXPECT_EQ(MemoryBesideBudget(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
  EXPECT_EQ(MemoryBesideBudget(100'000 * kMiB, 256 * kMiB), 512 * kMiB);
  EXPECT_EQ(MemoryBesideBudget(300 * kMiB, 256 * kMiB), 300 * kMiB);
  EXPECT_EQ(PeerMemoryBytes(MemoryBesideBudget(UINT64_MAX, 32 * kMiB)), 16 * kMiB) << "four of the largest messages";
}

TEST(RpcServerMemoryTest, IdleConnectionsFitAnEighthOfTheMemory) {
  EXPECT_EQ(DefaultMaxConnections(UINT64_MAX, /*tls=*/true), 16'384u);
  EXPECT_EQ(DefaultMaxConnections(uint64_t{24} << 30, /*tls=*/true), 16'384u);
  EXPECT_EQ(DefaultMaxConnections(uint64_t{1} << 30, /*tls=*/true), 682u);
  EXPECT_EQ(DefaultMaxConnections(uint64_t{1} << 30, /*tls=*/false), 5461u);
}

TEST(RpcServerMemoryTest, CallsThatHoldMoreThanItsMemoryAreEnded) {
  const auto server = Start(kPeers * kSentByEach / 4);
  HalfMessages half(server->address());
  EXPECT_TRUE(testing::Eventually([&] { return half.Ended() >= kPeers / 4; })) << half.Ended();
  EXPECT_TRUE(testing::Eventually([&] {
    const Result<int> health = testing::Health(*PeerOf(*server));
    return health.ok() && *health == 1;
  })) << "others are served";
}

// A call that has sent its whole message, and waits for the server's next answer.
class Watch {
 public:
  explicit Watch(const Address& server) : socket_(testing::ConnectRaw(server)) {
    EXPECT_TRUE(
        testing::SendRaw(socket_, Concat(testing::kHttp2Preface, Http2Frame(FrameType::kSettings, 0, 0, ""),
                                         Http2Frame(FrameType::kHeaders, testing::kEndHeaders, 1,
                                                    testing::CallHeaders("/grpc.health.v1.Health/Watch")),
                                         Http2Frame(FrameType::kData, testing::kEndStream, 1, std::string(5, '\0')))));
  }
  bool Hears(bool serving) {
    const std::string answer =
        Http2Frame(FrameType::kData, 0, 1, std::string("\0\0\0\0\2\x08", 6) + (serving ? '\1' : '\2'));
    while (received_.find(answer) == std::string::npos) {
      if (!testing::ReceiveRaw(socket_, received_.size() + 1, &received_)) return false;
    }
    received_.clear();
    return true;
  }

 private:
  const Descriptor socket_;
  std::string received_;
};

// gRPC used to close connections without calls first, those of new clients among them. Then it ended calls regardless of the memory that they held,
// those of the oldest connection first.
TEST(RpcServerMemoryTest, HalfMessagesOfOthersEndNoCallThatHoldsNone) {
  const auto server = Start(kPeers * kSentByEach / 4);
  Watch watch(server->address());
  ASSERT_TRUE(watch.Hears(true));
  HalfMessages first(server->address()), second(server->address());
  for (int i = 0; i < 100; ++i) {
    const Result<int> health = testing::Health(*PeerOf(*server));
    ASSERT_TRUE(health.ok()) << health.status().ToString();
  }
  EXPECT_TRUE(testing::Eventually([&] { return first.Ended() + second.Ended() >= kPeers; }));
  server->SetServing(false);
  EXPECT_TRUE(watch.Hears(false));
}

TEST(RpcServerMemoryTest, CallsWithinItsMemoryAreLeftAlone) {
  const auto server = Start(RpcServerOptions().memory_bytes);
  HalfMessages half(server->address());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(*testing::Health(*PeerOf(*server)), 1);
    EXPECT_EQ(half.Ended(), 0u);
  }
}

}  // namespace
}  // namespace deut

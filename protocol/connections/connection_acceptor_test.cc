#include "protocol/connections/connection_acceptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "common/testing/recorded_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/testing/raw_socket.h"

namespace deut {
namespace {

using ::testing::HasSubstr;

// An acceptor, with a list of sockets in gRPC's place.
class ConnectionAcceptorTest : public ::testing::Test {
 protected:
  void Start(const ConnectionLimits& limits) {
    auto acceptor = ConnectionAcceptor::Create(RealRuntime(), *Address::Parse("--listen", "127.0.0.1:0"), limits);
    ASSERT_TRUE(acceptor.ok()) << acceptor.status().ToString();
    acceptor_ = std::move(*acceptor);
    acceptor_->Start([this](Descriptor socket, const std::shared_ptr<HandshakePace::Slot>&) {
      const MutexLock lock(mutex_);
      sockets_.push_back(std::move(socket));
    });
  }
  Descriptor Connect() { return testing::ConnectRaw(acceptor_->address()); }
  // Ends the first connection as gRPC would.
  void EndFirst() {
    const MutexLock lock(mutex_);
    shutdown(sockets_.front().get(), SHUT_RDWR);
    sockets_.erase(sockets_.begin());
  }
  static bool Eventually(const std::function<bool()>& condition) {
    const MonotonicTime end = RealRuntime().Now() + seconds(20);
    while (!condition()) {
      if (RealRuntime().Now() > end) return false;
      RealRuntime().SleepUntil(RealRuntime().Now() + microseconds(200));
    }
    return true;
  }
  // Waits until `count` connections are open and handed over.
  bool OpenAre(uint64_t count) {
    return Eventually([&] {
      const MutexLock lock(mutex_);
      return acceptor_->counts().open == count && sockets_.size() >= count;
    });
  }

  ::deut::testing::RecordedLog log_;
  Mutex mutex_{RealRuntime()};
  std::vector<Descriptor> sockets_ DEUT_GUARDED_BY(mutex_);
  std::unique_ptr<ConnectionAcceptor> acceptor_;
};

TEST_F(ConnectionAcceptorTest, ConnectionsBeyondTheCapAreClosedAtOnceAndCounted) {
  Start({.max_connections = 2, .max_connections_per_peer = 100});
  const Descriptor first = Connect(), second = Connect();
  ASSERT_TRUE(OpenAre(2));
  const Descriptor third = Connect();
  EXPECT_TRUE(testing::EndsWithin(third, seconds(10)));
  EXPECT_EQ(acceptor_->counts().refused, 1u);
  EXPECT_THAT(log_.text(),
              HasSubstr("a connection from 127.0.0.1 is closed: 2 are open, the limit of --max_connections"));
  EndFirst();
  ASSERT_TRUE(OpenAre(1));
  const Descriptor fourth = Connect();
  EXPECT_TRUE(OpenAre(2));
  EXPECT_EQ(acceptor_->counts().accepted, 3u);
}

TEST_F(ConnectionAcceptorTest, ConnectionsOfOnePeerBeyondItsCapAreClosedAtOnce) {
  Start({.max_connections = 100, .max_connections_per_peer = 1});
  const Descriptor first = Connect();
  ASSERT_TRUE(OpenAre(1));
  EXPECT_TRUE(testing::EndsWithin(Connect(), seconds(10)));
  EXPECT_EQ(acceptor_->counts().refused_of_peer, 1u);
  EXPECT_THAT(log_.text(), HasSubstr("1 are open from there, the limit of --max_connections_per_peer"));
}

TEST_F(ConnectionAcceptorTest, AResetByThePeerIsCountedAsTheEnd) {
  Start({});
  Descriptor client = Connect();
  ASSERT_TRUE(OpenAre(1));
  const linger reset{.l_onoff = 1, .l_linger = 0};
  setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  client.Reset();
  EXPECT_TRUE(OpenAre(0));
}

TEST_F(ConnectionAcceptorTest, WhenAlmostFullTheOldestSilentConnectionsGo) {
  Start({.max_connections = 32, .max_connections_per_peer = 32});
  std::vector<Descriptor> talking, silent;
  for (int i = 0; i < 4; ++i) {
    talking.push_back(Connect());
    ASSERT_TRUE(testing::SendRaw(talking.back(), "x"));
  }
  for (int i = 0; i < 25; ++i) silent.push_back(Connect());
  ASSERT_TRUE(OpenAre(29));
  RealRuntime().SleepUntil(RealRuntime().Now() + ConnectionTable::kSilentGrace + milliseconds(10));
  const Descriptor late = Connect();
  EXPECT_TRUE(testing::EndsWithin(silent.front(), seconds(10)));
  // The acceptor counts them after it has shut them down, so their peers may see the end first.
  EXPECT_TRUE(Eventually([&] { return acceptor_->counts().silent == ConnectionTable::kMaxShutDownPerCall; }))
      << acceptor_->counts().silent;
  for (const Descriptor& each : talking) EXPECT_FALSE(testing::EndsWithin(each, milliseconds(20)));
}

TEST_F(ConnectionAcceptorTest, WithoutDescriptorsConnectionsAreClosedAndTheNextOnesServed) {
  Start({});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<Descriptor> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  std::vector<Descriptor> taken;
  rlimit low = before;
  low.rlim_cur = 128;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (;;) {
    Descriptor one(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!one.valid()) break;
    taken.push_back(std::move(one));
  }
  ASSERT_EQ(errno, EMFILE);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(acceptor_->address().port());
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (const Descriptor& client : clients) {
    ASSERT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    EXPECT_TRUE(testing::EndsWithin(client, seconds(10)));
  }
  EXPECT_GE(acceptor_->counts().refused_no_descriptor, 3u);
  EXPECT_EQ(log_.Count("accepting a connection: Too many open files"), 1u) << log_.text();
  taken.clear();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  // When descriptors are available again, the acceptor may still close connections that waited. So the first new ones
  // may be closed, too.
  Descriptor late;
  EXPECT_TRUE(Eventually([&] {
    late = Connect();
    return !testing::EndsWithin(late, milliseconds(50)) && acceptor_->counts().open == 1;
  }));
}

TEST_F(ConnectionAcceptorTest, OnceStoppedNothingIsHandedOver) {
  Start({});
  const Descriptor first = Connect();
  ASSERT_TRUE(OpenAre(1));
  acceptor_->StopAccepting();
  EXPECT_FALSE(Connect().valid());
  EXPECT_EQ(acceptor_->counts().accepted, 1u);
  EndFirst();
  EXPECT_TRUE(OpenAre(0)) << "connections are watched to the end";
}

}  // namespace
}  // namespace deut

// Tests that each fault is visible from outside: a client and a server of plain sockets, with the proxy between them.
#include "integration/harness/fault_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "common/runtime/runtime.h"
#include "integration/harness/ports.h"

namespace deut::testing {
namespace {

constexpr Duration kSoon = milliseconds(100);  // bytes that must not come are waited for this long
constexpr Duration kLong = seconds(20);        // bytes that must come arrive within this time

// A blocking socket with deadlines.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() { Close(); }

  static Socket ConnectTo(uint16_t port) {
    Socket connected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(connected.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    const int one = 1;
    setsockopt(connected.fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return connected;
  }

  bool Readable(Duration limit) const {
    pollfd wanted{.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&wanted, 1, static_cast<int>(duration_cast<milliseconds>(limit).count())) == 1;
  }
  Socket Accept() const {
    EXPECT_TRUE(Readable(kLong));
    return Socket(accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
  }
  // Sends until the other side takes no more bytes. Returns the number of bytes sent.
  size_t Send(std::string_view bytes) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += static_cast<size_t>(count);
    }
    return sent;
  }
  // Receives exactly `size` bytes, unless the stream ends, breaks or takes too long.
  std::string Receive(size_t size) const {
    std::string bytes(size, '\0');
    size_t got = 0;
    while (got < size && Readable(kLong)) {
      const ssize_t count = recv(fd_, bytes.data() + got, size - got, 0);
      if (count <= 0) break;
      got += static_cast<size_t>(count);
    }
    bytes.resize(got);
    return bytes;
  }
  // Returns the kind of the next event: "end", "reset" or "bytes".
  std::string Next() const {
    if (!Readable(kLong)) return "nothing";
    char byte = 0;
    const ssize_t count = recv(fd_, &byte, 1, 0);
    if (count == 0) return "end";
    return count > 0 ? "bytes" : errno == ECONNRESET ? "reset" : "error";
  }
  void EndSending() const { shutdown(fd_, SHUT_WR); }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

Socket Listen(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(listen(fd, 16), 0);
  return Socket(fd);
}

Duration Took(MonotonicTime begin) { return RealRuntime().Now() - begin; }

class FaultProxyTest : public ::testing::Test {
 protected:
  struct Pair {
    Socket client, server;
  };
  Pair Connect() {
    Socket client = Socket::ConnectTo(port_);
    Socket server = listener_.Accept();
    return {std::move(client), std::move(server)};
  }
  static void ExpectPasses(const Pair& pair) {
    EXPECT_EQ(pair.client.Send("ping"), 4U);
    EXPECT_EQ(pair.server.Receive(4), "ping");
    EXPECT_EQ(pair.server.Send("pong"), 4U);
    EXPECT_EQ(pair.client.Receive(4), "pong");
  }

  const uint16_t port_ = FreePort(), server_port_ = FreePort();
  Socket listener_ = Listen(server_port_);
  FaultProxy proxy_{port_, server_port_, {.record_bytes = 1000, .record_connections = 2}};
};

TEST_F(FaultProxyTest, PassesBothWaysAndTellsTheEnd) {
  const Pair pair = Connect();
  ExpectPasses(pair);
  pair.client.EndSending();
  EXPECT_EQ(pair.server.Next(), "end");
  EXPECT_EQ(pair.server.Send("still"), 5U) << "one direction has ended, the other has not";
  EXPECT_EQ(pair.client.Receive(5), "still");
  pair.server.EndSending();
  EXPECT_EQ(pair.client.Next(), "end");
  const FaultProxyCounters counters = proxy_.Counters();
  EXPECT_EQ(counters.accepted, 1U);
  EXPECT_EQ(counters.to_server, 4U);
  EXPECT_EQ(counters.to_client, 9U);
}

TEST_F(FaultProxyTest, AnotherServerGetsWhatConnectsFromThenOn) {
  const Pair before = Connect();
  const uint16_t port = FreePort();
  const Socket other = Listen(port);
  proxy_.SetServer(port);
  const Socket client = Socket::ConnectTo(port_), server = other.Accept();
  EXPECT_EQ(client.Send("ping"), 4U);
  EXPECT_EQ(server.Receive(4), "ping");
  ExpectPasses(before);
}

TEST_F(FaultProxyTest, CarriesMoreThanItHolds) {
  const Pair pair = Connect();
  std::string sent(8 << 20, 'x');
  for (size_t i = 0; i < sent.size(); i += 997) sent[i] = static_cast<char>(i);
  const std::unique_ptr<Thread> sender =
      RealRuntime().StartThread("sender", [&] { EXPECT_EQ(pair.client.Send(sent), sent.size()); });
  EXPECT_TRUE(pair.server.Receive(sent.size()) == sent);
}

TEST_F(FaultProxyTest, DelaysOneDirection) {
  const Pair pair = Connect();
  for (const Duration delay : {Duration(microseconds(200)), Duration(milliseconds(1)), Duration(milliseconds(10))}) {
    proxy_.SetFlow(Direction::kToServer, {.delay = delay});
    for (int i = 0; i < 5; ++i) {
      const MonotonicTime begin = RealRuntime().Now();
      EXPECT_EQ(pair.client.Send("ping"), 4U);
      EXPECT_EQ(pair.server.Receive(4), "ping");
      EXPECT_GE(Took(begin).count(), delay.count());
    }
  }
  // The 10 s that this direction waits do not delay the other direction.
  proxy_.SetFlow(Direction::kToServer, {.delay = seconds(10)});
  EXPECT_EQ(pair.client.Send("late"), 4U);
  EXPECT_EQ(pair.server.Send("pong"), 4U);
  EXPECT_EQ(pair.client.Receive(4), "pong");
  EXPECT_FALSE(pair.server.Readable(kSoon));
}

TEST_F(FaultProxyTest, LimitsTheBandwidthOfAllConnectionsTogether) {
  proxy_.SetFlow(Direction::kToServer, {.bytes_per_second = 1'000'000});
  const Pair first = Connect(), second = Connect();
  const std::string bytes(100'000, 'x');
  const MonotonicTime begin = RealRuntime().Now();
  EXPECT_EQ(first.client.Send(bytes), bytes.size());
  EXPECT_EQ(second.client.Send(bytes), bytes.size());
  EXPECT_EQ(first.server.Receive(bytes.size()).size(), bytes.size());
  EXPECT_EQ(second.server.Receive(bytes.size()).size(), bytes.size());
  EXPECT_GE(Took(begin).count(), Duration(milliseconds(199)).count());
}

TEST_F(FaultProxyTest, DropsAndThenBreaksWhatHasAHole) {
  const Pair damaged = Connect(), spared = Connect();
  proxy_.SetFlow(Direction::kToServer, {.drop = true});
  EXPECT_EQ(damaged.client.Send("lost"), 4U);
  EXPECT_FALSE(damaged.server.Readable(kSoon));
  EXPECT_EQ(damaged.server.Send("pong"), 4U) << "the other direction passes";
  EXPECT_EQ(damaged.client.Receive(4), "pong");
  EXPECT_EQ(proxy_.Counters().dropped, 4U);
  proxy_.Heal();
  EXPECT_EQ(damaged.client.Next(), "reset");
  EXPECT_EQ(damaged.server.Next(), "reset");
  ExpectPasses(spared);
}

TEST_F(FaultProxyTest, ResetsBothEnds) {
  const Pair pair = Connect();
  ExpectPasses(pair);
  EXPECT_EQ(proxy_.Reset(), 1U);
  EXPECT_EQ(pair.client.Next(), "reset");
  EXPECT_EQ(pair.server.Next(), "reset");
  ExpectPasses(Connect());
  EXPECT_EQ(proxy_.Counters().resets, 1U);
}

TEST_F(FaultProxyTest, HalfOpenOneEndIsNeverTold) {
  for (const End told : {End::kClient, End::kServer}) {
    const Pair pair = Connect();
    ExpectPasses(pair);
    EXPECT_EQ(proxy_.HalfOpen(told), 1U);
    const Socket& knows = told == End::kClient ? pair.client : pair.server;
    const Socket& believes = told == End::kClient ? pair.server : pair.client;
    EXPECT_EQ(knows.Next(), "reset");
    EXPECT_EQ(believes.Send("anybody?"), 8U);
    EXPECT_FALSE(believes.Readable(kSoon));
    proxy_.Heal();
    EXPECT_EQ(believes.Send("anybody?"), 8U) << "a heal tells it nothing either";
    EXPECT_FALSE(believes.Readable(kSoon));
    ExpectPasses(Connect());
  }
}

TEST_F(FaultProxyTest, APartitionHoldsBytesAndConnectionsBack) {
  const Pair old = Connect();
  ExpectPasses(old);
  proxy_.SetPartitioned(true);
  EXPECT_EQ(old.client.Send("ping"), 4U);
  EXPECT_EQ(old.server.Send("pong"), 4U);
  const Socket fresh = Socket::ConnectTo(port_);
  EXPECT_FALSE(listener_.Readable(kSoon));
  EXPECT_FALSE(old.server.Readable(kSoon));
  EXPECT_FALSE(old.client.Readable(kSoon));
  proxy_.Heal();
  EXPECT_EQ(old.server.Receive(4), "ping");
  EXPECT_EQ(old.client.Receive(4), "pong");
  const Socket accepted = listener_.Accept();
  EXPECT_EQ(fresh.Send("new"), 3U);
  EXPECT_EQ(accepted.Receive(3), "new");
}

TEST_F(FaultProxyTest, AResetDuringAPartitionArrivesAfterHealing) {
  Pair pair = Connect();
  ExpectPasses(pair);
  EXPECT_EQ(pair.server.Send("unread"), 6U);
  EXPECT_TRUE(pair.client.Readable(kLong));
  proxy_.SetPartitioned(true);
  pair.client.Close();  // unread bytes make this a RST
  EXPECT_FALSE(pair.server.Readable(kSoon));
  proxy_.Heal();
  EXPECT_EQ(pair.server.Next(), "reset");
}

TEST_F(FaultProxyTest, AServerThatIsAwayIsRefusal) {
  listener_.Close();
  const Socket client = Socket::ConnectTo(port_);
  EXPECT_EQ(client.Next(), "reset");
  EXPECT_EQ(proxy_.Counters().refused, 1U);
}

TEST_F(FaultProxyTest, RecordsTheLatestConnections) {
  for (const char* text : {"first", "second", "third"}) {
    const Pair pair = Connect();
    pair.client.Send(text);
    EXPECT_EQ(pair.server.Receive(std::string(text).size()), text);
    proxy_.Reset();
    EXPECT_EQ(pair.client.Next(), "reset");
  }
  const Pair open = Connect();
  const std::string much(1500, 'y');
  open.client.Send(much);
  EXPECT_EQ(open.server.Receive(much.size()), much);
  const std::vector<RecordedConnection> recorded = proxy_.Recorded();
  ASSERT_EQ(recorded.size(), 3U) << "two past ones and the open one";
  EXPECT_EQ(recorded[0].to_server, "second");
  EXPECT_EQ(recorded[1].to_server, "third");
  EXPECT_TRUE(recorded[1].whole);
  EXPECT_FALSE(recorded[1].open);
  EXPECT_EQ(recorded[2].number, 4U);
  EXPECT_TRUE(recorded[2].open);
  EXPECT_FALSE(recorded[2].whole);
  EXPECT_EQ(recorded[2].to_server, much.substr(0, 1000));
}

}  // namespace
}  // namespace deut::testing

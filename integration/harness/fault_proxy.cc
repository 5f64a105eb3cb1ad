#include "integration/harness/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"

namespace deut::testing {
namespace {

constexpr size_t kMaxQueuedBytes = 1 << 20;
constexpr size_t kReadBytes = 16 << 10;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int TcpSocket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  DEUT_CHECK(fd >= 0);
  return fd;
}

void CloseWithReset(int fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close(fd);
}

struct Chunk {
  MonotonicTime due;
  std::string bytes;
  size_t sent = 0;
};

// One end of a connection, and the bytes in flight to it.
struct Peer {
  int fd = -1;                      // -1: closed
  bool ended = false;               // it has closed its direction: no more bytes come from it
  bool write_closed = false;        // the proxy has closed the direction to it
  bool lost_bytes = false;          // bytes that it sent were thrown away
  bool broke_in_partition = false;  // it broke during a partition: the other end learns of it afterwards
  bool blocked = false;             // its socket takes no bytes now
  std::deque<Chunk> queue;
  size_t queued = 0;
  uint32_t watched = 0;  // events requested from epoll
};

struct Connection {
  Peer client, server;
  bool connecting = true;
  RecordedConnection record;
};

// The pace of all connections in one direction.
struct Flow {
  FlowFaults faults;
  MonotonicTime free_at;  // time at which the line has sent all bytes given to it
  uint64_t delivered = 0;
};

}  // namespace

class FaultProxy::Loop {
 public:
  Loop(uint16_t port, uint16_t server_port, FaultProxyOptions options)
      : server_port_(server_port), options_(options), mutex_(RealRuntime()) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    listener_ = TcpSocket();
    const int one = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    const sockaddr_in address = Loopback(port);
    DEUT_CHECK(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    DEUT_CHECK(listen(listener_, 128) == 0);
    Watch(wake_, kWake, EPOLLIN, EPOLL_CTL_ADD);
    Watch(listener_, kListener, EPOLLIN, EPOLL_CTL_ADD);
    thread_ = RealRuntime().StartThread("fault-proxy", [this] { Run(); });
  }

  ~Loop() {
    Do([this] { stopped_ = true; });
    thread_->Join();
    for (auto& [number, connection] : connections_) {
      if (connection.client.fd >= 0) CloseWithReset(connection.client.fd);
      if (connection.server.fd >= 0) CloseWithReset(connection.server.fd);
    }
    close(listener_);
    close(wake_);
    close(epoll_);
  }

  // Runs `change` on the loop's thread and waits for it.
  void Do(std::function<void()> change) {
    Event done;
    {
      const MutexLock lock(mutex_);
      changes_.push_back({std::move(change), &done});
    }
    const uint64_t one = 1;
    DEUT_CHECK(write(wake_, &one, sizeof(one)) == sizeof(one));
    done.Wait(RealRuntime(), kNoDeadline);
  }

  // Only the loop's thread calls the following methods.

  void SetFlow(Direction direction, FlowFaults faults) {
    Flow& flow = direction == Direction::kToServer ? to_server_ : to_client_;
    flow.faults = faults;
    flow.free_at = MonotonicTime();
  }

  void SetServer(uint16_t server_port) { server_port_ = server_port; }

  void SetPartitioned(bool partitioned) {
    if (partitioned_ == partitioned) return;
    partitioned_ = partitioned;
    Watch(listener_, kListener, partitioned ? 0 : EPOLLIN, EPOLL_CTL_MOD);
    if (partitioned) return;
    for (auto& [number, connection] : connections_) {
      if (connection.client.broke_in_partition || connection.server.broke_in_partition) ResetBoth(connection);
    }
  }

  uint64_t Reset() {
    uint64_t hit = 0;
    for (auto& [number, connection] : connections_) {
      if (connection.client.fd < 0 && connection.server.fd < 0) continue;
      ResetBoth(connection);
      ++hit;
    }
    counters_.resets += hit;
    return hit;
  }

  uint64_t HalfOpen(End told) {
    uint64_t hit = 0;
    for (auto& [number, connection] : connections_) {
      Peer& peer = told == End::kClient ? connection.client : connection.server;
      Peer& other = told == End::kClient ? connection.server : connection.client;
      if (peer.fd < 0 || other.fd < 0 || connection.connecting) continue;
      ResetPeer(peer);
      other.queue.clear();
      other.queued = 0;
      ++hit;
    }
    counters_.resets += hit;
    return hit;
  }

  void Heal() {
    SetFlow(Direction::kToServer, {});
    SetFlow(Direction::kToClient, {});
    SetPartitioned(false);
    for (auto& [number, connection] : connections_) {
      const bool whole = connection.client.fd >= 0 && connection.server.fd >= 0;
      if (!whole || !(connection.client.lost_bytes || connection.server.lost_bytes)) continue;
      ResetBoth(connection);
      ++counters_.resets;
    }
  }

  FaultProxyCounters Counters() {
    FaultProxyCounters counters = counters_;
    counters.to_server = to_server_.delivered;
    counters.to_client = to_client_.delivered;
    for (auto& [number, connection] : connections_) counters.open += connection.client.fd >= 0 ? 1 : 0;
    return counters;
  }

  std::vector<RecordedConnection> Recorded() {
    std::vector<RecordedConnection> recorded(past_.begin(), past_.end());
    for (auto& [number, connection] : connections_) {
      if (!connection.record.to_server.empty()) recorded.push_back(connection.record);
    }
    std::ranges::sort(recorded, {}, &RecordedConnection::number);
    return recorded;
  }

 private:
  static constexpr uint64_t kWake = 0,
                            kListener = 1;  // ids for epoll; 2n and 2n + 1 are client and server of connection n

  void Watch(int fd, uint64_t name, uint32_t events, int operation) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = name;
    DEUT_CHECK(epoll_ctl(epoll_, operation, fd, &event) == 0);
  }

  void Run() {
    std::vector<epoll_event> events(64);
    while (!stopped_) {
      const std::optional<MonotonicTime> next = Move();
      timespec wait{};
      if (next) {
        const int64_t left = std::max<int64_t>((*next - Now()).count(), 0);
        wait = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
      }
      const int count =
          epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), next ? &wait : nullptr, nullptr);
      DEUT_CHECK(count >= 0 || errno == EINTR);
      for (int i = 0; i < count; ++i) Handle(events[static_cast<size_t>(i)]);
    }
  }

  void Handle(const epoll_event& event) {
    const uint64_t name = event.data.u64;
    if (name == kWake) return MakeChanges();
    if (name == kListener) return Accept();
    const auto found = connections_.find(name / 2);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    const bool is_client = name % 2 == 0;
    Peer& peer = is_client ? connection.client : connection.server;
    if (peer.fd < 0) return;
    if (!is_client && connection.connecting) return Connected(connection);
    if ((event.events & EPOLLOUT) != 0) peer.blocked = false;
    if ((event.events & EPOLLERR) != 0) return Broken(connection, peer);
    if ((event.events & (EPOLLIN | EPOLLHUP)) != 0) ReceiveFrom(connection, is_client);
  }

  void MakeChanges() {
    uint64_t count = 0;
    (void)!read(wake_, &count, sizeof(count));
    std::deque<Change> changes;
    {
      const MutexLock lock(mutex_);
      changes.swap(changes_);
    }
    for (Change& change : changes) {
      change.run();
      change.done->Signal(RealRuntime());
    }
  }

  void Accept() {
    if (partitioned_) return;
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    ++counters_.accepted;
    const uint64_t number = ++last_number_;
    Connection& connection = connections_[number];
    connection.record.number = number;
    connection.record.open = true;
    connection.client.fd = fd;
    connection.server.fd = TcpSocket();
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(connection.server.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    Watch(connection.client.fd, 2 * number, 0, EPOLL_CTL_ADD);
    Watch(connection.server.fd, 2 * number + 1, EPOLLOUT, EPOLL_CTL_ADD);
    connection.server.watched = EPOLLOUT;
    const sockaddr_in address = Loopback(server_port_);
    const int done = connect(connection.server.fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    if (done != 0 && errno != EINPROGRESS) Refuse(connection);
  }

  void Connected(Connection& connection) {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(connection.server.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Refuse(connection);
    connection.connecting = false;
  }

  void Refuse(Connection& connection) {
    ++counters_.refused;
    ResetBoth(connection);
  }

  static void ResetPeer(Peer& peer) {
    if (peer.fd < 0) return;
    CloseWithReset(peer.fd);  // this also removes it from epoll
    peer.fd = -1;
    peer.queue.clear();
    peer.queued = 0;
  }

  static void ResetBoth(Connection& connection) {
    ResetPeer(connection.client);
    ResetPeer(connection.server);
  }

  // The end `peer` broke without closing. The other end gets a RST, too, unless a partition is between them.
  void Broken(Connection& connection, Peer& peer) const {
    peer.broke_in_partition = true;
    partitioned_ ? ResetPeer(peer) : ResetBoth(connection);
  }

  void ReceiveFrom(Connection& connection, bool from_client) {
    Peer& from = from_client ? connection.client : connection.server;
    Peer& to = from_client ? connection.server : connection.client;
    Flow& flow = from_client ? to_server_ : to_client_;
    char bytes[kReadBytes];
    const ssize_t count = read(from.fd, bytes, sizeof(bytes));
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) return Broken(connection, from);
    if (count == 0) {
      from.ended = true;
      return;
    }
    const auto size = static_cast<size_t>(count);
    if (to.fd < 0 || flow.faults.drop) {
      from.lost_bytes = true;
      counters_.dropped += size;
      return;
    }
    if (from_client) Record(connection.record, std::string_view(bytes, size));
    MonotonicTime due = Now() + flow.faults.delay;
    if (flow.faults.bytes_per_second != 0) {
      flow.free_at = std::max(flow.free_at, Now()) +
                     nanoseconds(static_cast<int64_t>(size * 1'000'000'000 / flow.faults.bytes_per_second));
      due = std::max(due, flow.free_at);
    }
    if (!to.queue.empty()) due = std::max(due, to.queue.back().due);
    to.queue.push_back({.due = due, .bytes = std::string(bytes, size)});
    to.queued += size;
  }

  void Record(RecordedConnection& record, std::string_view bytes) const {
    const size_t room = options_.record_bytes - std::min<size_t>(options_.record_bytes, record.to_server.size());
    if (room < bytes.size()) record.whole = false;
    record.to_server.append(bytes.substr(0, room));
  }

  // Sends the bytes that are due, and sets the events for epoll. Returns the time at which more bytes will be due.
  std::optional<MonotonicTime> Move() {
    std::optional<MonotonicTime> next;
    for (auto at = connections_.begin(); at != connections_.end();) {
      Connection& connection = at->second;
      for (Peer* peer : {&connection.client, &connection.server}) {
        if (peer->fd < 0 || connection.connecting || partitioned_) continue;
        const std::optional<MonotonicTime> due = Send(connection, *peer);
        if (due && (!next || *due < *next)) next = due;
      }
      if (IsOver(connection.client) && IsOver(connection.server)) ClosePeers(connection);
      if (connection.client.fd < 0 && connection.server.fd < 0) {
        KeepRecord(connection);
        at = connections_.erase(at);
        continue;
      }
      WatchPeer(at->first, connection, true);
      WatchPeer(at->first, connection, false);
      ++at;
    }
    return next;
  }

  static bool IsOver(const Peer& peer) {
    return (peer.fd < 0 && !peer.broke_in_partition) || (peer.ended && peer.queue.empty());
  }

  static void ClosePeers(Connection& connection) {
    for (Peer* peer : {&connection.client, &connection.server}) {
      if (peer->fd >= 0) close(peer->fd);
      peer->fd = -1;
    }
  }

  void KeepRecord(Connection& connection) {
    if (connection.record.to_server.empty()) return;
    connection.record.open = false;
    past_.push_back(std::move(connection.record));
    if (past_.size() > options_.record_connections) past_.pop_front();
  }

  std::optional<MonotonicTime> Send(Connection& connection, Peer& peer) {
    Flow& flow = &peer == &connection.server ? to_server_ : to_client_;
    Peer& other = &peer == &connection.server ? connection.client : connection.server;
    while (!peer.queue.empty() && !peer.blocked) {
      Chunk& chunk = peer.queue.front();
      if (chunk.due > Now()) return chunk.due;
      const ssize_t count =
          send(peer.fd, chunk.bytes.data() + chunk.sent, chunk.bytes.size() - chunk.sent, MSG_NOSIGNAL);
      if (count < 0) {
        peer.blocked = errno == EAGAIN;
        if (!peer.blocked) Broken(connection, peer);
        return std::nullopt;
      }
      flow.delivered += static_cast<uint64_t>(count);
      peer.queued -= static_cast<size_t>(count);
      chunk.sent += static_cast<size_t>(count);
      if (chunk.sent == chunk.bytes.size()) peer.queue.pop_front();
    }
    if (peer.queue.empty() && other.ended && !peer.write_closed && other.fd >= 0) {
      shutdown(peer.fd, SHUT_WR);
      peer.write_closed = true;
    }
    return std::nullopt;
  }

  void WatchPeer(uint64_t number, Connection& connection, bool is_client) const {
    Peer& peer = is_client ? connection.client : connection.server;
    const Peer& other = is_client ? connection.server : connection.client;
    if (peer.fd < 0 || connection.connecting) return;
    uint32_t events = 0;
    if (!partitioned_ && !peer.ended && other.queued < kMaxQueuedBytes) events |= EPOLLIN;
    if (peer.blocked && !partitioned_) events |= EPOLLOUT;
    if (events == peer.watched) return;
    peer.watched = events;
    Watch(peer.fd, 2 * number + (is_client ? 0 : 1), events, EPOLL_CTL_MOD);
  }

  static MonotonicTime Now() { return RealRuntime().Now(); }

  struct Change {
    std::function<void()> run;
    Event* done;
  };

  uint16_t server_port_;
  const FaultProxyOptions options_;
  int epoll_ = -1, wake_ = -1, listener_ = -1;
  bool stopped_ = false, partitioned_ = false;
  Flow to_server_, to_client_;
  FaultProxyCounters counters_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, Connection> connections_;
  std::deque<RecordedConnection> past_;

  Mutex mutex_;
  std::deque<Change> changes_ DEUT_GUARDED_BY(mutex_);
  std::unique_ptr<Thread> thread_;
};

FaultProxy::FaultProxy(uint16_t port, uint16_t server_port, FaultProxyOptions options)
    : loop_(std::make_unique<Loop>(port, server_port, options)) {}
FaultProxy::~FaultProxy() = default;

void FaultProxy::SetServer(uint16_t server_port) {
  loop_->Do([&] { loop_->SetServer(server_port); });
}
void FaultProxy::SetFlow(Direction direction, FlowFaults faults) {
  loop_->Do([&] { loop_->SetFlow(direction, faults); });
}
void FaultProxy::SetPartitioned(bool partitioned) {
  loop_->Do([&] { loop_->SetPartitioned(partitioned); });
}
uint64_t FaultProxy::Reset() {
  uint64_t hit = 0;
  loop_->Do([&] { hit = loop_->Reset(); });
  return hit;
}
uint64_t FaultProxy::HalfOpen(End told) {
  uint64_t hit = 0;
  loop_->Do([&] { hit = loop_->HalfOpen(told); });
  return hit;
}
void FaultProxy::Heal() {
  loop_->Do([&] { loop_->Heal(); });
}
FaultProxyCounters FaultProxy::Counters() {
  FaultProxyCounters counters;
  loop_->Do([&] { counters = loop_->Counters(); });
  return counters;
}
std::vector<RecordedConnection> FaultProxy::Recorded() {
  std::vector<RecordedConnection> recorded;
  loop_->Do([&] { recorded = loop_->Recorded(); });
  return recorded;
}

}  // namespace deut::testing

#include "protocol/connections/connection_acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "common/base/concat.h"
#include "common/observe/log.h"
#include "common/runtime/thread_priority.h"
#include "protocol/connections/rpc_limits.h"

namespace deut {
namespace {

// Two, so that one thread closes refused connections while the other one admits.
constexpr size_t kAcceptingThreads = 2;
// After this many connections, a thread goes on to its next listening socket.
constexpr int kMaxAcceptsPerListener = 64;
constexpr Duration kPauseAfterFailure = milliseconds(10);
constexpr int kMaxEvents = 64;

Status Failed(const char* what) {
  return DEUT_ERROR(kIoError, "cannot accept connections: ", what, ": ", std::generic_category().message(errno));
}

bool Add(const Descriptor& poll, int descriptor, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  return epoll_ctl(poll.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void Signal(const Descriptor& event) {
  const uint64_t one = 1;
  (void)!write(event.get(), &one, sizeof(one));
}

Descriptor OpenReserve() { return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// Sets the options that gRPC sets on the connections that it accepts itself.
void SetOptions(int socket, int family) {
  if (family != AF_INET && family != AF_INET6) return;
  const int on = 1;
  const int timeout_ms = kKeepaliveTimeoutMs;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(Runtime& runtime, ListeningSockets sockets, const ConnectionLimits& limits)
    : runtime_(runtime),
      sockets_(std::move(sockets)),
      table_(runtime, limits),
      pace_(HandshakePace::Create(runtime)),
      reserve_mutex_(runtime) {}

Result<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Create(Runtime& runtime, const Address& address,
                                                                       const ConnectionLimits& limits) {
  DEUT_ASSIGN_OR_RETURN(ListeningSockets sockets, ListeningSockets::Open(address));
  std::unique_ptr<ConnectionAcceptor> acceptor(new ConnectionAcceptor(runtime, std::move(sockets), limits));
  DEUT_RETURN_IF_ERROR(acceptor->Prepare());
  return acceptor;
}

Status ConnectionAcceptor::Prepare() {
  stop_accepting_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_watching_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_accepting_.valid() || !stop_watching_.valid()) return Failed("eventfd");
  watch_poll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!watch_poll_.valid() || !Add(watch_poll_, stop_watching_.get(), EPOLLIN)) return Failed("epoll");
  for (size_t i = 0; i < kAcceptingThreads; ++i) {
    Descriptor poll(epoll_create1(EPOLL_CLOEXEC));
    if (!poll.valid() || !Add(poll, stop_accepting_.get(), EPOLLIN)) return Failed("epoll");
    for (const Descriptor& socket : sockets_.sockets()) {
      // EPOLLEXCLUSIVE: a new connection wakes only one of the threads.
      if (!Add(poll, socket.get(), EPOLLIN | EPOLLEXCLUSIVE)) return Failed("epoll");
    }
    polls_.push_back(std::move(poll));
  }
  const MutexLock lock(reserve_mutex_);
  reserve_ = OpenReserve();
  return reserve_.valid() ? Status::Ok() : Failed("open /dev/null");
}

void ConnectionAcceptor::Start(HandOver hand_over) {
  hand_over_ = std::move(hand_over);
  watching_ = runtime_.StartThread("rpc-watch", [this] { Watch(); });
  handing_over_ = runtime_.StartThread("rpc-hand-over", [this] { HandOverAll(); });
  for (const Descriptor& poll : polls_) {
    accepting_.push_back(runtime_.StartThread("rpc-accept", [this, fd = poll.get()] { Accept(fd); }));
  }
}

void ConnectionAcceptor::StopAccepting() {
  stopping_.store(1, std::memory_order_seq_cst);
  runtime_.WakeAll(stopping_);
  Signal(stop_accepting_);
  accepting_.clear();  // joins
  pace_->Stop();
  handing_over_.reset();  // joins
  sockets_.Close();
}

ConnectionAcceptor::~ConnectionAcceptor() {
  StopAccepting();
  Signal(stop_watching_);
  watching_.reset();
}

void ConnectionAcceptor::Accept(int poll) {
  LowerThreadPriority();
  epoll_event events[kMaxEvents];
  while (!stopping()) {
    const int count = epoll_wait(poll, events, kMaxEvents, -1);
    for (int i = 0; i < count && !stopping(); ++i) {
      if (events[i].data.fd != stop_accepting_.get()) AcceptAll(events[i].data.fd);
    }
  }
}

void ConnectionAcceptor::AcceptAll(int listener) {
  for (int i = 0; i < kMaxAcceptsPerListener && !stopping(); ++i) {
    sockaddr_storage name{};
    socklen_t bytes = sizeof(name);
    Descriptor socket(accept4(listener, reinterpret_cast<sockaddr*>(&name), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      const int error = errno;
      if (error == EAGAIN || error == EWOULDBLOCK) return;
      OnFailure(listener, error);
      continue;
    }
    SetOptions(socket.get(), name.ss_family);
    Admit(std::move(socket), PeerKey::Of(name));
  }
}

void ConnectionAcceptor::Admit(Descriptor socket, const PeerKey& peer) {
  silent_.fetch_add(table_.ShutDownSilent(peer), std::memory_order_relaxed);
  const ConnectionTable::Answer answer = table_.Admit(peer);
  if (answer != ConnectionTable::Answer::kAdmitted) {
    const bool of_peer = answer == ConnectionTable::Answer::kTooManyOfPeer;
    (of_peer ? refused_of_peer_ : refused_).fetch_add(1, std::memory_order_relaxed);
    if (const std::optional<uint64_t> unlogged = refusal_pace_.Event(runtime_.Now())) {
      LogWarning("a connection from ", peer.ToString(), " is closed: ",
                 of_peer ? Concat(table_.limits().max_connections_per_peer,
                                  " are open from there, the limit of --max_connections_per_peer")
                         : Concat(table_.limits().max_connections, " are open, the limit of --max_connections"),
                 "; ", *unlogged, " more were closed since the last such line");
    }
    return;
  }
  Descriptor watched(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (!watched.valid()) {
    table_.Withdraw(peer);
    refused_no_descriptor_.fetch_add(1, std::memory_order_relaxed);
    OnFailure(-1, errno);
    return;
  }
  const int number = table_.Add(peer, std::move(watched));
  // This comes before the watch below: the watcher withdraws a connection that has ended, and must find it here.
  pace_->Arrive(peer, number, std::move(socket));
  // EPOLLHUP and EPOLLERR are always reported. The watch is edge-triggered, because an error alone does not end the
  // connection and would be reported again and again.
  if (!Add(watch_poll_, number, EPOLLET)) {
    const int error = errno;
    // If the connection has been handed to gRPC meanwhile, gRPC sees this end.
    shutdown(number, SHUT_RDWR);
    pace_->Withdraw(number);
    table_.Remove(number);
    refused_no_descriptor_.fetch_add(1, std::memory_order_relaxed);
    OnFailure(-1, error);
  }
}

void ConnectionAcceptor::HandOverAll() {
  LowerThreadPriority();
  while (std::optional<HandshakePace::Next> next = pace_->AwaitNext()) {
    accepted_.fetch_add(1, std::memory_order_relaxed);
    hand_over_(std::move(next->socket), std::move(next->slot));
  }
}

// `listener` is the socket whose accept failed; negative: there is no connection to refuse.
void ConnectionAcceptor::OnFailure(int listener, int error) {
  // The connection ended before this thread accepted it. Linux reports network errors here, too.
  if (error == EINTR || error == ECONNABORTED || error == EPROTO) return;
  errors_.fetch_add(1, std::memory_order_relaxed);
  if (const std::optional<uint64_t> unlogged = error_pace_.Event(runtime_.Now())) {
    LogWarning("accepting a connection: ", strerror(error), "; ", *unlogged,
               " more such failures since the last such line; accepting goes on");
  }
  if (listener >= 0 && (error == EMFILE || error == ENFILE) && RefuseOne(listener)) return;
  Pause(kPauseAfterFailure);
}

bool ConnectionAcceptor::RefuseOne(int listener) {
  const MutexLock lock(reserve_mutex_);
  reserve_.Reset();
  Descriptor refused(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const bool done = refused.valid();
  if (done) refused_no_descriptor_.fetch_add(1, std::memory_order_relaxed);
  refused.Reset();
  // Another thread may have taken the descriptor meanwhile. Then there is no reserve until the next failure.
  reserve_ = OpenReserve();
  return done;
}

void ConnectionAcceptor::Pause(Duration pause) {
  const MonotonicTime until = runtime_.Now() + pause;
  while (!stopping() && runtime_.Wait(stopping_, 0, until)) {
  }
}

void ConnectionAcceptor::Watch() {
  LowerThreadPriority();
  epoll_event events[kMaxEvents];
  for (;;) {
    const int count = epoll_wait(watch_poll_.get(), events, kMaxEvents, -1);
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[i].data.fd;
      if (descriptor == stop_watching_.get()) return;
      if ((events[i].events & EPOLLHUP) == 0) continue;
      // Removed from the epoll set first: the set holds the open file, which exists as long as gRPC's own descriptor.
      epoll_ctl(watch_poll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
      // Withdraw comes before Remove, because the number may name another connection once the table has closed it.
      pace_->Withdraw(descriptor);
      table_.Remove(descriptor);
    }
  }
}

ConnectionCounts ConnectionAcceptor::counts() const {
  return {.accepted = accepted_.load(std::memory_order_relaxed),
          .open = table_.open(),
          .waiting = pace_->waiting(),
          .refused = refused_.load(std::memory_order_relaxed),
          .refused_of_peer = refused_of_peer_.load(std::memory_order_relaxed),
          .refused_no_descriptor = refused_no_descriptor_.load(std::memory_order_relaxed),
          .silent = silent_.load(std::memory_order_relaxed),
          .errors = errors_.load(std::memory_order_relaxed)};
}

}  // namespace deut

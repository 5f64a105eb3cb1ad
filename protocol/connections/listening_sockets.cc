#include "protocol/connections/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace deut {
namespace {

// The kernel lowers it to net.core.somaxconn.
constexpr int kBacklog = 4096;

// A wildcard address of one family stands for both families.
bool IsWildcard(const sockaddr* name) {
  if (name->sa_family == AF_INET) return reinterpret_cast<const sockaddr_in*>(name)->sin_addr.s_addr == INADDR_ANY;
  return name->sa_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(name)->sin6_addr);
}

void SetPort(sockaddr* name, uint16_t port) {
  if (name->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(name)->sin_port = htons(port);
  if (name->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(name)->sin6_port = htons(port);
}

uint16_t PortOf(int socket) {
  sockaddr_storage name{};
  socklen_t bytes = sizeof(name);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

struct FreeAddresses {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};

}  // namespace

ListeningSockets::ListeningSockets(ListeningSockets&& other) noexcept
    : address_(std::move(other.address_)),
      sockets_(std::move(other.sockets_)),
      has_file_(std::exchange(other.has_file_, false)),
      device_(other.device_),
      inode_(other.inode_) {}

ListeningSockets::~ListeningSockets() { Close(); }

void ListeningSockets::Close() {
  sockets_.clear();
  if (!std::exchange(has_file_, false)) return;
  // Another process may have put its own socket there meanwhile.
  struct stat now{};
  if (lstat(address_.path().c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == inode_) {
    unlink(address_.path().c_str());
  }
}

Status ListeningSockets::Bind(int family, const void* name, unsigned bytes) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return ListenError(address_, errno);
  const int on = 1;
  const int off = 0;
  if (family != AF_UNIX) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (family == AF_INET6) {
    // [::] serves both families. Every other IPv6 address serves its own.
    const bool both = IsWildcard(static_cast<const sockaddr*>(name));
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, both ? &off : &on, sizeof(int));
  }
  if (bind(socket.get(), static_cast<const sockaddr*>(name), bytes) != 0 || listen(socket.get(), kBacklog) != 0) {
    return ListenError(address_, errno);
  }
  sockets_.push_back(std::move(socket));
  return Status::Ok();
}

Status ListeningSockets::OpenUnix() {
  DEUT_RETURN_IF_ERROR(DiagnoseListen(address_));
  const std::string& path = address_.path();
  struct stat about{};
  // DiagnoseListen has found no process that listens there.
  if (lstat(path.c_str(), &about) == 0 && S_ISSOCK(about.st_mode)) unlink(path.c_str());
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  memcpy(name.sun_path, path.data(), path.size());
  DEUT_RETURN_IF_ERROR(Bind(AF_UNIX, &name, sizeof(name)));
  if (lstat(path.c_str(), &about) == 0) {
    has_file_ = true;
    device_ = about.st_dev;
    inode_ = about.st_ino;
  }
  return Status::Ok();
}

Status ListeningSockets::OpenTcp() {
  // "localhost" may have two addresses, one of which may be taken without any sign of it. So it means the IPv4 one.
  const std::string host = address_.host() == "localhost" ? "127.0.0.1" : address_.host();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* first = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(address_.port()).c_str(), &hints, &first);
  if (error != 0) {
    return DEUT_ERROR(kInvalidArgument, "cannot listen at ", address_.ToString(),
                      ": the host is unknown: ", gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> found(first);
  uint16_t port = address_.port();
  const auto bind_one = [&](sockaddr* name, socklen_t bytes) -> Status {
    SetPort(name, port);
    DEUT_RETURN_IF_ERROR(Bind(name->sa_family, name, bytes));
    port = PortOf(sockets_.back().get());
    return Status::Ok();
  };
  if (IsWildcard(found->ai_addr)) {
    sockaddr_in6 both{};
    both.sin6_family = AF_INET6;
    const Status bound = bind_one(reinterpret_cast<sockaddr*>(&both), sizeof(both));
    // If the port is taken or not permitted, that is the answer. Any other error may mean a machine without IPv6.
    if (!bound.ok() && (bound == ErrorCode::kUnavailable || bound == ErrorCode::kPermissionDenied)) return bound;
  }
  for (const addrinfo* item = found.get(); item != nullptr && (sockets_.empty() || !IsWildcard(found->ai_addr));
       item = item->ai_next) {
    const Status bound = bind_one(item->ai_addr, item->ai_addrlen);
    // A family that this machine does not have is skipped, unless no socket remains.
    if (!bound.ok() && (bound != ErrorCode::kIoError || (item->ai_next == nullptr && sockets_.empty()))) return bound;
  }
  address_ = address_.WithPort(port);
  return Status::Ok();
}

Result<ListeningSockets> ListeningSockets::Open(const Address& address) {
  ListeningSockets sockets(address);
  DEUT_RETURN_IF_ERROR(address.is_unix() ? sockets.OpenUnix() : sockets.OpenTcp());
  return sockets;
}

}  // namespace deut

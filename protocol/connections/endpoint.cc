#include "protocol/connections/endpoint.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "common/base/concat.h"

namespace deut {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr size_t kMaxUnixPathBytes = sizeof(sockaddr_un::sun_path) - 1;

Status Malformed(std::string_view flag, std::string_view text, std::string_view why) {
  return DEUT_ERROR(kInvalidArgument, flag, ": \"", text, "\" ", why,
                    "; an address is HOST:PORT (127.0.0.1:7701, [::1]:7701, db.example.com:7701) or unix:/PATH");
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

Status DiagnoseUnix(const Address& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  memcpy(name.sun_path, address.path().data(), address.path().size());
  struct stat info{};
  if (lstat(address.path().c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) {
      return DEUT_ERROR(kInvalidArgument, "cannot listen at ", address.ToString(),
                        ": a file that is no socket is in its place; remove it, or choose another path with --listen");
    }
    Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.fd() < 0) return ListenError(address, errno);
    if (connect(socket.fd(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0)
      return ListenError(address, EADDRINUSE);
    return Status::Ok();  // a process that has ended left the socket file; listening replaces it
  }
  const std::string directory = address.path().substr(0, address.path().rfind('/') + 1);
  if (access(directory.c_str(), W_OK | X_OK) != 0) return ListenError(address, errno);
  return Status::Ok();
}

Status DiagnoseTcp(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.host().c_str(), std::to_string(address.port()).c_str(), &hints, &found);
  if (error != 0) {
    return DEUT_ERROR(kInvalidArgument, "cannot listen at ", address.ToString(),
                      ": the host is unknown: ", gai_strerror(error));
  }
  Status status;
  for (const addrinfo* item = found; item != nullptr && status.ok(); item = item->ai_next) {
    Socket socket(::socket(item->ai_family, item->ai_socktype | SOCK_CLOEXEC, item->ai_protocol));
    if (socket.fd() < 0) continue;  // this machine does not have the address family
    const int on = 1;
    setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(socket.fd(), item->ai_addr, item->ai_addrlen) != 0 || listen(socket.fd(), 1) != 0) {
      status = ListenError(address, errno);
    }
  }
  freeaddrinfo(found);
  return status;
}

}  // namespace

Result<Address> Address::Parse(std::string_view flag, std::string_view text) {
  Address address;
  if (text.substr(0, kUnixPrefix.size()) == kUnixPrefix) {
    address.path_ = text.substr(kUnixPrefix.size());
    if (address.path_.empty() || address.path_[0] != '/') return Malformed(flag, text, "has no absolute path");
    if (address.path_.size() > kMaxUnixPathBytes || address.path_.find('\0') != std::string::npos) {
      return Malformed(
          flag, text,
          Concat("has a path of ", address.path_.size(), " bytes; a socket's has at most ", kMaxUnixPathBytes));
    }
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Malformed(flag, text, "has no port");
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return Malformed(flag, text, "has an IPv6 address without brackets");
  }
  if (host.empty()) return Malformed(flag, text, "has no host");
  for (const char c : host) {
    if (c <= ' ' || c == '/' || c == '[' || c == ']' || static_cast<unsigned char>(c) >= 0x7f) {
      return Malformed(flag, text, "has a host with a character that no host name has");
    }
  }
  const std::string port(text.substr(colon + 1));
  uint32_t number = 0;
  if (port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(port, &number) || number > 65535) {
    return Malformed(flag, text, "has a port that is no number from 0 to 65535");
  }
  address.host_ = host;
  address.port_ = static_cast<uint16_t>(number);
  return address;
}

bool Address::is_loopback() const {
  if (is_unix() || host_ == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host_.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host_.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return false;
}

Address Address::WithPort(uint16_t port) const {
  Address other = *this;
  other.port_ = port;
  return other;
}

std::string Address::ToString() const {
  if (is_unix()) return Concat("unix:", path_);
  if (host_.find(':') != std::string::npos) return Concat("[", host_, "]:", port_);
  return Concat(host_, ":", port_);
}

Status CheckTransport(std::string_view flag, const Address& address, bool tls, bool insecure) {
  if (tls && insecure) {
    return Status(ErrorCode::kInvalidArgument, "--insecure and the TLS flags exclude each other; give one of them");
  }
  if (tls || insecure || address.is_loopback()) return Status::Ok();
  return DEUT_ERROR(
      kInvalidArgument, flag, ": ", address.ToString(),
      " can be reached from other machines; give --tls_cert, --tls_key, --tls_ca and names of peers, or --insecure if "
      "everybody who can reach it may read and write all data");
}

Status ListenError(const Address& address, int error) {
  const std::string where = address.ToString();
  switch (error) {
    case EADDRINUSE:
      return DEUT_ERROR(
          kUnavailable, "cannot listen at ", where,
          ": the address is taken by another process; stop that one, or choose another address with --listen");
    case EADDRNOTAVAIL:
      return DEUT_ERROR(kInvalidArgument, "cannot listen at ", where,
                        ": this machine has no such address; --listen takes one of its own, or 0.0.0.0");
    case EACCES:
    case EPERM:
      return DEUT_ERROR(
          kPermissionDenied, "cannot listen at ", where,
          ": the system does not permit it (ports below 1024 need privileges; a socket's directory must be writable)");
    default:
      return DEUT_ERROR(kIoError, "cannot listen at ", where, ": ", strerror(error));
  }
}

Status DiagnoseListen(const Address& address) {
  return address.is_unix() ? DiagnoseUnix(address) : DiagnoseTcp(address);
}

}  // namespace deut

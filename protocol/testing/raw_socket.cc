#include "protocol/testing/raw_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace deut::testing {
namespace {

int LeftMillis(MonotonicTime end) {
  return static_cast<int>(std::max<int64_t>(duration_cast<milliseconds>(end - RealRuntime().Now()).count() + 1, 0));
}

// Waits for `events` on the socket. False: they did not come before `end`.
bool WaitFor(const Descriptor& socket, short events, MonotonicTime end) {
  pollfd wait{.fd = socket.get(), .events = events, .revents = 0};
  for (;;) {
    if (RealRuntime().Now() >= end) return false;
    if (poll(&wait, 1, LeftMillis(end)) > 0) return true;
  }
}

enum class Got : uint8_t { kBytes, kEnd, kNothing };

Got ReceiveSome(const Descriptor& socket, MonotonicTime end, std::string* received) {
  if (!WaitFor(socket, POLLIN, end)) return Got::kNothing;
  char bytes[16384];
  const ssize_t got = recv(socket.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Got::kBytes;
  if (got <= 0) return Got::kEnd;
  if (received != nullptr) received->append(bytes, static_cast<size_t>(got));
  return Got::kBytes;
}

}  // namespace

Descriptor ConnectRaw(const Address& address, const std::string& source) {
  sockaddr_storage name{};
  socklen_t bytes = 0;
  if (address.is_unix()) {
    auto& unix_name = reinterpret_cast<sockaddr_un&>(name);
    unix_name.sun_family = AF_UNIX;
    memcpy(unix_name.sun_path, address.path().data(), address.path().size());
    bytes = sizeof(unix_name);
  } else {
    const std::string host = address.host() == "localhost" ? "127.0.0.1" : address.host();
    auto& v4 = reinterpret_cast<sockaddr_in&>(name);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(name);
    if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(address.port());
      bytes = sizeof(v4);
    } else if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(address.port());
      bytes = sizeof(v6);
    }
  }
  Descriptor socket(::socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return {};
  if (!source.empty()) {
    sockaddr_in from{};
    from.sin_family = AF_INET;
    if (inet_pton(AF_INET, source.c_str(), &from.sin_addr) != 1 ||
        bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)) != 0) {
      return {};
    }
  }
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), bytes) != 0) return {};
  return socket;
}

bool SendRaw(const Descriptor& socket, std::string_view bytes, Duration limit) {
  const MonotonicTime end = RealRuntime().Now() + limit;
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!WaitFor(socket, POLLOUT, end)) {
      return false;
    }
  }
  return true;
}

bool EndsWithin(const Descriptor& socket, Duration limit, std::string* received) {
  const MonotonicTime end = RealRuntime().Now() + limit;
  for (;;) {
    const Got got = ReceiveSome(socket, end, received);
    if (got != Got::kBytes) return got == Got::kEnd;
  }
}

bool ReceiveRaw(const Descriptor& socket, size_t bytes, std::string* received, Duration limit) {
  const MonotonicTime end = RealRuntime().Now() + limit;
  while (received->size() < bytes) {
    if (ReceiveSome(socket, end, received) != Got::kBytes) return false;
  }
  return true;
}

std::string Http2Frame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(payload.size() >> shift));
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> shift));
  return frame.append(payload);
}

namespace {

// Encodes an integer of HPACK (RFC 7541, 5.1) behind the bits of `first`.
std::string HpackNumber(uint8_t first, int prefix_bits, size_t number) {
  const size_t most = (size_t{1} << prefix_bits) - 1;
  std::string bytes;
  if (number < most) return bytes.append(1, static_cast<char>(first | number));
  bytes.push_back(static_cast<char>(first | most));
  for (number -= most; number >= 128; number >>= 7) bytes.push_back(static_cast<char>(128 | (number & 127)));
  return bytes.append(1, static_cast<char>(number));
}

}  // namespace

std::string LiteralHeader(std::string_view name, std::string_view value) {
  return std::string(1, '\0')
      .append(HpackNumber(0, 7, name.size()))
      .append(name)
      .append(HpackNumber(0, 7, value.size()))
      .append(value);
}

std::string CallHeaders(std::string_view path) {
  return "\x83\x86" + LiteralHeader(":path", path) + LiteralHeader(":authority", "x") +
         LiteralHeader("te", "trailers") + LiteralHeader("content-type", "application/grpc");
}

}  // namespace deut::testing

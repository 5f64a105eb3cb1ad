#include "protocol/connections/peer_key.h"

#include <arpa/inet.h>

#include <cstring>

namespace deut {
namespace {

// Returns the text between `before` and `after`, or nothing. gRPC escapes brackets, and the mark of an IPv6 scope, as in a URI.
std::string_view Between(std::string_view text, std::string_view before, std::string_view after) {
  if (!text.starts_with(before)) return {};
  text.remove_prefix(before.size());
  const size_t end = text.rfind(after);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

}  // namespace

PeerKey PeerKey::Of(const sockaddr_storage& name) {
  PeerKey key;
  if (name.ss_family == AF_INET) {
    key.address.s6_addr[10] = key.address.s6_addr[11] = 0xff;
    memcpy(&key.address.s6_addr[12], &reinterpret_cast<const sockaddr_in&>(name).sin_addr, 4);
    key.counted = true;
  } else if (name.ss_family == AF_INET6) {
    key.address = reinterpret_cast<const sockaddr_in6&>(name).sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(&key.address)) memset(&key.address.s6_addr[8], 0, 8);
    key.counted = true;
  }
  return key;
}

PeerKey PeerKey::OfRpc(std::string_view peer) {
  sockaddr_storage name{};
  const std::string v4(Between(peer, "ipv4:", ":"));
  if (inet_pton(AF_INET, v4.c_str(), &reinterpret_cast<sockaddr_in&>(name).sin_addr) == 1) {
    name.ss_family = AF_INET;
    return Of(name);
  }
  // The scope of a link-local address is a number behind %25. It is left out: equal addresses on different links are one peer.
  std::string_view host = Between(peer, "ipv6:%5B", "%5D:");
  host = host.substr(0, host.find('%'));
  const std::string v6(host);
  if (inet_pton(AF_INET6, v6.c_str(), &reinterpret_cast<sockaddr_in6&>(name).sin6_addr) == 1) {
    name.ss_family = AF_INET6;
    return Of(name);
  }
  return {};
}

std::string PeerKey::ToString() const {
  if (!counted) return "a local peer";
  char text[INET6_ADDRSTRLEN] = {};
  if (IN6_IS_ADDR_V4MAPPED(&address)) return inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof(text));
  return std::string(inet_ntop(AF_INET6, &address, text, sizeof(text))) + "/64";
}

bool operator==(const PeerKey& a, const PeerKey& b) {
  return a.counted == b.counted && memcmp(&a.address, &b.address, sizeof(a.address)) == 0;
}

}  // namespace deut

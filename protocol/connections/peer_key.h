// PeerKey: the address by which a peer without a certificate is counted. So one host is one peer, however many connections it opens.
//
// A peer is an IPv4 address, or the first 64 bits of an IPv6 address, because a host is usually given 2^64 IPv6 addresses. All clients of a Unix
// socket have the same key, which has no address.
// Thread-safety: a value.
#ifndef PROTOCOL_CONNECTIONS_PEER_KEY_H_
#define PROTOCOL_CONNECTIONS_PEER_KEY_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <utility>

namespace deut {

struct PeerKey {
  in6_addr address = {};  // a mapped IPv4 address, or the first half of an IPv6 address
  bool counted = false;   // false: the peer has no address

  static PeerKey Of(const sockaddr_storage& name);
  // `peer` is the peer's name in gRPC's ServerContext: ipv4:192.0.2.7:51234, ipv6:%5B2001:db8::1%5D:51234, unix:/PATH.
  static PeerKey OfRpc(std::string_view peer);

  std::string ToString() const;
  friend bool operator==(const PeerKey& a, const PeerKey& b);
  template <typename H>
  friend H AbslHashValue(H h, const PeerKey& key) {
    return H::combine(H::combine_contiguous(std::move(h), key.address.s6_addr, sizeof(key.address.s6_addr)),
                      key.counted);
  }
};

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_PEER_KEY_H_

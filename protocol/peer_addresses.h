// PeerAddresses: the addresses from which the holder of a certificate is connected to a server of this process, for the log. gRPC does not tell a
// verifier of certificates the address of the peer, but its list of open connections (channelz) has both.
// It looks at kMostConnections connections at most, and takes some tens of microseconds for each: use it only for lines that are limited in number.
// Thread-safety: any thread, also those of gRPC.
#ifndef PROTOCOL_PEER_ADDRESSES_H_
#define PROTOCOL_PEER_ADDRESSES_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace deut {

constexpr size_t kMostConnections = 2000;

// "ipv4:192.0.2.7:51234, ipv4:..."; at most three of them; "an unknown address" if none is found.
std::string PeerAddresses(std::string_view certificate_pem);

}  // namespace deut

#endif  // PROTOCOL_PEER_ADDRESSES_H_

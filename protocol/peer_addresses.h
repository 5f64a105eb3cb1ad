// PeerAddresses: where the TLS connections to the servers of this process come from, for the log. gRPC names the address of a peer neither in its
// line about a refused handshake nor to a check of certificates.
//
// How: gRPC makes the TLS object of a connection on the thread that hands the socket over, so a scope on that thread names the connection
//   (TlsConnectionScope). OpenSSL calls back when a TLS object is made, for each message of its handshake, and when it is freed. The messages of a
//   handshake, and gRPC's line about its failure, are of one thread, one after the other.
// The same callbacks say how far a handshake is, for which the acceptor waits (handshake_pace.h).
// A connection costs some hundred bytes and, once its handshake is done, nothing more.
// Thread-safety: any thread, also those of gRPC.
#ifndef PROTOCOL_PEER_ADDRESSES_H_
#define PROTOCOL_PEER_ADDRESSES_H_

#include <memory>
#include <string>
#include <string_view>

#include "protocol/handshake_pace.h"

namespace deut {

// TLS objects that this thread makes while the scope lives are of the peer of `socket`. The first of them holds `turn` until its handshake
// is done, or it is freed. Without a TLS object the scope holds it.
class TlsConnectionScope {
 public:
  TlsConnectionScope(int socket, std::shared_ptr<HandshakePace::Turn> turn);
  ~TlsConnectionScope();
  TlsConnectionScope(const TlsConnectionScope&) = delete;
  TlsConnectionScope& operator=(const TlsConnectionScope&) = delete;
};

// Call before the first connection.
void WatchTlsConnections();

// The connection whose handshake this thread has been at last, "192.0.2.7:51234", and what is wrong with the peer's certificate, " (certificate has
// expired)", if that is known. Empty if it is not a server's. Forgets it.
std::string TakeLastHandshake();

// The addresses from which the holder of a certificate is connected: "192.0.2.7:51234, ..."; the newest three of them; "an unknown address" if
// there is none.
std::string PeerAddresses(std::string_view certificate_pem);

}  // namespace deut

#endif  // PROTOCOL_PEER_ADDRESSES_H_

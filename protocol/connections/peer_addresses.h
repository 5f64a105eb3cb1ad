// PeerAddresses: finds the address of a TLS connection to a server of this process, for the log. A peer's address is
// missing in gRPC's line about a refused handshake, and gRPC does not give it to a check of certificates.
//
// How: gRPC makes the TLS object of a connection on the thread that hands the socket over. So a scope on that thread
// names the connection (TlsConnectionScope). OpenSSL calls back when a TLS object is made, for each message of its
// handshake, and when it is freed. One thread handles the messages of a handshake and then logs gRPC's line about its
// failure.
// The same callbacks report the progress of a handshake, for which the acceptor waits (handshake_pace.h). A connection
// costs some hundred bytes and, once its handshake is done, nothing more.
// Thread-safety: any thread, including gRPC's.
#ifndef PROTOCOL_CONNECTIONS_PEER_ADDRESSES_H_
#define PROTOCOL_CONNECTIONS_PEER_ADDRESSES_H_

#include <memory>
#include <string>
#include <string_view>

#include "protocol/connections/handshake_pace.h"

namespace deut {

// While the scope lives, TLS objects that this thread makes belong to the peer of `socket`. The first of them holds
// `slot` until its handshake is done or it is freed. If there is none, the scope holds it.
class TlsConnectionScope {
 public:
  TlsConnectionScope(int socket, std::shared_ptr<HandshakePace::Slot> slot);
  ~TlsConnectionScope();
  TlsConnectionScope(const TlsConnectionScope&) = delete;
  TlsConnectionScope& operator=(const TlsConnectionScope&) = delete;
};

// Call it before the first connection.
void WatchTlsConnections();

// Returns the connection whose handshake this thread handled last, "192.0.2.7:51234". If known, it adds the error in
// the peer's certificate, " (certificate has expired)". Empty if it was no connection to a server. Forgets the
// connection.
std::string TakeLastHandshake();

// Returns the addresses from which the holder of a certificate is connected: "192.0.2.7:51234, ...". At most the newest
// three; "an unknown address" if there is none.
std::string PeerAddresses(std::string_view certificate_pem);

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_PEER_ADDRESSES_H_

// Addresses of daemons, and the rule for connections without TLS. They are allowed on loopback and unix sockets always,
// and elsewhere only with the operator's --insecure. The rule binds both sides: against it, a daemon does not start and
// a client does not connect.
//   HOST:PORT   host is a name, an IPv4 address, or an IPv6 address in brackets; port 0 lets the system choose (listening only)
//   unix:/PATH  a unix socket; the path has at most 107 bytes
// Thread-safety: values.
#ifndef PROTOCOL_CONNECTIONS_ENDPOINT_H_
#define PROTOCOL_CONNECTIONS_ENDPOINT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace deut {

class Address {
 public:
  // The address 127.0.0.1:0.
  Address() = default;
  // INVALID_ARGUMENT names `flag` and shows both forms.
  static Result<Address> Parse(std::string_view flag, std::string_view text);

  bool is_unix() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  const std::string& host() const { return host_; }
  uint16_t port() const { return port_; }
  // True if no other machine can reach it: a unix socket, 127.0.0.0/8, ::1, localhost.
  bool is_loopback() const;

  Address WithPort(uint16_t port) const;
  // In the form that Parse accepts.
  std::string ToString() const;

 private:
  std::string path_;
  std::string host_ = "127.0.0.1";  // without brackets
  uint16_t port_ = 0;
};

// Checks the rule above. `flag` names the address in the message; INVALID_ARGUMENT says what to do.
Status CheckTransport(std::string_view flag, const Address& address, bool tls, bool insecure);

// Explains to the operator a socket, bind or listen call that failed with this errno, and says what to do.
Status ListenError(const Address& address, int error);

// The reason why no process can listen at the address now, as the system reports it: taken, not of this machine, no
// permission. OK if one could listen. For messages after a failure. The state may have changed a moment later.
Status DiagnoseListen(const Address& address);

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_ENDPOINT_H_

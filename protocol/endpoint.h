// Addresses of daemons, and the rule of when a connection may go without TLS: on loopback and unix sockets always, elsewhere only when
// the operator says --insecure. It binds both sides: a daemon does not start, and a client does not connect, against it.
//   HOST:PORT   host a name, an IPv4 address, or an IPv6 address in brackets; port 0 lets the system choose (listening only)
//   unix:/PATH  a unix socket; the path has at most 107 bytes
// Thread-safety: values.
#ifndef PROTOCOL_ENDPOINT_H_
#define PROTOCOL_ENDPOINT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace deut {

class Address {
 public:
  // 127.0.0.1:0.
  Address() = default;
  // INVALID_ARGUMENT that names `flag` and shows both forms.
  static Result<Address> Parse(std::string_view flag, std::string_view text);

  bool is_unix() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  const std::string& host() const { return host_; }
  uint16_t port() const { return port_; }
  // True if no other machine can reach it: a unix socket, 127.0.0.0/8, ::1, localhost.
  bool is_loopback() const;

  Address WithPort(uint16_t port) const;
  // As Parse takes it.
  std::string ToString() const;

 private:
  std::string path_;
  std::string host_ = "127.0.0.1";  // without brackets
  uint16_t port_ = 0;
};

// The rule above. `flag` names the address in the message; INVALID_ARGUMENT says what to do.
Status CheckTransport(std::string_view flag, const Address& address, bool tls, bool insecure);

// What a failed socket, bind or listen with this errno means to the operator, and what to do.
Status ListenError(const Address& address, int error);

// Why nobody can listen at the address now, from the system's own answer: taken, not of this machine, no permission. OK if one could.
// For messages after a failure; what it says may have changed a moment later.
Status DiagnoseListen(const Address& address);

}  // namespace deut

#endif  // PROTOCOL_ENDPOINT_H_

// ListeningSockets: the sockets at which a server listens. The daemon, not gRPC, makes and binds them, so that it can
// accept connections itself (connection_acceptor.h).
//
// A host name gives one socket for each of its addresses, all with one port. 0.0.0.0 and [::] mean every address of
// both families. Two processes never share a port: SO_REUSEPORT is not set.
// The object replaces a socket file that a dead process left behind. Its destructor removes the file again if it is
// still the object's own.
// Thread-safety: none. Ownership: owns the sockets and the file.
#ifndef PROTOCOL_CONNECTIONS_LISTENING_SOCKETS_H_
#define PROTOCOL_CONNECTIONS_LISTENING_SOCKETS_H_

#include <sys/types.h>

#include <vector>

#include "common/base/descriptor.h"
#include "common/base/status.h"
#include "protocol/connections/endpoint.h"

namespace deut {

class ListeningSockets {
 public:
  // Binds and listens. The errors are those of DiagnoseListen, and name the address.
  static Result<ListeningSockets> Open(const Address& address);
  ~ListeningSockets();
  ListeningSockets(ListeningSockets&& other) noexcept;
  ListeningSockets& operator=(ListeningSockets&&) = delete;

  // Non-blocking sockets. Empty after Close.
  const std::vector<Descriptor>& sockets() const { return sockets_; }
  // The address, with the port that the system chose if port 0 was requested.
  const Address& address() const { return address_; }

  // Stops listening. The system refuses new connections, and resets those that are not accepted yet.
  void Close();

 private:
  explicit ListeningSockets(Address address) : address_(std::move(address)) {}
  Status OpenTcp();
  Status OpenUnix();
  // Binds one more socket, at `port`, or, if that is 0, at a port that the system chooses.
  Status Bind(int family, const void* name, unsigned bytes);

  Address address_;
  std::vector<Descriptor> sockets_;
  bool has_file_ = false;  // there is a socket file, with the device and inode below
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace deut

#endif  // PROTOCOL_CONNECTIONS_LISTENING_SOCKETS_H_

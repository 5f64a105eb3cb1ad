// ListeningSockets: the sockets at which a server listens, made and bound by us and not by gRPC, so that we accept (connection_acceptor.h).
//
// A host name gives one socket for each of its addresses, all with one port. 0.0.0.0 and [::] mean every address of both families. Two
// processes never share a port: SO_REUSEPORT is not set.
// A socket file that a dead process left behind is replaced. The file is removed again when the object ends, if it is still ours.
// Thread-safety: none. Ownership: owns the sockets and the file.
#ifndef PROTOCOL_LISTENING_SOCKETS_H_
#define PROTOCOL_LISTENING_SOCKETS_H_

#include <sys/types.h>

#include <vector>

#include "common/base/descriptor.h"
#include "common/base/status.h"
#include "protocol/endpoint.h"

namespace deut {

class ListeningSockets {
 public:
  // Binds and listens. The errors are those of DiagnoseListen, and name the address.
  static Result<ListeningSockets> Open(const Address& address);
  ~ListeningSockets();
  ListeningSockets(ListeningSockets&& other) noexcept;
  ListeningSockets& operator=(ListeningSockets&&) = delete;

  // Non-blocking. Empty after Close.
  const std::vector<Descriptor>& sockets() const { return sockets_; }
  // With the port that the system chose if 0 was asked for.
  const Address& address() const { return address_; }

  // Stops listening: the system refuses new connections, and those that nobody has accepted yet are reset.
  void Close();

 private:
  explicit ListeningSockets(Address address) : address_(std::move(address)) {}
  Status OpenTcp();
  Status OpenUnix();
  // Binds one more socket, at `port` or, if that is 0, one that the system chooses.
  Status Bind(int family, const void* name, unsigned bytes);

  Address address_;
  std::vector<Descriptor> sockets_;
  bool has_file_ = false;  // a socket file of the device and inode below
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace deut

#endif  // PROTOCOL_LISTENING_SOCKETS_H_

// RpcPeer: a daemon as its clients see it: where it is, how to reach it (TLS or not), and channels to it.
// Every channel has a connection of its own, so that bulk transfers never stand in the way of short calls. gRPC reconnects by itself,
// at once on demand, then with a pause that grows from 0.1 s to 1 s; calls on a channel without a connection fail at once with UNAVAILABLE,
// so whoever starts one waits a little for the connection first (AwaitConnection).
// Thread-safety: all methods from any thread. Ownership: channels keep what they need of it.
#ifndef PROTOCOL_RPC_PEER_H_
#define PROTOCOL_RPC_PEER_H_

#include <cstddef>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/status.h"
#include "protocol/endpoint.h"
#include "protocol/tls_keys.h"

namespace deut {

// What a connection is for.
enum class RpcTraffic : uint8_t {
  kShort,  // many small messages: small frames, so that none waits behind a large one
  kBulk,   // scans, log batches, table lists: large frames and windows, large answers allowed
};

// Waits a little for a connection that is not there (kConnectPatienceMs). A call that finds none fails at once, and between such calls
// nobody would notice that an attempt to connect has ended: gRPC's own poller looks every five seconds only. This wait polls.
void AwaitConnection(Runtime& runtime, grpc::Channel& channel, Deadline deadline);

class RpcPeer {
 public:
  // `what` and `flag` are for messages: "the data component", "--dc". INVALID_ARGUMENT by the rule of endpoint.h. Connects to nothing yet.
  static Result<std::shared_ptr<const RpcPeer>> Create(std::string what, std::string flag, const Address& address,
                                                       std::shared_ptr<TlsKeys> tls, bool insecure);

  std::shared_ptr<grpc::Channel> NewChannel(RpcTraffic traffic) const;

  // FromRpcStatus, but tells a refused certificate from a peer that is away, which gRPC does not. PERMISSION_DENIED if we refuse the peer's (its
  // names), or the peer ours: it has closed two connections running right after their handshakes. After the first one it is UNAVAILABLE, and says so.
  Status FromRpc(const grpc::Status& status) const;

  // No connection came about, so nothing was sent; and the reason may be that the peer refuses our certificate. The next tries show it.
  bool MayHaveRefused(const grpc::Status& status) const;

  // "the data component at 127.0.0.1:7702".
  const std::string& name() const { return name_; }

 private:
  class NameCheck;
  class Handshakes;

  RpcPeer() = default;
  std::string name_;
  std::string target_;
  std::string server_name_;  // what TLS asks for; empty: the host of target_
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::shared_ptr<Handshakes> handshakes_;
  std::shared_ptr<TlsKeys> tls_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_PEER_H_

// RpcPeer: a daemon as its clients see it: its address, whether it needs TLS, and channels to it.
// Every channel has a connection of its own, so that bulk transfers never delay short calls. gRPC reconnects by itself,
// at once on demand, then with a pause that grows from 0.1 s to 1 s. A call on a channel without a connection fails at
// once with UNAVAILABLE. So a caller first waits a little for the connection (AwaitConnection).
// Thread-safety: any thread may call any method. Ownership: channels keep the parts of it that they need.
#ifndef PROTOCOL_RPC_RPC_PEER_H_
#define PROTOCOL_RPC_RPC_PEER_H_

#include <cstddef>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/status.h"
#include "protocol/connections/endpoint.h"
#include "protocol/connections/tls_keys.h"

namespace deut {

// The kind of traffic of a connection.
enum class RpcTraffic : uint8_t {
  kShort,  // many small messages: small frames, so that none waits behind a large one
  kBulk,   // scans, log batches, table lists: large frames and windows, large answers allowed
};

// Waits a little for a missing connection (kConnectPatienceMs). A call that finds none fails at once. Between such
// calls no thread would notice the end of an attempt to connect, because gRPC's own poller looks only every five
// seconds. This wait polls.
void AwaitConnection(Runtime& runtime, grpc::Channel& channel, Deadline deadline);

class RpcPeer {
 public:
  // `what` and `flag` are for messages: "the data component", "--dc". INVALID_ARGUMENT by the rule of endpoint.h. Does
  // not connect yet.
  static Result<std::shared_ptr<const RpcPeer>> Create(const std::string& what, const std::string& flag,
                                                       const Address& address, std::shared_ptr<TlsKeys> tls,
                                                       bool insecure);

  std::shared_ptr<grpc::Channel> NewChannel(RpcTraffic traffic) const;

  // Like FromRpcStatus, but it distinguishes a refused certificate from a peer that is away, which gRPC does not.
  // PERMISSION_DENIED: this side refuses the peer's certificate (its names), or the peer refuses ours. The latter shows
  // when the peer has closed two connections in a row right after their handshakes. After the first one the status is
  // UNAVAILABLE and says so.
  Status FromRpc(const grpc::Status& status) const;

  // No connection came about, so nothing was sent. The reason may be that the peer refuses our certificate; the next
  // attempts show it.
  bool MayHaveRefused(const grpc::Status& status) const;

  // For example "the data component at 127.0.0.1:7702".
  const std::string& name() const { return name_; }

 private:
  class NameCheck;
  class Handshakes;

  RpcPeer() = default;
  std::string name_;
  std::string target_;
  std::string server_name_;  // the name that TLS requests; empty: the host of target_
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::shared_ptr<Handshakes> handshakes_;
  std::shared_ptr<TlsKeys> tls_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_PEER_H_

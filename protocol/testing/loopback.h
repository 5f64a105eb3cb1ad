// Loopback: a server for tests, and peers that reach it through real sockets of this machine. Thread-safety: one thread. Ownership: borrows the
// services.
#ifndef PROTOCOL_TESTING_LOOPBACK_H_
#define PROTOCOL_TESTING_LOOPBACK_H_

#include <fcntl.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/descriptor.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "protocol/connections/authorization.h"
#include "protocol/connections/endpoint.h"
#include "protocol/connections/tls_keys.h"
#include "protocol/rpc/rpc_peer.h"
#include "protocol/rpc/rpc_server.h"
#include "protocol/testing/raw_socket.h"

namespace deut::testing {

class Loopback {
 public:
  // `tls`: clients whose names are on its allow-list have every role.
  explicit Loopback(std::vector<grpc::Service*> services, const std::shared_ptr<const TlsIdentity>& tls = nullptr)
      : Loopback(std::move(services), tls, EveryRole(tls)) {}
  Loopback(std::vector<grpc::Service*> services, std::shared_ptr<const TlsIdentity> tls,
           std::shared_ptr<AccessControl> access)
      : services_(std::move(services)), tls_(KeysOf(std::move(tls))), access_(std::move(access)) {
    Start(Address());
  }

  // Ends the server as a crash of its process would: at once, with all connections.
  void Stop() { server_.reset(); }
  // Starts the server again, at the same port. A service that an executor runs (rpc_server.h) belongs to one server for good, so a restart with such
  // services needs new ones.
  void Restart() {
    for (grpc::Service* service : services_) DEUT_CHECK(dynamic_cast<ExecutedService*>(service) == nullptr);
    Start(server_address_);
  }
  void Restart(std::vector<grpc::Service*> services) {
    services_ = std::move(services);
    Start(server_address_);
  }

  const Address& address() const { return server_address_; }
  RpcServer& server() { return *server_; }
  // Null without TLS.
  TlsKeys* keys() { return tls_.get(); }
  AccessControl* access() { return access_.get(); }

  std::shared_ptr<const RpcPeer> Peer(std::shared_ptr<const TlsIdentity> tls = nullptr) const {
    auto peer = RpcPeer::Create("the server", "--server", server_address_, KeysOf(std::move(tls)), /*insecure=*/false);
    DEUT_CHECK(peer.ok());
    return std::move(peer).value();
  }

  // Returns a client's channel on a connection of its own, which comes from `source`, one of 127.0.0.0/8. Without TLS, each such address is a peer of
  // its own. The channel does not connect again.
  static std::shared_ptr<grpc::Channel> ChannelFrom(const std::string& source, const Address& server) {
    Descriptor socket = ConnectRaw(server, source);
    DEUT_CHECK(socket.valid() && fcntl(socket.get(), F_SETFL, O_NONBLOCK) == 0);
    return grpc::CreateInsecureChannelFromFd(server.ToString(), socket.Release());
  }
  std::shared_ptr<grpc::Channel> ChannelFrom(const std::string& source) const {
    return ChannelFrom(source, server_address_);
  }

  static std::shared_ptr<TlsKeys> KeysOf(std::shared_ptr<const TlsIdentity> identity) {
    if (identity == nullptr) return nullptr;
    auto keys = TlsKeys::Create(RealRuntime(), std::move(identity));
    DEUT_CHECK(keys.ok());
    return std::move(keys).value();
  }

  // Gives every role to every name on the identity's allow-list.
  static std::shared_ptr<AccessControl> EveryRole(const std::shared_ptr<const TlsIdentity>& tls) {
    if (tls == nullptr) return nullptr;
    std::vector<Grant> grants;
    for (const std::string& name : tls->allow) {
      for (const Role role : {Role::kClient, Role::kAdmin, Role::kTc}) grants.push_back({.name = name, .role = role});
    }
    return std::make_shared<AccessControl>(RealRuntime(), Authorizer(std::move(grants)));
  }

 private:
  void Start(const Address& address) {
    RpcServerOptions options;
    options.listen = address;
    options.tls = tls_;
    options.access = access_;
    auto server = RpcServer::Start(RealRuntime(), options, services_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
    server_address_ = server_->address();
  }

  std::vector<grpc::Service*> services_;
  const std::shared_ptr<TlsKeys> tls_;
  const std::shared_ptr<AccessControl> access_;
  Address server_address_;
  std::unique_ptr<RpcServer> server_;
};

// Asks the standard health service (grpc.health.v1) for the status of the whole server: 1 serving, 2 not serving; or the error of the call. The
// service's messages are a string and a number, so they need no generated code here.
inline Result<int> Health(const RpcPeer& peer, std::shared_ptr<grpc::Channel> channel) {
  grpc::ClientContext context;
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN)));
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(std::move(channel));
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(nullptr, 0), &queue);
  call->StartCall();
  grpc::ByteBuffer answer;
  grpc::Status end;
  call->Finish(&answer, &end, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  if (!end.ok()) return peer.FromRpc(end);
  grpc::Slice bytes;
  DEUT_CHECK(answer.DumpToSingleSlice(&bytes).ok() && bytes.size() == 2 && bytes.begin()[0] == 8);
  return int{bytes.begin()[1]};
}
inline Result<int> Health(const RpcPeer& peer) { return Health(peer, peer.NewChannel(RpcTraffic::kShort)); }

// Waits until `condition` holds; false after 20 s.
inline bool Eventually(const std::function<bool()>& condition) {
  Runtime& runtime = RealRuntime();
  const Deadline deadline = runtime.Now() + seconds(20);
  while (!condition()) {
    if (runtime.Now() > deadline) return false;
    runtime.SleepUntil(runtime.Now() + milliseconds(1));
  }
  return true;
}

}  // namespace deut::testing

#endif  // PROTOCOL_TESTING_LOOPBACK_H_

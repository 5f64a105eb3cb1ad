// Loopback: a server for tests and the address of it as a peer. Everything goes through real sockets of this machine.
#ifndef PROTOCOL_TESTING_LOOPBACK_H_
#define PROTOCOL_TESTING_LOOPBACK_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "protocol/endpoint.h"
#include "protocol/rpc_peer.h"
#include "protocol/rpc_server.h"

namespace deut::testing {

class Loopback {
 public:
  explicit Loopback(std::vector<grpc::Service*> services, std::shared_ptr<const TlsIdentity> tls = nullptr)
      : services_(std::move(services)), tls_(std::move(tls)) {
    Start(Address());
  }

  // Ends the server as a crash of its process would: at once, with all connections.
  void Stop() { server_.reset(); }
  // At the same port as before.
  void Restart() { Start(server_address_); }

  const Address& address() const { return server_address_; }
  RpcServer& server() { return *server_; }

  std::shared_ptr<const RpcPeer> Peer(std::shared_ptr<const TlsIdentity> tls = nullptr) const {
    auto peer = RpcPeer::Create("the server", "--server", server_address_, std::move(tls), /*insecure=*/false);
    DEUT_CHECK(peer.ok());
    return std::move(peer).value();
  }

 private:
  void Start(const Address& address) {
    RpcServerOptions options;
    options.listen = address;
    options.tls = tls_;
    auto server = RpcServer::Start(RealRuntime(), options, services_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
    server_address_ = server_->address();
  }

  const std::vector<grpc::Service*> services_;
  const std::shared_ptr<const TlsIdentity> tls_;
  Address server_address_;
  std::unique_ptr<RpcServer> server_;
};

// What the standard health service (grpc.health.v1) says of the whole server: 1 serving, 2 not serving; or how the call failed. Its
// messages are a string and a number, so they need no generated code here.
inline Result<int> Health(const RpcPeer& peer) {
  grpc::ClientContext context;
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(20, GPR_TIMESPAN)));
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(peer.NewChannel(RpcTraffic::kShort));
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

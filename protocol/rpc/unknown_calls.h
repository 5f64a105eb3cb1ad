// UnknownCalls: answers the calls of methods that a server does not have, with UNIMPLEMENTED and the method's name.
//
// gRPC would do this by itself, but not where several threads take events from one queue, as an executor's threads do.
// Its own object asks for a call in the constructor of its base class. If such a call waits already, another thread may
// get the event before the derived object exists. Then gRPC 1.51 hands the event to the application without a tag,
// never answers the call, keeps its connection, and never asks for the next such call.
// Life of a call: wanted -> taken, when the next one is wanted -> answered -> gone. One event refers to it at any time.
// Thread-safety: AddTo and Serve are called once, at the server's start; the rest runs in the executor's events.
// Ownership: outlives the server, which outlives its calls.
#ifndef PROTOCOL_RPC_UNKNOWN_CALLS_H_
#define PROTOCOL_RPC_UNKNOWN_CALLS_H_

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server_builder.h"
#include "protocol/rpc/rpc_executor.h"

namespace deut {

class UnknownCalls {
 public:
  UnknownCalls() = default;
  UnknownCalls(const UnknownCalls&) = delete;
  UnknownCalls& operator=(const UnknownCalls&) = delete;

  // Before the server is built, and once it is.
  void AddTo(grpc::ServerBuilder& builder) { builder.RegisterAsyncGenericService(&service_); }
  void Serve(RpcExecutor& executor);

 private:
  class Call;
  grpc::AsyncGenericService service_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_UNKNOWN_CALLS_H_

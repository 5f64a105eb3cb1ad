// GrpcDataComponentService: the server side of data_component.proto: checks what comes in and forwards it to a DataComponent, which may
// be any implementation. An executor runs all of it (rpc_executor.h), so a stream or call holds a thread only while it works; no lock is
// held while the component is called.
//
// Bounds on what one peer can make this process hold: a Data stream is read only while there is room for its answers (answer_queue.h); a
//   scan is read from the component only inside its grants, one batch ahead of what is written; acknowledgements replace each other; a
//   peer that does not take what is written to it for `stuck_peer` has its stream or call cancelled (stream_watchdog.h); a component that
//   is waited for as long in a log stream or scan ends it with DEADLINE_EXCEEDED. Streams and single calls are
//   limited by peer (service_options.h); messages, metadata, threads: rpc_server.h.
// Streams hold up each other wherever the component waits on another Runtime than a TellingRuntime, until the executor notices.
// Errors: of single items inside messages. A stream ends with a gRPC status only if its messages cannot be understood at all.
// Thread-safety: the executor's threads call it. Ownership: the component outlives it; the server that it is registered with, one for good, ends
//   before it.
#ifndef PROTOCOL_GRPC_DATA_COMPONENT_SERVICE_H_
#define PROTOCOL_GRPC_DATA_COMPONENT_SERVICE_H_

#include <memory>

#include "common/runtime/runtime.h"
#include "grpcpp/impl/service_type.h"
#include "protocol/data_component.h"
#include "protocol/service_options.h"

namespace deut {

class GrpcDataComponentService {
 public:
  GrpcDataComponentService(Runtime& runtime, DataComponent& component, const RpcServiceOptions& options);
  ~GrpcDataComponentService();
  GrpcDataComponentService(const GrpcDataComponentService&) = delete;
  GrpcDataComponentService& operator=(const GrpcDataComponentService&) = delete;

  // For RpcServer::Start.
  grpc::Service* service();

 private:
  class Service;
  const std::unique_ptr<Service> service_;
};

}  // namespace deut

#endif  // PROTOCOL_GRPC_DATA_COMPONENT_SERVICE_H_

// GrpcDataComponentService: the server side of data_component.proto. It checks requests and forwards them to any
// implementation of DataComponent. An executor runs all of it (rpc_executor.h), so a stream or call holds a thread only
// while it works. It holds no lock while it calls the component.
//
// Bounds on the memory and threads that one peer can take:
// - A Data stream is read only while there is room for its answers (answer_queue.h).
// - A scan is read from the component only within its grants, and one batch ahead of the one being written.
// - Acknowledgements replace each other.
// - If a peer takes nothing for `stuck_peer`, its stream or call is cancelled (stream_watchdog.h).
// - If the component takes that long in a log stream or scan, the stream ends with DEADLINE_EXCEEDED.
// - Streams and single calls are limited per peer (service_options.h); messages, metadata and threads in rpc_server.h.
// If the component waits on a Runtime that is no BlockingHookRuntime, streams delay each other until the executor notices.
// Errors: those of single items travel inside messages. A stream ends with a gRPC status only if its messages are
// invalid as a whole.
// Thread-safety: the executor's threads call it. Ownership: the component outlives it. It is registered with one server
// for good, and that server ends before it.
#ifndef PROTOCOL_DATA_GRPC_DATA_COMPONENT_SERVICE_H_
#define PROTOCOL_DATA_GRPC_DATA_COMPONENT_SERVICE_H_

#include <memory>

#include "common/runtime/runtime.h"
#include "grpcpp/impl/service_type.h"
#include "protocol/data_component.h"
#include "protocol/rpc/service_options.h"

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

#endif  // PROTOCOL_DATA_GRPC_DATA_COMPONENT_SERVICE_H_

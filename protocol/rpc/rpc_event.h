// RpcEvent: the end of an operation of gRPC. RpcEventLoop: runs such events.
// A daemon has one loop, its executor (rpc_executor.h), for the calls that it serves and for those that it makes. So
// only one thread waits for the network. If several did, gRPC would let one of them poll for all, and that one would
// have to hand over the events of the others. Other programs have a thread that is a loop (rpc_event_thread.h).
// Thread-safety: any thread may use `queue`. Ownership: the code that starts an operation keeps its event alive until
// Done was called. It keeps the loop alive until all operations on its queue have ended.
#ifndef PROTOCOL_RPC_RPC_EVENT_H_
#define PROTOCOL_RPC_RPC_EVENT_H_

#include "grpcpp/completion_queue.h"

namespace deut {

// The tag of an operation on a completion queue points to an RpcEvent. The event may be destroyed before Done returns.
class RpcEvent {
 public:
  virtual void Done(bool ok) = 0;
  // Whether Done may block, except on a lock.
  virtual bool MayBlock() const { return true; }

 protected:
  ~RpcEvent() = default;
};

class RpcEventLoop {
 public:
  virtual ~RpcEventLoop() = default;
  // The tag of each operation that is started on it is an RpcEvent*. Several threads may run events at once, also those
  // of one stream.
  virtual grpc::CompletionQueue* queue() = 0;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_EVENT_H_

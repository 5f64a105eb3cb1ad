// RpcEvent: an operation of gRPC that has ended. RpcEventLoop: who runs such events.
// A daemon has one loop, its executor (rpc_executor.h), for its server's calls and its own calls to others alike: so one thread alone waits for
// the network. Of several that wait, gRPC lets one poll for all, and each event of another's has to be handed over.
// Other programs have a thread that is a loop (rpc_event_thread.h).
// Thread-safety: `queue` may be used by any thread. Ownership: who starts an operation keeps its event alive until Done was called, and the loop
// until all operations on its queue have ended.
#ifndef PROTOCOL_RPC_EVENT_H_
#define PROTOCOL_RPC_EVENT_H_

#include "grpcpp/completion_queue.h"

namespace deut {

// What a tag of the completion queue points to. It may be gone when Done returns.
class RpcEvent {
 public:
  virtual void Done(bool ok) = 0;
  // Whether Done may block, for other than a lock.
  virtual bool MayBlock() const { return true; }

 protected:
  ~RpcEvent() = default;
};

class RpcEventLoop {
 public:
  virtual ~RpcEventLoop() = default;
  // The tag of an operation that is started on it is an RpcEvent*. Events may be run by several threads at once, also those of one stream.
  virtual grpc::CompletionQueue* queue() = 0;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_EVENT_H_

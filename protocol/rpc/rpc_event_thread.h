// RpcEventThread: an event loop of one thread, for programs that have no executor. Thread-safety: as RpcEventLoop. The
// destructor ends the thread. REQUIRES, of the destructor: no operation on the queue is in flight.
#ifndef PROTOCOL_RPC_RPC_EVENT_THREAD_H_
#define PROTOCOL_RPC_RPC_EVENT_THREAD_H_

#include <memory>

#include "common/runtime/runtime.h"
#include "grpcpp/completion_queue.h"
#include "protocol/rpc/rpc_event.h"
#include "protocol/rpc/rpc_event_wait.h"

namespace deut {

class RpcEventThread final : public RpcEventLoop {
 public:
  explicit RpcEventThread(Runtime& runtime);
  ~RpcEventThread() override;

  grpc::CompletionQueue* queue() override { return &queue_; }

 private:
  void Run();

  RpcEventWait wait_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_EVENT_THREAD_H_

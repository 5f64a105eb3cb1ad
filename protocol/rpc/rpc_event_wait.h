// RpcEventWait: waits for the next event of a completion queue. It spins first where that pays (adaptive_spin.h). An
// event that is there at once says nothing about the time between events, so it changes no credit. Thread-safety: any
// thread may call Next.
#ifndef PROTOCOL_RPC_RPC_EVENT_WAIT_H_
#define PROTOCOL_RPC_RPC_EVENT_WAIT_H_

#include "common/runtime/runtime.h"
#include "common/sync/adaptive_spin.h"
#include "grpcpp/completion_queue.h"

namespace deut {

class RpcEventWait {
 public:
  explicit RpcEventWait(Runtime& runtime) : runtime_(runtime) {}

  // Like the queue's AsyncNext.
  grpc::CompletionQueue::NextStatus Next(grpc::CompletionQueue& queue, void** tag, bool* ok, Deadline deadline);

  const AdaptiveSpin& spin() const { return spin_; }

 private:
  Runtime& runtime_;
  AdaptiveSpin spin_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_EVENT_WAIT_H_

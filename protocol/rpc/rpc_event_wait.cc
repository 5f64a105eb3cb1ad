#include "protocol/rpc/rpc_event_wait.h"

#include "grpc/support/time.h"
#include "protocol/rpc/rpc_status.h"

namespace deut {

grpc::CompletionQueue::NextStatus RpcEventWait::Next(grpc::CompletionQueue& queue, void** tag, bool* ok,
                                                     Deadline deadline) {
  grpc::CompletionQueue::NextStatus next = grpc::CompletionQueue::TIMEOUT;
  const auto look = [&] {
    next = queue.AsyncNext(tag, ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
    return next != grpc::CompletionQueue::TIMEOUT;
  };
  if (look() || spin_.Find(runtime_, deadline, look)) return next;
  return queue.AsyncNext(tag, ok, ToRpcTime(runtime_, deadline));
}

}  // namespace deut

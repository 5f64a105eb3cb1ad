#include "protocol/rpc_event_wait.h"

#include <algorithm>

#include "grpc/support/time.h"
#include "protocol/rpc_status.h"

namespace deut {

bool RpcEventWait::StayAwake() {
  const uint32_t asleep = asleep_.load(std::memory_order_relaxed);
  if (asleep == 0) return true;
  asleep_.store(asleep - 1, std::memory_order_relaxed);
  return false;
}

grpc::CompletionQueue::NextStatus RpcEventWait::Next(grpc::CompletionQueue& queue, void** tag, bool* ok,
                                                     Deadline deadline) {
  if (StayAwake()) {
    const gpr_timespec at_once = gpr_time_0(GPR_CLOCK_MONOTONIC);
    // What is there already says nothing of how far apart events are.
    grpc::CompletionQueue::NextStatus next = queue.AsyncNext(tag, ok, at_once);
    if (next != grpc::CompletionQueue::TIMEOUT) return next;
    awake_.fetch_add(1, std::memory_order_relaxed);
    const MonotonicTime until = std::min<MonotonicTime>(runtime_.Now() + kAwake, deadline);
    do {
      runtime_.Yield();
      next = queue.AsyncNext(tag, ok, at_once);
      if (next == grpc::CompletionQueue::TIMEOUT) continue;
      pause_.store(0, std::memory_order_relaxed);
      return next;
    } while (runtime_.Now() < until);
    in_vain_.fetch_add(1, std::memory_order_relaxed);
    const uint32_t pause = std::min(2 * pause_.load(std::memory_order_relaxed) + 1, kMostAsleep);
    pause_.store(pause, std::memory_order_relaxed);
    asleep_.store(pause, std::memory_order_relaxed);
  }
  return queue.AsyncNext(tag, ok, ToRpcTime(runtime_, deadline));
}

}  // namespace deut

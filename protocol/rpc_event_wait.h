// RpcEventWait: waits for the next event of a completion queue, at first awake and then asleep.
//
// A thread that sleeps is woken late: the system has to choose it, and the processor that is to run it may be at rest, from which a hypervisor takes
// some ten microseconds to bring it back. Where the next event comes sooner than that, looking for it costs nothing that another thread could use,
// because between two looks this one yields. So the first kAwake of a wait are spent looking.
// Where events are far apart that is in vain, so it is done only where it pays: after a wait that was awake in vain, the next one sleeps at once, and
// after n such in a row the next 2^n - 1, up to kMostAsleep. An event that comes while the thread looks for it ends that.
// Thread-safety: Next by several threads is safe; they share what is known of the waits.
#ifndef PROTOCOL_RPC_EVENT_WAIT_H_
#define PROTOCOL_RPC_EVENT_WAIT_H_

#include <atomic>
#include <cstdint>

#include "common/runtime/runtime.h"
#include "grpcpp/completion_queue.h"

namespace deut {

class RpcEventWait {
 public:
  static constexpr Duration kAwake = microseconds(50);
  static constexpr uint32_t kMostAsleep = 63;

  explicit RpcEventWait(Runtime& runtime) : runtime_(runtime) {}

  // As the queue's AsyncNext.
  grpc::CompletionQueue::NextStatus Next(grpc::CompletionQueue& queue, void** tag, bool* ok, Deadline deadline);

  // Waits that were awake, and of these the ones in vain.
  uint64_t awake() const { return awake_.load(std::memory_order_relaxed); }
  uint64_t in_vain() const { return in_vain_.load(std::memory_order_relaxed); }

 private:
  bool StayAwake();

  Runtime& runtime_;
  std::atomic<uint32_t> asleep_{0};  // waits that are still to sleep at once
  std::atomic<uint32_t> pause_{0};   // as many will follow the next that is awake in vain, less one half
  std::atomic<uint64_t> awake_{0};
  std::atomic<uint64_t> in_vain_{0};
};

}  // namespace deut

#endif  // PROTOCOL_RPC_EVENT_WAIT_H_

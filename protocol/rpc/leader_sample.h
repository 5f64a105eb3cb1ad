// LeaderSample: the leader of an executor (rpc_executor.h) and its processor time, as a check found them. The next check
// compares: a leader that has not begun another wait since, and has used the processor for most of the time, computes in
// gRPC instead of waiting there.
// Thread-safety: none; the executor's lock guards it.
#ifndef PROTOCOL_RPC_LEADER_SAMPLE_H_
#define PROTOCOL_RPC_LEADER_SAMPLE_H_

#include <cstdint>

#include "common/runtime/time.h"
#include "protocol/rpc/rpc_thread_pool.h"

namespace deut {

class LeaderSample {
 public:
  // Whether the leader has been computing since the last call, `passed` ago. `leader` may be null. REQUIRES: its thread
  // exists.
  bool Computes(const RpcThread* leader, Duration passed);

 private:
  const RpcThread* leader_ = nullptr;
  uint64_t lead_count_ = 0;
  int64_t cpu_ns_ = 0;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_LEADER_SAMPLE_H_

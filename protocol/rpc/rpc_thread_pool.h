// RpcThreadPool: the threads of an executor (rpc_executor.h). It starts them, lets them rest, summons them, and keeps
// those that have ended until they are joined. The executor decides what a summoned thread does.
// States of a thread: resting, from its start or since Rest; summoned; gone (End).
// The system may refuse a thread. Then the pool makes no attempt for kPauseAfterShortage, because each one maps a stack,
// and a loaded server would make one for each event.
// Thread-safety: the executor's lock guards all methods. Ownership: owns the threads. REQUIRES, of the destructor: all
// threads have ended.
#ifndef PROTOCOL_RPC_RPC_THREAD_POOL_H_
#define PROTOCOL_RPC_RPC_THREAD_POOL_H_

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <vector>

#include "common/observe/log_pace.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut {

// A thread of an executor. Only the executor and the pool use it, under the executor's lock.
struct RpcThread {
  bool blocked = false;   // its event, or its work, has announced that it blocks
  bool summoned = false;  // called out of its rest
  CondVar summons;
  MonotonicTime runs_without_wait_since;  // the time since which it runs events without a wait between them
  uint64_t lead_count = 0;                // how often it has begun to lead
  clockid_t clock = {};                   // the clock of its processor time
  std::unique_ptr<Thread> thread;
};

class RpcThreadPool {
 public:
  // The pause between two attempts to start a thread, once the system has refused one.
  static constexpr Duration kPauseAfterShortage = milliseconds(10);

  // Each thread runs `body`, which first calls AwaitSummons.
  using Body = std::function<void(RpcThread* self)>;
  RpcThreadPool(Runtime& runtime, int max_threads, Body body);
  RpcThreadPool(const RpcThreadPool&) = delete;
  RpcThreadPool& operator=(const RpcThreadPool&) = delete;

  // Starts a thread, which rests. False: there are `max_threads` of them, or the system gives none.
  bool AddResting();
  // Summons a resting thread, or a new one. False: there is none.
  bool Summon();

  // The calling thread waits until it is summoned. It is a new one, or has called Rest. `mutex` is the executor's lock.
  void AwaitSummons(RpcThread* self, Mutex& mutex) DEUT_REQUIRES(mutex);
  void Rest(RpcThread* self);
  // The calling thread ends, and `self` is no longer valid.
  void End(RpcThread* self);
  // The threads that have ended since the last call. Destroying one joins it.
  std::vector<std::unique_ptr<Thread>> TakeEnded();

  int size() const { return static_cast<int>(threads_.size()); }
  size_t resting() const { return resting_.size(); }
  uint64_t summons() const { return summons_; }      // threads that were summoned so far
  uint64_t shortages() const { return shortages_; }  // threads that the system refused so far

 private:
  Runtime& runtime_;
  const int max_threads_;
  const Body body_;
  std::vector<std::unique_ptr<RpcThread>> threads_;
  std::vector<RpcThread*> resting_;
  std::vector<std::unique_ptr<Thread>> ended_;
  uint64_t summons_ = 0;
  uint64_t shortages_ = 0;
  MonotonicTime no_thread_before_;  // the end of the pause after a shortage
  LogPace shortage_pace_{seconds(1)};
};

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_THREAD_POOL_H_

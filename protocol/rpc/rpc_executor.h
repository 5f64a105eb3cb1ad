// RpcExecutor: the threads of a server that answers its calls in events. One thread, the leader, waits for the next event of gRPC and runs it in
// place. The others rest.
//
// An event that needs nothing but memory is read, run and answered by one thread, which wakes no other. An event that is about to block announces
// that (BeforeBlocking, which a BlockingHookRuntime's BlockingHook can call), and another thread takes over the waiting for events. So a call holds a
// thread only while it works, however many calls are open.
//
// States of a thread. All changes are made under the lock.
//   leading    waits for the next event. At most one thread leads. A leader that is found computing loses the lead to another thread, and still runs
//              the event with which its wait returns. leading -> running with an event.
//   running    runs an event or posted work. When that is over, the thread runs posted work that waits; else it leads if no thread does
//              (-> leading); else it rests (-> resting).
//   blocked    its event, or its work, has announced that it blocks. running -> blocked; blocked -> running when the event is over.
//   resting    waits for a summons: -> running. A thread that is to rest while kMaxResting others do ends instead.
// Invariant: a thread leads, or a running thread will lead. A thread that stops running (BeforeBlocking) summons another if it was the last one.
// The last thread runs nothing that could block. Threads may wait for something that only another event brings, such as a peer that takes its data
//   or a watchdog's cut. So one thread must always be there to run that event. While all other threads are at events that could block, or at posted
//   work, further events and work of the kind wait.
// The system may give fewer threads than `threads`. So an event that could block, or posted work, runs only while another thread, the spare, exists
//   that runs nothing of the kind. If the system gives no thread for that, the event waits like one beyond the limit. It is run by the next thread
//   whose event is over, or by one that rpc-monitor starts once the system gives threads again.
// Single calls (PostSingle) have `threads_for_single_calls` threads more than events and posted work. So status and outcomes can be asked for
//   even if all streams wait.
// Sharing. One thread at a time suffices while events are short and few. A thread that has run events for `share_after` without a wait between them
//   summons another, until `max_running` threads run.
// rpc-monitor, a thread of its own, checks often while events come, and seldom else. It summons a thread in two cases that keep all other
//   calls from being served:
//   - an event takes long and has not announced it;
//   - the leader computes instead of waiting. gRPC reads, and does handshakes, inside its wait for events, and one peer can send enough to keep it
//     busy with that. The summoned thread leads in its place.
// Parts, which the executor's lock guards: its threads (rpc_thread_pool.h), posted work and the right to begin something that could block
//   (posted_work.h), rpc-monitor's look at the leader (leader_sample.h).
// Failures. gRPC's wait can fail: its engine `poll`, if the environment asks for that, needs an eventfd for each thread that waits, and there may be
//   none. That is not the queue's end. The leader pauses and waits again. Only Stop, which shuts the queue down, ends the threads.
// Source: leader and followers, as Schmidt and others call it (Pattern-Oriented Software Architecture 2, 2000).
// Thread-safety: any thread calls Post; the thread that runs the event calls BeforeBlocking.
// Lifetime: Start once; Stop when the server has shut down. The server's shutdown does not wait for calls that are at work. AwaitNoCalls does: it
//   waits until all calls that have begun (CallBegins) are gone, because nothing may be started on a queue that has shut down. No other operation
//   may be in flight either when the executor stops.
#ifndef PROTOCOL_RPC_RPC_EXECUTOR_H_
#define PROTOCOL_RPC_RPC_EXECUTOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/observe/log_pace.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/completion_queue.h"
#include "protocol/rpc/leader_sample.h"
#include "protocol/rpc/posted_work.h"
#include "protocol/rpc/rpc_event.h"
#include "protocol/rpc/rpc_event_wait.h"
#include "protocol/rpc/rpc_thread_pool.h"

namespace deut {

class RpcExecutor;

// Counts a call that starts events on an executor's queue. It is the call's first member, so it is destroyed last: nothing of the call is left when
// the executor learns that the call is gone. From then on the objects that the call has borrowed may be destroyed, too.
class RpcCallPresence {
 public:
  explicit RpcCallPresence(RpcExecutor& executor);
  ~RpcCallPresence();
  RpcCallPresence(const RpcCallPresence&) = delete;
  RpcCallPresence& operator=(const RpcCallPresence&) = delete;

 private:
  RpcExecutor& executor_;
};

class RpcExecutor : public RpcEventLoop {
 public:
  struct Options {
    int threads = 1024;  // the most threads; the last one, if there are several, is for events that do not block
    int threads_for_single_calls = 0;  // those of `threads` that only run single calls
    int max_running = 1;               // at most this many threads run at the same time, not counting blocked ones
    Duration share_after = microseconds(50);
  };
  static constexpr size_t kMaxResting = 16;
  // The time between two checks of rpc-monitor: while events come, and while none do.
  static constexpr Duration kCheckInterval = milliseconds(2);
  static constexpr Duration kIdleCheckInterval = milliseconds(50);
  // The leader's pause after gRPC has failed to wait.
  static constexpr Duration kPauseAfterFailure = milliseconds(10);

  RpcExecutor(Runtime& runtime, const Options& options, std::unique_ptr<grpc::ServerCompletionQueue> queue);
  ~RpcExecutor() override;
  RpcExecutor(const RpcExecutor&) = delete;
  RpcExecutor& operator=(const RpcExecutor&) = delete;

  grpc::ServerCompletionQueue* queue() override { return queue_.get(); }

  void Start();
  void Stop();
  // Waits until the server has no calls any more. REQUIRES: the server has shut down.
  void AwaitNoCalls();

  // Runs the work soon on one of the threads. False: it has to wait, because all threads that may block are blocked, or the system gives no spare. It
  // runs when one of them no longer is blocked, or when there is a spare.
  bool Post(std::function<void()> work);
  // Does the same for a single call, which may also use the threads for single calls.
  void PostSingle(std::function<void()> work);

  // Announces that this thread's event, or its work, is about to block. Only the first call during an event has an effect. REQUIRES: a thread of the
  // executor.
  void BeforeBlocking();
  // Announces that the event will take some time without blocking. Another thread leads meanwhile, unless `max_running`
  // threads run already. REQUIRES: a thread of the executor.
  void BeforeLongEvent();

  struct Counts {
    uint64_t events = 0;
    uint64_t summons = 0;  // threads that were woken or started
    int threads = 0;
    int blocked = 0;
    uint64_t replaced = 0;   // leaders that were found computing
    uint64_t failures = 0;   // failed waits for an event
    uint64_t shortages = 0;  // threads that the system refused
  };
  Counts counts();

 protected:
  // Waits for the next event, without a deadline. TIMEOUT means that gRPC could not wait. Tests replace it.
  virtual grpc::CompletionQueue::NextStatus AwaitEvent(void** tag, bool* ok);

 private:
  friend class RpcCallPresence;
  void CallBegins();
  void CallIsGone();

  // The body of a thread, which begins at rest.
  void Run(RpcThread* self);
  // Leads: waits for an event and runs it. False: the queue has ended.
  bool LeadLocked(RpcThread* self) DEUT_REQUIRES(mutex_);
  void PauseAfterFailure();
  void WorkLocked(RpcThread* self) DEUT_REQUIRES(mutex_);
  // False: the thread ends.
  bool RestLocked(RpcThread* self) DEUT_REQUIRES(mutex_);
  // Makes sure that a thread may begin something that could block: a spare exists, is started here, or is not needed. False: the system gives no
  // thread.
  bool EnsureSpareLocked() DEUT_REQUIRES(mutex_);
  // Counts the thread as running again if its event, or its work, had announced that it blocks.
  void EventEndedLocked(RpcThread* self) DEUT_REQUIRES(mutex_);
  // Summons a resting thread, or a new one. False: there is none.
  bool SummonLocked() DEUT_REQUIRES(mutex_);
  // The number of running threads that are not in gRPC's wait. They look for posted work without being summoned.
  int RunningOutsideWaitLocked() const DEUT_REQUIRES(mutex_) { return running_ - in_grpc_wait_; }
  // The body of rpc-monitor.
  void Monitor();

  Runtime& runtime_;
  const Options options_;
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  RpcEventWait wait_;
  Mutex mutex_;
  RpcThreadPool pool_ DEUT_GUARDED_BY(mutex_);
  PostedWork posted_ DEUT_GUARDED_BY(mutex_);
  RpcThread* leader_ DEUT_GUARDED_BY(mutex_) = nullptr;
  LeaderSample leader_sample_ DEUT_GUARDED_BY(mutex_);
  bool ended_ DEUT_GUARDED_BY(mutex_) = false;  // the queue was shut down and is empty
  int running_ DEUT_GUARDED_BY(mutex_) = 0;     // running and leading threads
  // The running threads that are in gRPC's wait for an event: the leader, and replaced leaders.
  int in_grpc_wait_ DEUT_GUARDED_BY(mutex_) = 0;
  int calls_ DEUT_GUARDED_BY(mutex_) = 0;
  CondVar changed_;                        // signalled when the last call, or a thread, is gone
  Counts counts_ DEUT_GUARDED_BY(mutex_);  // without those that the pool has
  LogPace failure_pace_{seconds(1)};
  std::atomic<uint32_t> stop_monitor_{0};
  std::unique_ptr<Thread> monitor_;

  static thread_local RpcThread* current_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_RPC_EXECUTOR_H_

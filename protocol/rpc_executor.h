// RpcExecutor: the threads of a server that answers its calls in events: one waits for the next event of gRPC and runs it in place; the others rest.
//
// An event that needs nothing but memory is read, run and answered by one thread, without waking another. An event that is about to block says so
// before (BeforeBlocking, which a TellingRuntime's BeforeWait can call), and another thread takes over the waiting for events. So a call holds a
// thread only while it works, however many are open.
//
// States of a thread, all changes under the lock:
//   leading    waits for the next event; at most one does, unless it was found computing: then another leads in its place, and it runs what it
//              comes back with. leading -> running with an event.
//   running    runs an event or posted work. running -> leading when it is over and nobody leads; running -> resting when somebody does.
//   blocked    the event it runs has told that it blocks. running -> blocked; blocked -> running when the event is over.
//   resting    waits to be summoned: -> running. A thread that finds kResting others at rest ends instead.
// Invariant: a thread leads, or is running and will lead. A thread that stops running summons another if it was the last (BeforeBlocking).
// The last thread runs nothing that could block: threads may wait for what only another event brings (a peer that takes what was written, a
//   watchdog's cut), so one always has to be there to run it. Events that could block, and posted work, wait while all others are at such.
// The system may give fewer threads than `threads`. So an event that could block, or posted work, runs only while another thread exists that runs
//   nothing of the kind, the spare. If the system gives no thread for that, the event waits like one beyond the limit; a thread whose event is over,
//   or the thread that looks once the system gives one again, runs it.
// Single calls (PostSingle) have `kept` threads more than events and posted work: whatever streams wait for, status and outcomes can be asked for.
// Who shares. One thread at a time suffices while events are short and few. A thread that has run events for `share_after` without ever having had to
//   wait for one summons another, up to `parallel`. A thread of its own (rpc-look) looks, often while there is much to do, for two things that keep
//   everybody else from being served: an event that takes long and does not tell, and a leader that does not wait but computes (gRPC reads, and
//   does handshakes, inside its waiting for events; one peer can send enough to keep it at that). It summons another, who leads in its place.
// Failures. gRPC can fail to wait: its engine `poll`, if the environment asks for that, needs an eventfd for each thread that waits, and there may
//   be none. That is not the queue's end. The leader pauses and waits again; only Stop, which shuts the queue down, ends the threads.
// Source: leader and followers, as Schmidt and others call it (Pattern-Oriented Software Architecture 2, 2000).
// Thread-safety: Post from any thread, BeforeBlocking from the event's own. Lifetime: Start once; Stop when the server has shut down, which does not
//   wait for calls that are in work: AwaitNoCalls does, until all that were begun (CallBegins) are gone, because nothing may be started on a queue
//   that has shut down. Nor may other operations be under way when it stops.
#ifndef PROTOCOL_RPC_EXECUTOR_H_
#define PROTOCOL_RPC_EXECUTOR_H_

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/observe/log_pace.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "grpcpp/completion_queue.h"
#include "protocol/rpc_event.h"
#include "protocol/rpc_event_wait.h"

namespace deut {

class RpcExecutor;

// A call that starts events on an executor's queue. It is the call's first member, so that nothing of the call is left when the executor hears that
// it is gone: from then on what the call has borrowed may be gone, too.
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
    int threads = 1024;  // at most; the last of them is for what does not block, if there are more than one
    int kept = 0;        // of these, for single calls alone
    int parallel = 1;    // that run at the same time, apart from those that are blocked
    Duration share_after = microseconds(50);
  };
  static constexpr size_t kResting = 16;
  // Without an attempt to start a thread, once the system has not given one.
  static constexpr Duration kPauseAfterShortage = milliseconds(10);
  // Between two looks: while events come, and while none do.
  static constexpr Duration kLook = milliseconds(2);
  static constexpr Duration kLookAtRest = milliseconds(50);
  // After a failure to wait.
  static constexpr Duration kPauseAfterFailure = milliseconds(10);

  RpcExecutor(Runtime& runtime, const Options& options, std::unique_ptr<grpc::ServerCompletionQueue> queue);
  ~RpcExecutor() override;
  RpcExecutor(const RpcExecutor&) = delete;
  RpcExecutor& operator=(const RpcExecutor&) = delete;

  grpc::ServerCompletionQueue* queue() override { return queue_.get(); }

  void Start();
  void Stop();
  // Waits until there are no calls of a server. REQUIRES: it has shut down.
  void AwaitNoCalls();

  // Runs it soon on one of the threads. False: all threads that may block are blocked, or the system gives no spare, so it runs when one of them no
  // longer is, or there is a spare.
  bool Post(std::function<void()> work);
  // The same for a single call, which has the kept threads, too.
  void PostSingle(std::function<void()> work);

  // The event, or the work, of this thread is about to block. At most the first call of an event does anything. REQUIRES: a thread of the executor.
  void BeforeBlocking();
  // The event will take some time without blocking: another thread leads meanwhile, unless `parallel` threads run already. REQUIRES: as above.
  void BeforeLong();

  struct Counts {
    uint64_t events = 0;
    uint64_t summons = 0;  // threads that were woken or started
    int threads = 0;
    int blocked = 0;
    uint64_t replaced = 0;   // leaders that were found computing
    uint64_t failures = 0;   // to wait for an event
    uint64_t shortages = 0;  // threads that the system did not give
  };
  Counts counts();

 protected:
  // Waits for the next event for as long as it takes: TIMEOUT says that gRPC could not wait. Tests replace it.
  virtual grpc::CompletionQueue::NextStatus AwaitEvent(void** tag, bool* ok);

 private:
  friend class RpcCallPresence;
  void CallBegins();
  void CallIsGone();

  struct Self {
    bool blocked = false;   // the event has told
    bool summoned = false;  // out of its rest
    CondVar summons;
    MonotonicTime alone_since;  // it has not waited for an event
    uint64_t turns = 0;         // it has led
    clockid_t clock = {};       // of its processor time
    std::unique_ptr<Thread> thread;
  };

  // Begins at rest.
  void Run(Self* self);
  void AwaitSummonsLocked(Self* self) DEUT_REQUIRES(mutex_);
  // Waits for an event and runs it. False: the queue has ended.
  bool LeadLocked(Self* self) DEUT_REQUIRES(mutex_);
  void PauseAfterFailure();
  void WorkLocked(Self* self) DEUT_REQUIRES(mutex_);
  // False: the thread ends.
  bool RestLocked(Self* self) DEUT_REQUIRES(mutex_);
  // Another thread may run what could block.
  bool RoomLocked() const DEUT_REQUIRES(mutex_) { return busy_ < std::max(1, options_.threads - 1 - options_.kept); }
  bool RoomForSingleLocked() const DEUT_REQUIRES(mutex_) { return busy_ < std::max(1, options_.threads - 1); }
  bool SingleWaitsLocked() const DEUT_REQUIRES(mutex_) { return !singles_.empty() && RoomForSingleLocked(); }
  bool WorkWaitsLocked() const DEUT_REQUIRES(mutex_) { return SingleWaitsLocked() || (!work_.empty() && RoomLocked()); }
  // A thread that runs nothing that could block may begin to: another such thread exists, is started here, or is not needed. False: the system gives
  // none.
  bool EnsureSpareLocked() DEUT_REQUIRES(mutex_);
  // The thread's event, or its work, is over.
  void OverLocked(Self* self) DEUT_REQUIRES(mutex_);
  // False: there are no more.
  bool SummonLocked() DEUT_REQUIRES(mutex_);
  // Starts a thread, which rests. False: there are `threads`, or the system gives none.
  bool AddRestingLocked() DEUT_REQUIRES(mutex_);
  // Threads that come by themselves to work that is posted.
  int ActiveLocked() const DEUT_REQUIRES(mutex_) { return running_ - waiting_; }
  void Look();
  // Whether whoever leads has been computing since the last look.
  bool LeaderComputesLocked(Duration passed) DEUT_REQUIRES(mutex_);

  Runtime& runtime_;
  const Options options_;
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  RpcEventWait wait_;
  Mutex mutex_;
  Self* leader_ DEUT_GUARDED_BY(mutex_) = nullptr;
  bool ended_ DEUT_GUARDED_BY(mutex_) = false;  // the queue was shut down and is empty
  int running_ DEUT_GUARDED_BY(mutex_) = 0;     // leading included
  int waiting_ DEUT_GUARDED_BY(mutex_) =
      0;  // of these, for an event: the leader, and those in whose place another leads
  int blocked_ DEUT_GUARDED_BY(mutex_) = 0;
  int busy_ DEUT_GUARDED_BY(mutex_) = 0;  // with what could block, those that are blocked included
  int calls_ DEUT_GUARDED_BY(mutex_) = 0;
  int threads_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t events_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t summons_ DEUT_GUARDED_BY(mutex_) = 0;
  std::deque<std::function<void()>> work_ DEUT_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> singles_ DEUT_GUARDED_BY(mutex_);
  std::vector<Self*> resting_ DEUT_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Self>> selves_ DEUT_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Thread>> gone_ DEUT_GUARDED_BY(mutex_);  // to be joined
  CondVar changed_;                                                    // threads_, calls_
  uint64_t replaced_ DEUT_GUARDED_BY(mutex_) = 0;
  uint64_t failures_ DEUT_GUARDED_BY(mutex_) = 0;
  LogPace failure_pace_{seconds(1)};
  uint64_t shortages_ DEUT_GUARDED_BY(mutex_) = 0;
  MonotonicTime no_thread_before_ DEUT_GUARDED_BY(mutex_);  // the end of the pause after a shortage
  LogPace shortage_pace_{seconds(1)};
  // Of the look before.
  Self* looked_at_ DEUT_GUARDED_BY(mutex_) = nullptr;
  uint64_t looked_turns_ DEUT_GUARDED_BY(mutex_) = 0;
  int64_t looked_cpu_ns_ DEUT_GUARDED_BY(mutex_) = 0;
  std::atomic<uint32_t> stop_look_{0};
  std::unique_ptr<Thread> look_;

  static thread_local RpcExecutor::Self* current_;
};

}  // namespace deut

#endif  // PROTOCOL_RPC_EXECUTOR_H_

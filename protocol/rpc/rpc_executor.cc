#include "protocol/rpc/rpc_executor.h"

#include <pthread.h>

#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/observe/log.h"
#include "grpc/support/time.h"

namespace deut {

thread_local RpcThread* RpcExecutor::current_ = nullptr;

namespace {

// An event that comes sooner than this was there already, or nearly so: the leader has not slept for it.
constexpr Duration kMaxWaitWithoutSleep = microseconds(5);

}  // namespace

RpcExecutor::RpcExecutor(Runtime& runtime, const Options& options, std::unique_ptr<grpc::ServerCompletionQueue> queue)
    : runtime_(runtime),
      options_(options),
      queue_(std::move(queue)),
      wait_(runtime),
      mutex_(runtime),
      pool_(runtime, options.threads, [this](RpcThread* self) { Run(self); }),
      posted_(options.threads, options.threads_for_single_calls) {}

RpcExecutor::~RpcExecutor() { Stop(); }

void RpcExecutor::Start() {
  {
    MutexLock lock(mutex_);
    SummonLocked();
    EnsureSpareLocked();
  }
  monitor_ = runtime_.StartThread("rpc-monitor", [this] { Monitor(); });
}

void RpcExecutor::AwaitNoCalls() {
  MutexLock lock(mutex_);
  while (calls_ != 0) changed_.Wait(mutex_);
}

void RpcExecutor::Stop() {
  if (monitor_ == nullptr) return;
  AwaitNoCalls();
  stop_monitor_.store(1, std::memory_order_seq_cst);
  runtime_.WakeAll(stop_monitor_);
  monitor_.reset();
  queue_->Shutdown();
  std::vector<std::unique_ptr<Thread>> gone;
  {
    MutexLock lock(mutex_);
    while (pool_.size() != 0) changed_.Wait(mutex_);
    gone = pool_.TakeEnded();
  }
}

bool RpcExecutor::Post(std::function<void()> work) {
  MutexLock lock(mutex_);
  posted_.Add(std::move(work));
  // A thread that is busy with other such work runs this work afterwards.
  if (!posted_.MayBegin() || !EnsureSpareLocked()) return posted_.may_block() > counts_.blocked;
  const bool enough = RunningOutsideWaitLocked() != 0 && running_ >= options_.max_running;
  return enough || SummonLocked() || RunningOutsideWaitLocked() != 0;
}

void RpcExecutor::PostSingle(std::function<void()> work) {
  MutexLock lock(mutex_);
  posted_.AddSingle(std::move(work));
  // Without room all threads that may block are busy. The first one that is done runs this work.
  if (!posted_.MayBeginSingle() || !EnsureSpareLocked()) return;
  if (RunningOutsideWaitLocked() == 0 || running_ < options_.max_running) SummonLocked();
}

RpcCallPresence::RpcCallPresence(RpcExecutor& executor) : executor_(executor) { executor_.CallBegins(); }

RpcCallPresence::~RpcCallPresence() { executor_.CallIsGone(); }

void RpcExecutor::CallBegins() {
  MutexLock lock(mutex_);
  ++calls_;
}

void RpcExecutor::CallIsGone() {
  MutexLock lock(mutex_);
  if (--calls_ == 0) changed_.NotifyAll(runtime_);
}

void RpcExecutor::BeforeBlocking() {
  RpcThread* const self = current_;
  DEUT_CHECK(self != nullptr);
  MutexLock lock(mutex_);
  if (std::exchange(self->blocked, true)) return;
  --running_;
  ++counts_.blocked;
  if (RunningOutsideWaitLocked() == 0 && ((leader_ == nullptr && !ended_) || posted_.Waits())) SummonLocked();
}

void RpcExecutor::BeforeLongEvent() {
  MutexLock lock(mutex_);
  if (leader_ == nullptr && !ended_ && running_ < options_.max_running) SummonLocked();
}

RpcExecutor::Counts RpcExecutor::counts() {
  MutexLock lock(mutex_);
  Counts counts = counts_;
  counts.summons = pool_.summons();
  counts.threads = pool_.size();
  counts.shortages = pool_.shortages();
  return counts;
}

bool RpcExecutor::SummonLocked() {
  if (!pool_.Summon()) return false;
  ++running_;
  return true;
}

bool RpcExecutor::EnsureSpareLocked() {
  // Two, because the thread that will run the work (the caller, or the one that finds it posted) is itself still counted among those that are not
  // busy. A queue that has ended has no more events, and an executor of one thread never has a spare.
  return pool_.size() - posted_.may_block() >= 2 || ended_ || options_.threads == 1 || pool_.AddResting();
}

void RpcExecutor::Run(RpcThread* self) {
  current_ = self;
  MutexLock lock(mutex_);
  DEUT_CHECK(pthread_getcpuclockid(pthread_self(), &self->clock) == 0);
  pool_.AwaitSummons(self, mutex_);
  for (;;) {
    if (posted_.Waits() && EnsureSpareLocked()) {
      WorkLocked(self);
    } else if (leader_ == nullptr && !ended_) {
      ended_ = !LeadLocked(self);
      if (ended_) {
        while (pool_.resting() != 0) SummonLocked();
      }
    } else if (!RestLocked(self)) {
      break;
    }
  }
  --running_;
  pool_.End(self);
  changed_.NotifyAll(runtime_);
}

void RpcExecutor::WorkLocked(RpcThread* self) {
  const PostedWork::Work work = posted_.Take();
  posted_.Begin();
  mutex_.Unlock();
  work();
  mutex_.Lock();
  posted_.End();
  EventEndedLocked(self);
}

// The deadline never comes, so TIMEOUT can only be gRPC's answer to a failure of its poller. (CompletionQueue::Next hides the difference.)
grpc::CompletionQueue::NextStatus RpcExecutor::AwaitEvent(void** tag, bool* ok) {
  return wait_.Next(*queue_, tag, ok, kNoDeadline);
}

// The thread stays the leader during the pause: another leader would fail as well.
void RpcExecutor::PauseAfterFailure() {
  const MonotonicTime now = runtime_.Now();
  if (const std::optional<uint64_t> unlogged = failure_pace_.Event(now)) {
    LogWarning("gRPC cannot wait for events of its connections (its own line says why); retrying (", *unlogged,
               " more such failures since the last such line)");
  }
  runtime_.SleepUntil(now + kPauseAfterFailure);
}

bool RpcExecutor::LeadLocked(RpcThread* self) {
  leader_ = self;
  ++self->lead_count;
  ++in_grpc_wait_;
  mutex_.Unlock();
  const MonotonicTime begin = runtime_.Now();
  void* tag = nullptr;
  bool ok = false;
  const grpc::CompletionQueue::NextStatus next = AwaitEvent(&tag, &ok);
  if (next == grpc::CompletionQueue::TIMEOUT) PauseAfterFailure();
  const MonotonicTime end = runtime_.Now();
  mutex_.Lock();
  --in_grpc_wait_;
  if (leader_ == self) leader_ = nullptr;
  if (next == grpc::CompletionQueue::SHUTDOWN) return false;
  if (next == grpc::CompletionQueue::TIMEOUT) {
    ++counts_.failures;
    return true;
  }
  ++counts_.events;
  if (end - begin > kMaxWaitWithoutSleep) {
    self->runs_without_wait_since = end;
  } else if (end - self->runs_without_wait_since > options_.share_after && running_ < options_.max_running) {
    self->runs_without_wait_since = end;
    SummonLocked();
  }
  auto* const event = static_cast<RpcEvent*>(tag);
  const bool may_block = event->MayBlock();
  if (may_block && (!posted_.MayBegin() || !EnsureSpareLocked())) {
    posted_.Add([event, ok] { event->Done(ok); });
    return true;
  }
  if (may_block) posted_.Begin();
  mutex_.Unlock();
  event->Done(ok);
  mutex_.Lock();
  if (may_block) posted_.End();
  EventEndedLocked(self);
  return true;
}

void RpcExecutor::EventEndedLocked(RpcThread* self) {
  if (!std::exchange(self->blocked, false)) return;
  --counts_.blocked;
  ++running_;
  self->runs_without_wait_since = runtime_.Now();
}

bool RpcExecutor::RestLocked(RpcThread* self) {
  if (ended_ || pool_.resting() >= kMaxResting) return false;
  --running_;
  pool_.Rest(self);
  pool_.AwaitSummons(self, mutex_);
  return true;
}

void RpcExecutor::Monitor() {
  uint64_t events = 0;
  bool busy = false;
  MonotonicTime last_check = runtime_.Now();
  while (stop_monitor_.load(std::memory_order_seq_cst) == 0) {
    runtime_.Wait(stop_monitor_, 0, runtime_.Now() + (busy ? kCheckInterval : kIdleCheckInterval));
    const MonotonicTime now = runtime_.Now();
    MutexLock lock(mutex_);
    // The leader's thread still exists: a thread ends under this lock, and no longer leads by then.
    const bool computes = !ended_ && leader_sample_.Computes(leader_, now - last_check);
    last_check = now;
    if (computes) {
      leader_ = nullptr;
      ++counts_.replaced;
    }
    const bool thread_needed = (posted_.Waits() && EnsureSpareLocked()) || (leader_ == nullptr && !ended_);
    if (computes || (thread_needed && events == counts_.events)) SummonLocked();
    busy = computes || events != counts_.events;
    events = counts_.events;
    (void)pool_.TakeEnded();  // joins them
  }
}

}  // namespace deut

#include "protocol/rpc_executor.h"

#include <pthread.h>
#include <time.h>

#include <optional>
#include <system_error>
#include <utility>

#include "common/base/check.h"
#include "common/observe/log.h"
#include "grpc/support/time.h"

namespace deut {

thread_local RpcExecutor::PoolThread* RpcExecutor::current_ = nullptr;

namespace {

// An event that comes sooner than this was there already, or nearly so: the leader has not slept for it.
constexpr Duration kMaxWaitWithoutSleep = microseconds(5);

}  // namespace

RpcExecutor::RpcExecutor(Runtime& runtime, const Options& options, std::unique_ptr<grpc::ServerCompletionQueue> queue)
    : runtime_(runtime), options_(options), queue_(std::move(queue)), wait_(runtime), mutex_(runtime) {}

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
    while (threads_ != 0) changed_.Wait(mutex_);
    gone.swap(gone_);
  }
}

bool RpcExecutor::Post(std::function<void()> work) {
  MutexLock lock(mutex_);
  work_.push_back(std::move(work));
  // A thread that is busy with other such work runs this work afterwards.
  if (!BlockingMayStartLocked() || !EnsureSpareLocked()) return may_block_count_ > blocked_;
  const bool enough = RunningOutsideWaitLocked() != 0 && running_ >= options_.max_running;
  return enough || SummonLocked() || RunningOutsideWaitLocked() != 0;
}

void RpcExecutor::PostSingle(std::function<void()> work) {
  MutexLock lock(mutex_);
  singles_.push_back(std::move(work));
  // Without room all threads that may block are busy. The first one that is done runs this work.
  if (!SingleMayStartLocked() || !EnsureSpareLocked()) return;
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
  PoolThread* const self = current_;
  DEUT_CHECK(self != nullptr);
  MutexLock lock(mutex_);
  if (std::exchange(self->blocked, true)) return;
  --running_;
  ++blocked_;
  if (RunningOutsideWaitLocked() == 0 && ((leader_ == nullptr && !ended_) || WorkWaitsLocked())) SummonLocked();
}

void RpcExecutor::BeforeLongEvent() {
  MutexLock lock(mutex_);
  if (leader_ == nullptr && !ended_ && running_ < options_.max_running) SummonLocked();
}

RpcExecutor::Counts RpcExecutor::counts() {
  MutexLock lock(mutex_);
  return {.events = events_,
          .summons = summons_,
          .threads = threads_,
          .blocked = blocked_,
          .replaced = replaced_,
          .failures = failures_,
          .shortages = shortages_};
}

// Summons the thread that came to rest last: its stack is the likeliest to be in a cache.
bool RpcExecutor::SummonLocked() {
  if (resting_.empty() && !AddRestingLocked()) return false;
  PoolThread* const self = resting_.back();
  resting_.pop_back();
  self->summoned = true;
  ++running_;
  ++summons_;
  self->summons.NotifyOne(runtime_);
  return true;
}

bool RpcExecutor::EnsureSpareLocked() {
  // Two, because the thread that will run the work (the caller, or the one that finds it posted) is itself still counted among those that are not
  // busy. A queue that has ended has no more events, and an executor of one thread never has a spare.
  return threads_ - may_block_count_ >= 2 || ended_ || options_.threads == 1 || AddRestingLocked();
}

bool RpcExecutor::AddRestingLocked() {
  if (threads_ >= options_.threads) return false;
  // Pauses after a refusal: each attempt maps a stack, and a loaded server would make one attempt for each event.
  if (no_thread_before_ != MonotonicTime() && runtime_.Now() < no_thread_before_) return false;
  auto owned = std::make_unique<PoolThread>();
  PoolThread* const self = owned.get();
  pool_.push_back(std::move(owned));
  try {
    self->thread = runtime_.StartThread("rpc", [this, self] { Run(self); });
    ++threads_;
    resting_.push_back(self);
    no_thread_before_ = MonotonicTime();
    return true;
  } catch (const std::system_error&) {
    // The standard library reports only by this exception that the system gives no thread. Elsewhere that ends the process. Here it must not, because
    // peers decide how many threads there are.
  }
  // The executor goes on as if the limit `threads` were reached. rpc-monitor tries again while something waits.
  pool_.pop_back();
  ++shortages_;
  no_thread_before_ = runtime_.Now() + kPauseAfterShortage;
  if (const std::optional<uint64_t> unlogged = shortage_pace_.Event(runtime_.Now())) {
    LogWarning("the system has no thread to spare for calls of peers; ", threads_, " are at work or at rest (",
               *unlogged, " more such failures since the last such line)");
  }
  return false;
}

void RpcExecutor::Run(PoolThread* self) {
  current_ = self;
  MutexLock lock(mutex_);
  DEUT_CHECK(pthread_getcpuclockid(pthread_self(), &self->clock) == 0);
  AwaitSummonsLocked(self);
  for (;;) {
    if (WorkWaitsLocked() && EnsureSpareLocked()) {
      WorkLocked(self);
    } else if (leader_ == nullptr && !ended_) {
      ended_ = !LeadLocked(self);
      if (ended_) {
        while (!resting_.empty()) SummonLocked();
      }
    } else if (!RestLocked(self)) {
      break;
    }
  }
  --running_;
  --threads_;
  for (auto at = pool_.begin(); at != pool_.end(); ++at) {
    if (at->get() != self) continue;
    gone_.push_back(std::move(self->thread));
    pool_.erase(at);
    break;
  }
  changed_.NotifyAll(runtime_);
}

void RpcExecutor::WorkLocked(PoolThread* self) {
  // Single calls go first: they are few, and the next ones arrive only when a thread leads, which no thread does before all posted work is run.
  std::deque<std::function<void()>>& queue = SingleWaitsLocked() ? singles_ : work_;
  const std::function<void()> work = std::move(queue.front());
  queue.pop_front();
  ++may_block_count_;
  mutex_.Unlock();
  work();
  mutex_.Lock();
  --may_block_count_;
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

bool RpcExecutor::LeadLocked(PoolThread* self) {
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
    ++failures_;
    return true;
  }
  ++events_;
  if (end - begin > kMaxWaitWithoutSleep) {
    self->runs_without_wait_since = end;
  } else if (end - self->runs_without_wait_since > options_.share_after && running_ < options_.max_running) {
    self->runs_without_wait_since = end;
    SummonLocked();
  }
  auto* const event = static_cast<RpcEvent*>(tag);
  const bool may_block = event->MayBlock();
  if (may_block && (!BlockingMayStartLocked() || !EnsureSpareLocked())) {
    work_.emplace_back([event, ok] { event->Done(ok); });
    return true;
  }
  if (may_block) ++may_block_count_;
  mutex_.Unlock();
  event->Done(ok);
  mutex_.Lock();
  if (may_block) --may_block_count_;
  EventEndedLocked(self);
  return true;
}

void RpcExecutor::EventEndedLocked(PoolThread* self) {
  if (!std::exchange(self->blocked, false)) return;
  --blocked_;
  ++running_;
  self->runs_without_wait_since = runtime_.Now();
}

bool RpcExecutor::RestLocked(PoolThread* self) {
  if (ended_ || resting_.size() >= kMaxResting) return false;
  --running_;
  self->summoned = false;
  resting_.push_back(self);
  AwaitSummonsLocked(self);
  return true;
}

void RpcExecutor::AwaitSummonsLocked(PoolThread* self) {
  while (!self->summoned) self->summons.Wait(mutex_);
  self->runs_without_wait_since = runtime_.Now();
}

bool RpcExecutor::LeaderComputesLocked(Duration passed) {
  PoolThread* const leader = leader_;
  if (leader == nullptr) {
    sampled_leader_ = nullptr;
    return false;
  }
  timespec now{};
  // The leader's thread still exists: a thread ends under this lock, and no longer leads by then.
  DEUT_CHECK(clock_gettime(leader->clock, &now) == 0);
  const int64_t cpu_ns = now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
  const bool same_lead = sampled_leader_ == leader && sampled_lead_count_ == leader->lead_count;
  sampled_leader_ = leader;
  sampled_lead_count_ = leader->lead_count;
  const int64_t before_ns = std::exchange(sampled_cpu_ns_, cpu_ns);
  return same_lead && cpu_ns - before_ns > duration_cast<nanoseconds>(passed).count() / 2;
}

void RpcExecutor::Monitor() {
  uint64_t events = 0;
  bool busy = false;
  MonotonicTime last_check = runtime_.Now();
  while (stop_monitor_.load(std::memory_order_seq_cst) == 0) {
    runtime_.Wait(stop_monitor_, 0, runtime_.Now() + (busy ? kCheckInterval : kIdleCheckInterval));
    const MonotonicTime now = runtime_.Now();
    MutexLock lock(mutex_);
    const bool computes = !ended_ && LeaderComputesLocked(now - last_check);
    last_check = now;
    if (computes) {
      leader_ = nullptr;
      ++replaced_;
    }
    const bool thread_needed = (WorkWaitsLocked() && EnsureSpareLocked()) || (leader_ == nullptr && !ended_);
    if (computes || (thread_needed && events == events_)) SummonLocked();
    busy = computes || events != events_;
    events = events_;
    gone_.clear();
  }
}

}  // namespace deut

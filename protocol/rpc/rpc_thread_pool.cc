#include "protocol/rpc/rpc_thread_pool.h"

#include <optional>
#include <system_error>
#include <utility>

#include "common/observe/log.h"

namespace deut {

RpcThreadPool::RpcThreadPool(Runtime& runtime, int max_threads, Body body)
    : runtime_(runtime), max_threads_(max_threads), body_(std::move(body)) {}

bool RpcThreadPool::AddResting() {
  if (size() >= max_threads_) return false;
  if (no_thread_before_ != MonotonicTime() && runtime_.Now() < no_thread_before_) return false;
  auto owned = std::make_unique<RpcThread>();
  RpcThread* const self = owned.get();
  threads_.push_back(std::move(owned));
  try {
    self->thread = runtime_.StartThread("rpc", [this, self] { body_(self); });
    resting_.push_back(self);
    no_thread_before_ = MonotonicTime();
    return true;
  } catch (const std::system_error&) {
    // The standard library reports only by this exception that the system gives no thread. Elsewhere that ends the
    // process. Here it must not, because peers decide how many threads there are.
    threads_.pop_back();
  }
  // The executor goes on as if the limit `max_threads` were reached. Its monitor tries again while something waits.
  ++shortages_;
  no_thread_before_ = runtime_.Now() + kPauseAfterShortage;
  if (const std::optional<uint64_t> unlogged = shortage_pace_.Event(runtime_.Now())) {
    LogWarning("the system has no thread to spare for calls of peers; ", size(), " are at work or at rest (", *unlogged,
               " more such failures since the last such line)");
  }
  return false;
}

// Summons the thread that came to rest last: its stack is the likeliest to be in a cache.
bool RpcThreadPool::Summon() {
  if (resting_.empty() && !AddResting()) return false;
  RpcThread* const self = resting_.back();
  resting_.pop_back();
  self->summoned = true;
  ++summons_;
  self->summons.NotifyOne(runtime_);
  return true;
}

void RpcThreadPool::AwaitSummons(RpcThread* self, Mutex& mutex) {
  while (!self->summoned) self->summons.Wait(mutex);
  self->runs_without_wait_since = runtime_.Now();
}

void RpcThreadPool::Rest(RpcThread* self) {
  self->summoned = false;
  resting_.push_back(self);
}

void RpcThreadPool::End(RpcThread* self) {
  for (auto at = threads_.begin(); at != threads_.end(); ++at) {
    if (at->get() != self) continue;
    ended_.push_back(std::move(self->thread));
    threads_.erase(at);
    break;
  }
}

std::vector<std::unique_ptr<Thread>> RpcThreadPool::TakeEnded() { return std::exchange(ended_, {}); }

}  // namespace deut

#include "tc/server/session_registry.h"

#include <algorithm>

#include "tc/server/session.h"

namespace deut::tc {
namespace {

// How often it is asked whether somebody is to be aborted to make room.
constexpr Duration kEvictPeriod = milliseconds(10);

}  // namespace

SessionRegistry::SessionRegistry(Runtime& runtime, Duration idle_timeout)
    : runtime_(runtime), idle_timeout_(idle_timeout), mutex_(runtime_) {}

SessionRegistry::~SessionRegistry() { Stop(); }

void SessionRegistry::Start() {
  thread_ = runtime_.StartThread("tc-idle", [this] { Run(); });
}

void SessionRegistry::Stop() {
  if (!thread_) return;
  stop_.store(1, std::memory_order_seq_cst);
  runtime_.WakeAll(stop_);
  thread_->Join();
  thread_.reset();
}

void SessionRegistry::AbortAll(AbortReason reason) {
  MutexLock lock(mutex_);
  for (Session* session : sessions_) session->AbortNow(reason);
}

void SessionRegistry::Enter(Session* session) {
  MutexLock lock(mutex_);
  sessions_.insert(session);
}

void SessionRegistry::Leave(Session* session) {
  MutexLock lock(mutex_);
  sessions_.erase(session);
}

size_t SessionRegistry::size() const {
  MutexLock lock(mutex_);
  return sessions_.size();
}

void SessionRegistry::Evict() {
  const Timestamp timestamp = who_();
  if (timestamp == Timestamp{0}) return;
  MutexLock lock(mutex_);
  for (Session* session : sessions_) session->Evict(timestamp);
}

void SessionRegistry::Run() {
  const Duration period = std::max<Duration>(std::min(idle_timeout_, Session::kScansRestAfter) / 4, milliseconds(1));
  MonotonicTime reap_at = runtime_.Now() + period;
  while (stop_.load(std::memory_order_seq_cst) == 0) {
    runtime_.Wait(stop_, 0, who_ ? std::min(reap_at, runtime_.Now() + kEvictPeriod) : reap_at);
    if (who_) Evict();
    const MonotonicTime now = runtime_.Now();
    if (now < reap_at) continue;
    reap_at = now + period;
    MutexLock lock(mutex_);
    for (Session* session : sessions_) {
      session->ReapIfIdle(now - idle_timeout_);
      session->RestScans(now - Session::kScansRestAfter);
    }
  }
}

}  // namespace deut::tc

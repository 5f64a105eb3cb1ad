#include "tc/server/session_registry.h"

#include <algorithm>

#include "tc/server/session.h"

namespace deut::tc {
namespace {

// A DC cuts off whoever does not take what it was granted (after 30 s, protocol/stream_watchdog.h), and takes that for a lost connection.

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

void SessionRegistry::Run() {
  const Duration period = std::max<Duration>(std::min(idle_timeout_, Session::kScansRestAfter) / 4, milliseconds(1));
  while (stop_.load(std::memory_order_seq_cst) == 0) {
    runtime_.Wait(stop_, 0, runtime_.Now() + period);
    const MonotonicTime now = runtime_.Now();
    MutexLock lock(mutex_);
    for (Session* session : sessions_) {
      session->ReapIfIdle(now - idle_timeout_);
      session->RestScans(now - Session::kScansRestAfter);
    }
  }
}

}  // namespace deut::tc

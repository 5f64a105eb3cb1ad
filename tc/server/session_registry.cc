#include "tc/server/session_registry.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "tc/server/session.h"

namespace deut::tc {
namespace {

// Period of the question whether a transaction is to be aborted to make room.
constexpr Duration kEvictPeriod = milliseconds(10);

}  // namespace

SessionRegistry::SessionRegistry(Runtime& runtime, Duration idle_timeout)
    : runtime_(runtime), idle_timeout_(idle_timeout), mutex_(runtime_), round_(runtime_) {}

SessionRegistry::~SessionRegistry() {
  Stop();
  DEUT_CHECK(size() == 0);  // a session that is left would leave a registry that is gone
}

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
  ForEach([&](Session& session) { session.AbortNow(reason); });
}

void SessionRegistry::Enter(Session* session) {
  MutexLock lock(mutex_);
  const bool entered = sessions_.insert(session).second;
  DEUT_CHECK(entered);
}

void SessionRegistry::Leave(Session* session) {
  for (bool first = true;; first = false) {
    // Loaded before the look at visited_: a visit that ends in between changes it, so the wait below returns at once.
    const uint32_t seen = visits_.load(std::memory_order_seq_cst);
    {
      MutexLock lock(mutex_);
      const bool left = sessions_.erase(session) != 0;
      DEUT_CHECK(left == first);
      if (visited_ != session) return;
      left_ = true;
    }
    runtime_.Wait(visits_, seen, kNoDeadline);
  }
}

void SessionRegistry::ForEach(absl::FunctionRef<void(Session&)> visit) {
  MutexLock round(round_);
  for (Session* session = nullptr;;) {
    {
      MutexLock lock(mutex_);
      const auto next = sessions_.upper_bound(session);
      if (next == sessions_.end()) return;
      DEUT_CHECK(visited_ == nullptr);  // one visitor at a time
      visited_ = session = *next;
    }
    DEUT_POINT("session_registry.visit");
    visit(*session);
    bool left = false;
    {
      MutexLock lock(mutex_);
      DEUT_CHECK(visited_ == session);
      visited_ = nullptr;
      left = std::exchange(left_, false);
    }
    if (!left) continue;
    // The session may be destroyed once Leave has seen this count. So the visitor does not touch it any more.
    visits_.fetch_add(1, std::memory_order_seq_cst);
    runtime_.WakeAll(visits_);
  }
}

size_t SessionRegistry::size() const {
  MutexLock lock(mutex_);
  return sessions_.size();
}

void SessionRegistry::Evict() {
  const Timestamp timestamp = next_eviction_();
  if (timestamp == Timestamp{0}) return;
  ForEach([&](Session& session) { session.Evict(timestamp); });
}

void SessionRegistry::Run() {
  const Duration period = std::max<Duration>(std::min(idle_timeout_, Session::kStreamIdleTimeout) / 4, milliseconds(1));
  MonotonicTime reap_at = runtime_.Now() + period;
  while (stop_.load(std::memory_order_seq_cst) == 0) {
    runtime_.Wait(stop_, 0, next_eviction_ ? std::min(reap_at, runtime_.Now() + kEvictPeriod) : reap_at);
    // Evict looks at each period, not only once: a session in use is told again until its transaction is gone.
    if (next_eviction_) Evict();
    const MonotonicTime now = runtime_.Now();
    if (now < reap_at) continue;
    reap_at = now + period;
    ForEach([&](Session& session) {
      session.ReapIfIdle(now - idle_timeout_);
      session.EndIdleStreams(now - Session::kStreamIdleTimeout);
    });
  }
}

}  // namespace deut::tc

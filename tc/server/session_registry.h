// SessionRegistry: the existing sessions, and the thread that aborts their idle transactions. Cold path: a mutex,
// held only for look-ups.
//
// A visit ends a transaction, or a stream of the DC, or waits for a session that is in use. Sessions come and go
//   meanwhile. So a visitor notes the session that it is at, and visits it without the mutex. A session that leaves
//   waits only if it is being visited itself. One visitor at a time goes round, in the order of addresses. So it sees
//   every session that was there before it began, and stays.
// Thread-safety: any thread. Ownership: sessions register themselves, and leave before they are destroyed.
#ifndef TC_SERVER_SESSION_REGISTRY_H_
#define TC_SERVER_SESSION_REGISTRY_H_

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "common/base/abort_reason.h"
#include "common/base/ids.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"

namespace deut::tc {

class Session;

class SessionRegistry {
 public:
  SessionRegistry(Runtime& runtime, Duration idle_timeout);
  ~SessionRegistry();

  // S9: the thread regularly asks `next` for the timestamp of the transaction to abort; 0: none. REQUIRES: called
  // before Start.
  void SetEvictionSource(std::function<Timestamp()> next) { next_eviction_ = std::move(next); }
  void Start();
  void Stop();
  void AbortAll(AbortReason reason);

  void Enter(Session* session);
  void Leave(Session* session);
  size_t size() const;

 private:
  void Run();
  void Evict();
  void ForEach(absl::FunctionRef<void(Session&)> visit);

  Runtime& runtime_;
  const Duration idle_timeout_;
  std::function<Timestamp()> next_eviction_;
  mutable Mutex mutex_;
  std::set<Session*> sessions_ DEUT_GUARDED_BY(mutex_);
  const Session* visited_ DEUT_GUARDED_BY(mutex_) = nullptr;
  bool left_ DEUT_GUARDED_BY(mutex_) = false;  // the visited session waits for the end of its visit
  std::atomic<uint32_t> visits_{0};            // incremented when a visit ends that a session waits for
  Mutex round_;                                // held by the visitor for its whole round
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_SESSION_REGISTRY_H_

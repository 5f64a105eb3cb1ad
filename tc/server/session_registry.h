// SessionRegistry: the sessions there are, and the thread that aborts their idle transactions. Cold: a mutex.
// Thread-safety: any thread. Ownership: sessions register themselves and leave before they die.
#ifndef TC_SERVER_SESSION_REGISTRY_H_
#define TC_SERVER_SESSION_REGISTRY_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
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

  // S9: every now and then `who` is asked which transaction is to be aborted; 0 = none. REQUIRES: before Start.
  void EvictBy(std::function<Timestamp()> who) { who_ = std::move(who); }
  void Start();
  void Stop();
  void AbortAll(AbortReason reason);

  void Enter(Session* session);
  void Leave(Session* session);
  size_t size() const;

 private:
  void Run();
  void Evict();

  Runtime& runtime_;
  const Duration idle_timeout_;
  std::function<Timestamp()> who_;
  mutable Mutex mutex_;
  absl::flat_hash_set<Session*> sessions_ DEUT_GUARDED_BY(mutex_);
  std::atomic<uint32_t> stop_{0};
  std::unique_ptr<Thread> thread_;
};

}  // namespace deut::tc

#endif  // TC_SERVER_SESSION_REGISTRY_H_

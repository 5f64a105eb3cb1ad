// ServingState: whether a TC serves, and if not, why not (rule X4).
//
// States: starting -> serving; starting or serving -> refused, for good. A stop is a refusal. The first refusal wins.
// A call that must end before a stop goes on announces itself before Check; the stop calls BeginStop before it looks
//   for such calls. Both sides are sequentially consistent, so one of the two sees the other.
// Thread-safety: any thread. Ownership: borrows the runtime, which outlives it.
#ifndef TC_SERVER_SERVING_STATE_H_
#define TC_SERVER_SERVING_STATE_H_

#include <atomic>
#include <functional>
#include <string>

#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/event.h"
#include "common/sync/mutex.h"

namespace deut::tc {

class ServingState {
 public:
  // `describe_start` says what a start is waiting for. `on_refused`, if set, is called once, for a refusal that is no
  // stop.
  ServingState(Runtime& runtime, std::function<std::string()> describe_start,
               std::function<void(const Status&)> on_refused);

  // Returns OK while it serves. Else returns the error for which it was refused, or UNAVAILABLE during the start.
  Status Check() {
    if (serving()) [[likely]]
      return Status::Ok();
    return WhyNotServing();
  }
  bool serving() const { return serving_.load(std::memory_order_seq_cst); }
  bool stopping() const { return stopping_.load(std::memory_order_seq_cst); }

  // The start has ended. Returns false if it was refused meanwhile; then it does not serve.
  bool Serve();
  // REQUIRES: the status is an error.
  void Refuse(const Status& status);
  void BeginStop();

  // Returns once it serves or is refused (true), or at the deadline (false).
  bool WaitDecided(Deadline deadline) { return decided_.Wait(runtime_, deadline); }

 private:
  Status WhyNotServing();

  Runtime& runtime_;
  const std::function<std::string()> describe_start_;
  const std::function<void(const Status&)> on_refused_;
  std::atomic<bool> serving_{false};
  std::atomic<bool> stopping_{false};
  Event decided_;
  Mutex mutex_;
  Status refused_ DEUT_GUARDED_BY(mutex_);
};

}  // namespace deut::tc

#endif  // TC_SERVER_SERVING_STATE_H_

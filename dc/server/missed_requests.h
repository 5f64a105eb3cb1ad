// MissedRequests: the requests that wait for pages, each without a thread. When its page is in memory, a request goes
// on on the loader's thread that has loaded it.
//
// States of a request: parked (it waits for a load) -> running (a thread continues it) -> parked again, or answered; or
// removed (Remove). Each has a continuation here, which is the waiter of its load (load_waiter.h) and keeps the state
// of a scan.
// Steps of a continuation, on the thread that has loaded the page:
//   (1) under the mutex: take the request, and begin a CallGracePeriod::Call; or find that the request was removed
//   (2) continue the request. If it misses again, the next load is started, and the thread no longer touches the
//       continuation: another thread may be running it.
//   (3) else: take the request off the table, then answer it
// Abandon (data_component.h): it takes the request off its continuation under the mutex, so no later step 1 finds it. A
//   thread that has found it before is inside a Call that began under the same mutex. A caller that then waits for the
//   running calls therefore also waits for that thread (load.call_begins_first). The load goes on; its continuation
//   finds no request and ends. If the request is not parked, a thread that submits it may be about to park it. So the
//   caller waits for the running calls, and then looks once more (load.look_again). No thread submits it any more then.
// The end: Stop waits until no continuation is left, also of removed requests, and no thread is in one of the steps.
//   Loads end by themselves, so it waits for the disk and for memory, and for nothing else.
// The mutex is held briefly. Every request here waits for the disk, so it costs nothing that counts.
// Thread-safety: all methods from any thread. Ownership: owns the continuations; the caller owns the requests.
#ifndef DC_SERVER_MISSED_REQUESTS_H_
#define DC_SERVER_MISSED_REQUESTS_H_

#include <cstddef>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/page_cache/load_waiter.h"
#include "dc/record_ops/record_operations.h"
#include "dc/server/call_grace_period.h"
#include "protocol/data_component.h"

namespace deut::dc {

class MissedRequests {
 public:
  using ScanState = RecordOperations::ScanState;
  // Continues a request, and does not block. True: it has its status and its answer. False: a load was started, and
  // `waiter` is called when it has ended, perhaps already. From then on the callee touches neither the request nor
  // `scan`. `missing`: the page that the request needs now is known to be missing.
  using Continue = std::function<bool(DataRequest* request, ScanState* scan, bool missing, LoadWaiter* waiter)>;

  MissedRequests(Runtime& runtime, CallGracePeriod& calls, Continue continue_request);
  // Returns when all requests are answered, or removed and no load is on its way for them. A second call does nothing.
  // REQUIRES: no thread parks requests any more, except a listener of a request that is answered meanwhile.
  void Stop();
  ~MissedRequests() { Stop(); }
  MissedRequests(const MissedRequests&) = delete;
  MissedRequests& operator=(const MissedRequests&) = delete;

  // Takes a request whose page is missing, and starts to load it. `scan`: its state, moved from, if it is a scan that
  // has begun; null: a scan begins anew. REQUIRES: the caller is inside a CallGracePeriod::Call.
  void Park(DataRequest* request, ScanState* scan);
  // When this returns, the request is not touched any more, neither here nor by a call that submits it. REQUIRES: no
  // call submits it from now on; not called inside a Call.
  void Abandon(DataRequest* request);

 private:
  class Continuation;

  // The request is not touched any more once the calls that are running now have ended. False: it is not parked.
  bool Remove(DataRequest* request);

  void Run(Continuation* continuation, bool missing, const Status& loaded);
  // The last step of a thread here. `ended`: how many continuations and runs have ended.
  void Leave(size_t ended);

  Runtime& runtime_;
  CallGracePeriod& calls_;
  const Continue continue_;
  Mutex mutex_;
  CondVar all_ended_;
  absl::flat_hash_map<DataRequest*, Continuation*> parked_ DEUT_GUARDED_BY(mutex_);
  size_t alive_ DEUT_GUARDED_BY(mutex_) = 0;  // number of continuations, and of threads in Run
};

}  // namespace deut::dc

#endif  // DC_SERVER_MISSED_REQUESTS_H_

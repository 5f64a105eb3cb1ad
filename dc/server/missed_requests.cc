#include "dc/server/missed_requests.h"

#include <memory>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/testing/test_points.h"
#include "dc/page_cache/page_loader.h"

namespace deut::dc {

class MissedRequests::Continuation final : public LoadWaiter {
 public:
  Continuation(MissedRequests& owner, DataRequest* parked_request) : request(parked_request), owner_(owner) {}
  void OnLoaded(const Status& status) override { owner_.Run(this, /*missing=*/false, status); }

  DataRequest* request;  // guarded by the owner's mutex; null once it was removed
  ScanState scan;        // used by the thread that runs the continuation

 private:
  MissedRequests& owner_;
};

MissedRequests::MissedRequests(Runtime& runtime, CallGracePeriod& calls, Continue continue_request)
    : runtime_(runtime), calls_(calls), continue_(std::move(continue_request)), mutex_(runtime) {}

void MissedRequests::Stop() {
  const MutexLock lock(mutex_);
  while (alive_ != 0) all_ended_.Wait(mutex_);
  DEUT_CHECK(parked_.empty());
}

void MissedRequests::Park(DataRequest* request, ScanState* scan) {
  auto continuation = std::make_unique<Continuation>(*this, request);
  const bool has_begun = scan != nullptr || request->kind == DataRequest::Kind::kRead;
  if (scan != nullptr) continuation->scan = std::move(*scan);
  {
    const MutexLock lock(mutex_);
    ++alive_;
    const bool is_new = parked_.emplace(request, continuation.get()).second;
    DEUT_CHECK(is_new);  // a request is submitted again only when it was answered or abandoned
  }
  Run(continuation.release(), /*missing=*/has_begun, Status::Ok());
}

bool MissedRequests::Remove(DataRequest* request) {
  const MutexLock lock(mutex_);
  const auto found = parked_.find(request);
  if (found == parked_.end()) return false;
  DEUT_CHECK(found->second->request == request);
  found->second->request = nullptr;
  parked_.erase(found);
  return true;
}

// A request is in one of four states: with a thread that submits it and has not parked it yet, parked, continued by a
// thread that has loaded its page, or answered. All but the second are inside a Call. So after one wait the first state
// is over, and what follows it is found by the second look and waited for by the second wait.
void MissedRequests::Abandon(DataRequest* request) {
  DEUT_DCHECK(!PageLoader::OwnsThisThread());  // a thread of the loader is inside a Call
  if (!Remove(request)) {
    DEUT_POINT("dc.missed.not_parked");
    if (DEUT_STEP("load.look_again")) {
      calls_.WaitForRunning();
      (void)Remove(request);
    }
  }
  calls_.WaitForRunning();
}

void MissedRequests::Run(Continuation* continuation, bool missing, const Status& loaded) {
  bool ended = true;
  {
    std::optional<CallGracePeriod::Call> call;
    DataRequest* request = nullptr;
    {
      const MutexLock lock(mutex_);
      ++alive_;
      request = continuation->request;
      // The call begins under the mutex. So a thread that calls Remove and then waits for the running calls never
      // misses this thread.
      if (request != nullptr && DEUT_STEP("load.call_begins_first")) call.emplace(calls_);
    }
    DEUT_POINT("dc.missed.taken");
    if (request != nullptr) {
      if (!loaded.ok()) {
        request->status = loaded;
      } else {
        ended = continue_(request, &continuation->scan, missing, continuation);
      }
      if (ended) {
        // The request leaves the table before it is answered. From then on its owner may submit it again.
        {
          const MutexLock lock(mutex_);
          if (continuation->request != nullptr) parked_.erase(request);
        }
        request->Finish(runtime_);
      }
    }
  }
  // Not before the end of the call: the object with the grace period may end when the last thread has left.
  if (ended) delete continuation;
  Leave(ended ? 2 : 1);
}

// The notification is made under the mutex, and the unlocking is the last access: Stop may return then.
void MissedRequests::Leave(size_t ended) {
  const MutexLock lock(mutex_);
  DEUT_CHECK(alive_ >= ended);
  alive_ -= ended;
  if (alive_ == 0) all_ended_.NotifyAll(runtime_);
}

}  // namespace deut::dc

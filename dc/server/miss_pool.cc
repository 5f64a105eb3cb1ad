#include "dc/server/miss_pool.h"

#include <optional>
#include <utility>

#include "common/base/check.h"

namespace deut::dc {

MissPool::MissPool(Runtime& runtime, CallGracePeriod& calls, int threads, std::function<void(DataRequest*)> answer)
    : runtime_(runtime), calls_(calls), answer_(std::move(answer)), mutex_(runtime) {
  for (int i = 0; i < threads; ++i) threads_.push_back(runtime.StartThread("dc-miss", [this] { Work(); }));
}

void MissPool::Stop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.NotifyAll(runtime_);
  }
  threads_.clear();
  const MutexLock lock(mutex_);
  DEUT_CHECK(queue_.empty());
}

void MissPool::Add(DataRequest* request) {
  const MutexLock lock(mutex_);
  DEUT_CHECK(!stop_);  // no thread would answer it
  queue_.push_back(request);
  changed_.NotifyOne(runtime_);
}

void MissPool::Remove(DataRequest* request) {
  const MutexLock lock(mutex_);
  const size_t removed = std::erase(queue_, request);
  DEUT_CHECK(removed <= 1);  // a second one would be answered after the caller has freed the request
}

void MissPool::Work() {
  for (;;) {
    std::optional<CallGracePeriod::Call> call;
    DataRequest* request = nullptr;
    {
      const MutexLock lock(mutex_);
      while (queue_.empty() && !stop_) changed_.Wait(mutex_);
      if (queue_.empty()) return;
      // The call begins under the mutex. So a thread that calls Remove and then waits for the running calls never
      // misses this request.
      call.emplace(calls_);
      request = queue_.front();
      queue_.pop_front();
    }
    answer_(request);
  }
}

}  // namespace deut::dc

// MissPool: threads that answer requests for pages that are not in memory, so that no other thread waits for the
// disk.
//
// States of a request: queued -> running -> answered, or removed while queued (Remove). The queue has a mutex,
// because every request here is about to wait for the disk; requests that memory can answer never come here.
// Abandon (data_component.h): a request that Remove finds is no longer touched. A request that it does not find is
// running or answered. A worker takes its request off the queue inside a CallGracePeriod::Call, so a thread that waits
// for the running calls also waits for the worker.
// Thread-safety: all methods from any thread. Ownership: owns its threads; the caller owns the requests.
#ifndef DC_SERVER_MISS_POOL_H_
#define DC_SERVER_MISS_POOL_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/server/call_grace_period.h"
#include "protocol/data_component.h"

namespace deut::dc {

class MissPool {
 public:
  // `answer` answers a request, and may block.
  MissPool(Runtime& runtime, CallGracePeriod& calls, int threads, std::function<void(DataRequest*)> answer);
  // Answers the queued requests and ends the threads. A second call does nothing. REQUIRES: no thread adds requests
  // any more.
  void Stop();
  ~MissPool() { Stop(); }
  MissPool(const MissPool&) = delete;
  MissPool& operator=(const MissPool&) = delete;

  void Add(DataRequest* request);
  // Removes the request from the queue if it is there.
  void Remove(DataRequest* request);

 private:
  void Work();

  Runtime& runtime_;
  CallGracePeriod& calls_;
  const std::function<void(DataRequest*)> answer_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<DataRequest*> queue_ DEUT_GUARDED_BY(mutex_);
  bool stop_ DEUT_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_MISS_POOL_H_

// MissPool: threads that answer the requests which need a page that is not in memory, so that no other thread waits for the disk.
//
// States of a request: queued -> running -> answered, or taken back while queued (Remove). The queue has a mutex: who comes here is about
//   to wait for the disk; requests that memory can answer never do.
// Abandon (data_component.h): what Remove finds is not touched any more. What it does not find runs or has run; a worker takes its
//   request off the queue inside a call of CallPhases, so who waits for the running calls waits for it, too.
// Thread-safety: all methods from any thread. Ownership: of its threads; requests are the caller's.
#ifndef DC_SERVER_MISS_POOL_H_
#define DC_SERVER_MISS_POOL_H_

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/server/call_phases.h"
#include "protocol/data_component.h"

namespace deut::dc {

class MissPool {
 public:
  // `answer` answers a request, and may block.
  MissPool(Runtime& runtime, CallPhases& calls, int threads, std::function<void(DataRequest*)> answer);
  // Answers what is queued, and ends. Again: nothing. REQUIRES: nobody adds any more.
  void Stop();
  ~MissPool() { Stop(); }
  MissPool(const MissPool&) = delete;
  MissPool& operator=(const MissPool&) = delete;

  void Add(DataRequest* request);
  // Takes the request off the queue if it is there.
  void Remove(DataRequest* request);

 private:
  void Work();

  Runtime& runtime_;
  CallPhases& calls_;
  const std::function<void(DataRequest*)> answer_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<DataRequest*> queue_ DEUT_GUARDED_BY(mutex_);
  bool stop_ DEUT_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_MISS_POOL_H_

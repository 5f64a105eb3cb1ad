// PosixQueue: the queue of pread/pwrite, for machines without io_uring. At most kMaxThreads threads each run one
// request at a time to its end. A thread is started when a request finds no idle one, so a queue with one request in
// flight at a time has one thread.
// Thread-safety: one thread at a time, except Wake. Ownership: owns its threads; the destructor waits until every
// submitted request has run.
#ifndef COMMON_IO_POSIX_QUEUE_H_
#define COMMON_IO_POSIX_QUEUE_H_

#include <deque>
#include <memory>
#include <vector>

#include "common/io/storage.h"
#include "common/sync/mutex.h"

namespace deut {

class PosixQueue final : public IoQueue {
 public:
  // REQUIRES: depth > 0; files are SystemFiles.
  PosixQueue(size_t depth, Runtime& runtime);
  ~PosixQueue() override;

  Status Submit(IoRequest* request) override;
  void Reap(std::vector<IoRequest*>* completed, Deadline deadline) override;
  void Wake() override;
  size_t in_flight() const override { return in_flight_; }

 private:
  static constexpr size_t kMaxThreads = 8;

  void Work();

  Runtime& runtime_;
  const size_t depth_;
  // Only the queue's user touches these.
  size_t in_flight_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  Mutex mutex_;
  CondVar waiting_changed_, done_changed_;
  std::deque<IoRequest*> waiting_ DEUT_GUARDED_BY(mutex_);
  size_t idle_threads_ DEUT_GUARDED_BY(mutex_) = 0;  // each has looked for a request and found none
  std::vector<IoRequest*> done_ DEUT_GUARDED_BY(mutex_);
  bool woken_ DEUT_GUARDED_BY(mutex_) = false;
  bool stop_ DEUT_GUARDED_BY(mutex_) = false;
};

}  // namespace deut

#endif  // COMMON_IO_POSIX_QUEUE_H_

#include "common/io/posix_queue.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/io/system_file.h"
#include "common/io/transfer.h"

namespace deut {

PosixQueue::PosixQueue(size_t depth, Runtime& runtime) : runtime_(runtime), depth_(depth), mutex_(runtime) {
  DEUT_CHECK(depth > 0);
  for (size_t i = 0; i < std::min(depth, kMaxThreads); ++i) {
    threads_.push_back(runtime.StartThread("io-posix", [this] { Work(); }));
  }
}

PosixQueue::~PosixQueue() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    waiting_changed_.NotifyAll(runtime_);
  }
  for (auto& thread : threads_) thread->Join();
}

void PosixQueue::Work() {
  for (;;) {
    IoRequest* request;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && !stop_) waiting_changed_.Wait(mutex_);
      if (waiting_.empty()) return;
      request = waiting_.front();
      waiting_.pop_front();
    }
    TransferBlocking(runtime_, request);
    MutexLock lock(mutex_);
    done_.push_back(request);
    done_changed_.NotifyOne(runtime_);
  }
}

Status PosixQueue::Submit(IoRequest* request) {
  const auto* file = static_cast<const SystemFile*>(request->file);
  DEUT_RETURN_IF_ERROR(
      CheckTransfer(file->options(), file->path(), request->kind, request->offset, request->data, request->bytes));
  if (in_flight_ == depth_) return DEUT_ERROR(kResourceExhausted, depth_, " requests are in flight, the queue's depth");
  request->status = Status::Ok();
  request->transferred = 0;
  ++in_flight_;
  MutexLock lock(mutex_);
  waiting_.push_back(request);
  waiting_changed_.NotifyOne(runtime_);
  return Status::Ok();
}

void PosixQueue::Reap(std::vector<IoRequest*>* completed, Deadline deadline) {
  if (in_flight_ == 0) return;
  MutexLock lock(mutex_);
  while (done_.empty() && !woken_) {
    if (!done_changed_.WaitUntil(mutex_, deadline)) break;
  }
  woken_ = false;
  completed->insert(completed->end(), done_.begin(), done_.end());
  in_flight_ -= done_.size();
  done_.clear();
}

void PosixQueue::Wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  done_changed_.NotifyOne(runtime_);
}

}  // namespace deut

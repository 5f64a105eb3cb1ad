#include "common/io/posix_queue.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/io/system_file.h"
#include "common/io/transfer.h"

namespace deut {

PosixQueue::PosixQueue(size_t depth, Runtime& runtime) : runtime_(runtime), depth_(depth), mutex_(runtime) {
  DEUT_CHECK(depth > 0);
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
  IoRequest* request = nullptr;
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (request != nullptr) {
        done_.push_back(request);
        done_changed_.NotifyOne(runtime_);
      }
      // The thread counts as idle from the moment at which its request is reaped. Otherwise the queue's user could
      // submit the next one and start a thread for it.
      ++idle_threads_;
      while (waiting_.empty() && !stop_) waiting_changed_.Wait(mutex_);
      --idle_threads_;
      if (waiting_.empty()) return;
      request = waiting_.front();
      waiting_.pop_front();
    }
    TransferBlocking(runtime_, request);
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
  bool has_thread;
  {
    MutexLock lock(mutex_);
    waiting_.push_back(request);
    waiting_changed_.NotifyOne(runtime_);
    // A thread that was notified counts as idle until it has taken its request, so the requests count against it.
    has_thread = waiting_.size() <= idle_threads_;
  }
  if (!has_thread && threads_.size() < std::min(depth_, kMaxThreads)) {
    threads_.push_back(runtime_.StartThread("io-posix", [this] { Work(); }));
  }
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

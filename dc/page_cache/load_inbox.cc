#include "dc/page_cache/load_inbox.h"

#include <utility>

#include "common/base/check.h"

namespace deut::dc {

void LoadInbox::Add(LoadArrival arrival) {
  bool first = false;
  {
    const MutexLock lock(mutex_);
    DEUT_CHECK(!stop_);  // no thread would load it
    first = arrived_.empty() && opened_.empty();
    arrived_.push_back(std::move(arrival));
    if (first) changed_.NotifyOne(runtime_);
  }
  // The first arrival wakes the thread; it takes the others along.
  if (first) queue_.Wake();
}

// The queue is woken under the mutex: the thread may take the load as soon as the mutex is free, and destroy the queue.
void LoadInbox::AddOpened(LeafLoad* load) {
  const MutexLock lock(mutex_);
  const bool first = arrived_.empty() && opened_.empty();
  opened_.push_back(load);
  if (!first) return;
  changed_.NotifyOne(runtime_);
  queue_.Wake();
}

void LoadInbox::NoteMemoryFreed() {
  {
    const MutexLock lock(mutex_);
    memory_freed_ = true;
    changed_.NotifyOne(runtime_);
  }
  queue_.Wake();
}

void LoadInbox::Stop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.NotifyAll(runtime_);
  }
  queue_.Wake();
}

bool LoadInbox::Take(Wait wait, Taken* taken) {
  taken->arrived.clear();
  taken->opened.clear();
  const MutexLock lock(mutex_);
  const MonotonicTime next_check = wait == Wait::kForMemory ? runtime_.Now() + kMemoryCheckInterval : kNoDeadline;
  while (wait != Wait::kNot && arrived_.empty() && opened_.empty()) {
    if (wait == Wait::kForArrival) {
      if (stop_) return false;
      changed_.Wait(mutex_);
    } else if (memory_freed_ || !changed_.WaitUntil(mutex_, next_check)) {
      break;
    }
  }
  memory_freed_ = false;
  taken->stop = stop_;
  taken->arrived.swap(arrived_);
  taken->opened.swap(opened_);
  return true;
}

}  // namespace deut::dc

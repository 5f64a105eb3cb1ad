// LoadInbox: what other threads hand to a load thread: loads that arrive, loads whose files are open now, and the news
// that memory was freed. Internal to PageLoader.
//
// Every change is made under the mutex, before the queue of the thread is woken (IoQueue::Wake). The thread calls Take
// after every Reap. So no change is lost, and only the first one since the last Take wakes the queue.
// Thread-safety: all methods from any thread, except Take, which the load thread alone calls. Ownership: borrows the
// queue.
#ifndef DC_PAGE_CACHE_LOAD_INBOX_H_
#define DC_PAGE_CACHE_LOAD_INBOX_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "common/sync/mutex.h"
#include "dc/page_cache/leaf_load.h"

namespace deut::dc {

class LoadInbox {
 public:
  // The events for which the thread waits in Take.
  enum class Wait : uint8_t {
    kNot,
    kForArrival,  // also for the end
    kForMemory,   // also for anything else; at most kMemoryCheckInterval
  };
  struct Taken {
    std::vector<LoadArrival> arrived;
    std::vector<LeafLoad*> opened;
    bool stop = false;  // no load that somebody waits for arrives any more
  };
  // The memory budget is checked by itself after this time: garbage may have been freed, of which nobody tells.
  static constexpr Duration kMemoryCheckInterval = std::chrono::milliseconds(50);

  LoadInbox(Runtime& runtime, IoQueue& queue) : runtime_(runtime), queue_(queue), mutex_(runtime) {}

  // REQUIRES: Stop was not called.
  void Add(LoadArrival arrival);
  // The thread may end, and this object with it, as soon as it has taken the load.
  void AddOpened(LeafLoad* load);
  void NoteMemoryFreed();
  void Stop();

  // Waits, and replaces the content of `taken`. False: Stop was called, and nothing has arrived for which it waits.
  bool Take(Wait wait, Taken* taken);

 private:
  Runtime& runtime_;
  IoQueue& queue_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<LoadArrival> arrived_ DEUT_GUARDED_BY(mutex_);
  std::vector<LeafLoad*> opened_ DEUT_GUARDED_BY(mutex_);
  bool memory_freed_ DEUT_GUARDED_BY(mutex_) = false;
  bool stop_ DEUT_GUARDED_BY(mutex_) = false;
};

}  // namespace deut::dc

#endif  // DC_PAGE_CACHE_LOAD_INBOX_H_
